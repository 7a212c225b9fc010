"""Names of months and seasons."""

from __future__ import annotations

from pyrag.embedded.lexicon import words

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
MONTH_NAMES = frozenset(MONTHS.split("|"))
SHORT_MONTHS = r"Jan\.?|Feb\.?|Mar\.?|Apr\.?|Jun\.?|Jul\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?"
SEASONS = words("spring summer autumn winter")

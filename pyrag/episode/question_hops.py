"""Minimum number of look-ups that a question needs, estimated from its wording.

The patterns are narrow: they match questions that nest one description in another, or compare two named things.
Every other question, and every question in a language other than English, counts as one look-up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_ROLES = (
    "director|author|writer|novelist|composer|songwriter|lyricist|performer|singer|founder|co-founder|producer|"
    "screenwriter|wife|husband|spouse|father|mother|son|daughter|brother|sister|child|parent|grandfather|grandmother|"
    "president|chairman|ceo|owner|creator|designer|architect|inventor|discoverer|mayor|captain|coach|publisher|developer|"
    "manufacturer|narrator|editor|illustrator|painter|sculptor|birthplace|hometown|employer|successor|predecessor"
)
_ENDS = (
    "born|die|died|buried|educated|from|live|lived|study|studied|attend|attended|graduate|graduated|work|worked|located|"
    "based|situated|founded|established|married|marry|killed|win|won|receive|received|nationality"
)
_ASKING = r"^(?:where|when|what|which|in (?:what|which)|how)\b"
_NESTED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Where was the director of Alpha born?
        rf"{_ASKING}.{{0,40}}?\bthe (?:[\w-]+ ){{0,2}}(?:{_ROLES}) of .+\b(?:{_ENDS})\W*$",
        # Where was Alpha's director born?
        rf"{_ASKING}.+['’]s (?:{_ROLES})\b.*\b(?:{_ENDS})\W*$",
        # What is the nationality of the director of Alpha? Who is the wife of the founder of …?
        rf"\b(?!name|title)(?-i:[a-z][\w-]*) of (?:the )?(?:[\w-]+ ){{0,2}}(?:{_ROLES}) of (?!the year)\w",
        # Who is the mother of Alpha's director?
        rf"\bthe (?!name|title)(?-i:[a-z][\w-]*) of .+['’]s (?:{_ROLES})\W*$",
    )
)
_NAMED = r"[A-Z0-9\"'“‘(][^,;:]*?"
_COMPARED = re.compile(
    rf"\b(?i:which|who|whose|what|is|are|was|were|did|does|do|has|have|between)\b.*?{_NAMED}\s+or\s+(?:the\s+)?[A-Z0-9\"'“‘]"
)
_COMPARATIVE = re.compile(
    r"\b(?:older|younger|earlier|later|first|last|larger|smaller|bigger|longer|shorter|higher|lower|taller|more|less|"
    r"fewer|newer|oldest|youngest|closer)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Hops:
    """Minimum number of look-ups that a question needs.

    Attributes:
        minimum: Number of look-ups, at least 1.
        chained: Whether a later look-up needs the answer of an earlier one.
    """

    minimum: int = 1
    chained: bool = False


@lru_cache(maxsize=256)
def hops_of(question: str) -> Hops:
    """Return the minimum number of look-ups that a question needs.

    Args:
        question: The original question.
    """
    text = " ".join(question.split())
    if _COMPARATIVE.search(text) and _COMPARED.search(text):
        return Hops(2)
    if any(pattern.search(text) for pattern in _NESTED):
        return Hops(2, chained=True)
    return Hops()

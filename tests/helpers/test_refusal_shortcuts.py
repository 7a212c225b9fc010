"""The short cuts of the detector of refusals change no verdict."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag_helpers import unknown
from pyrag_helpers.unknown_words import ENGLISH, FOREIGN

REFUSALS = tuple(map(re.compile, unknown._REFUSALS))
_ROWS = Path(__file__).parents[1] / "agents" / "unknown.jsonl"
WORDINGS = [json.loads(row)["said"] for row in _ROWS.read_text(encoding="utf-8").splitlines()]
WORDS = sorted({word for wording in WORDINGS for word in wording.split()})


@given(st.text(alphabet=[*ENGLISH, "O"], max_size=12))
@settings(max_examples=1000, deadline=None)
def test_joined_refusals_match_what_each_matches(codes: str) -> None:
    assert unknown._matches(codes, "en") == any(refusal.fullmatch(codes) for refusal in REFUSALS if codes)


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_languages_are_those_whose_markers_occur(text: str) -> None:
    plain = text.casefold()
    words = set(unknown._WORD.findall(plain))
    expected = [language for language in FOREIGN if unknown._markers(language) & words]
    assert unknown._foreign_languages(plain) == expected

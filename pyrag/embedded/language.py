"""Detection of questions that are not English, for the engine that only reads English.

English questions nearly always start with, or contain, words that no other language has. They may also contain foreign
names and titles, so a question only counts as foreign if its foreign words outnumber its English words. In doubt, it
counts as English. The module does not detect which other language a question is in, and it cannot judge questions
without common words.
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
    """Return whether a question seems to be English, or has no words that show its language."""
    words = _WORD.findall(_QUOTED.sub(" ", question))
    if not words:
        return True
    if words[0].lower() in _OPENERS:
        return True
    first = words[0] if words[0].isupper() else words[0].lower()  # "NATO" is an acronym, not the Italian "nato"
    common = [word for word in (first, *words[1:]) if not word[0].isupper()]
    english = sum(word in _ENGLISH for word in common)
    if _foreign_letters(words) > 0.5:
        return english > 0
    foreign = sum(word in _other_words() for word in common)
    return foreign <= english or foreign == _within_names(words)


def _within_names(words: list[str]) -> int:
    """Count foreign words between two capitalised words, as in "Leonardo da Vinci"."""
    triples = zip(words, words[1:], words[2:], strict=False)
    return sum(word in _other_words() and before[0].isupper() and after[0].isupper() for before, word, after in triples)


def _foreign_letters(words: list[str]) -> float:
    """Return the share of letters that are not Latin, from 0 to 1."""
    codes = [ord(letter) for word in words for letter in word]
    return sum(code > _MAX_LATIN and code not in _LATIN_ADDITIONS for code in codes) / len(codes)


@cache
def _other_words() -> frozenset[str]:
    """Return common words of other languages."""
    lines = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())

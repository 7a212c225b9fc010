"""Sentences of a passage: its text is tidied and split into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_UPPER = "".join(chr(code) for code in (*range(0x530), *range(0x1E00, 0x2000)) if chr(code).isupper())
UPPER_CLASS = re.escape(_UPPER).replace("\\-", "-")
_ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr st sr jr prof rev gen col capt lt sgt gov sen rep hon mt ft no nos vol vs v ca c cf approx b d fl r
    inc ltd co corp bros dept est jan feb mar apr jun jul aug sep sept oct nov dec op pp p ed eds et al a.k.a i.e
    e.g u.s u.k ph.d m.d
""".split()  # noqa: SIM905
)
# Longer sentences are cut, since code that reads them may take time quadratic in their length.
_MAX_SENTENCE, _MAX_WORD = 2_000, 40  # characters
_SENTENCE_END = re.compile(r"[.!?][\"”’')\]]*\s+(?=[\"“‘'(\[]?[\w])")


@lru_cache(maxsize=512)
def tidy(text: str) -> str:
    """Return a text with single blanks, and without doubled quotes and blanks inside brackets."""
    text = " ".join(text.replace('""', '"').replace("``", ' "').replace("''", '" ').split())
    text = re.sub(r"([(\[])\s+", r"\1", text)
    text = re.sub(r"\s+([)\],;:])", r"\1", text)
    text = re.sub(r"(?<=\w)\((?=\w)", " (", text)
    text = re.sub(rf"(?<=\w)- (?=[{UPPER_CLASS}])", "-", text)
    return _space_quotes(text)


def _space_quotes(text: str) -> str:
    """Set straight quotes as in print: `in" Up", he` becomes `in "Up", he`. An odd number of quotes is kept."""
    parts = text.split('"')
    if len(parts) < 3 or len(parts) % 2 == 0:
        return text
    out = parts[0]
    for index, part in enumerate(parts[1:], start=1):
        if index % 2:
            out += ('"' if not out or out[-1] in " ([-—–/" else ' "') + part.strip()
        else:
            out += '"' + (part if not part or not part[0].isalnum() else " " + part)
    return out


def _ends_sentence(text: str, start: int, stop: int) -> bool:
    """Return whether the full stop at `stop` ends the sentence that starts at `start`."""
    if text[stop] != ".":
        return True
    word = text[max(start, stop - _MAX_WORD) : stop].rsplit(maxsplit=1)[-1:] or [""]
    last = word[0].lstrip("(\"'“[").lower()
    return not (
        last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha()) or re.fullmatch(r"(?:[a-z]\.)+[a-z]", last)
    )


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the sentences in tidied text. Sentences that are too long are cut between words."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        following = text[match.end() : match.end() + 3].lstrip("\"“‘'([")
        if following[:1].islower() or not _ends_sentence(text, start, match.start()):
            continue
        spans.append((start, match.end()))
        start = match.end()
    if start < len(text):
        spans.append((start, len(text)))
    return [piece for span in spans for piece in _pieces(text, *span)]


def _pieces(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while stop - start > _MAX_SENTENCE:
        blank = text.rfind(" ", start, start + _MAX_SENTENCE)
        end = start + _MAX_SENTENCE if blank < 0 else blank + 1
        yield start, end
        start = end
    yield start, stop

"""Dates as texts write them, and the spans of names in a sentence's tokens."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon.people import HONORIFICS, PARTICLES
from pyrag.embedded.lexicon.regions import PEOPLES
from pyrag.embedded.lexicon.times import MONTHS, SHORT_MONTHS
from pyrag.embedded.words import STOPWORDS, Sentence

_MONTH = rf"(?:{MONTHS}|{SHORT_MONTHS})"
_ERA = r"(?:\s?(?:BCE?|CE|AD|B\.C\.|A\.D\.))?"
DATE = re.compile(
    rf"(?:\b\d{{4}}-\d{{2}}-\d{{2}}\b|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+\d{{3,4}}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{3,4}}"
    rf"|{_MONTH},?\s+(?:of\s+)?\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{MONTHS})\b|(?:{MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?(?![\d,]))"
    + _ERA
)
YEAR = re.compile(
    r"(?:AD\s)?\b(?:1\d{3}|20\d{2})s?\b(?!\s?(?:km|m|ft|feet|miles|people|inhabitants|metres|meters|%|,\d))" + _ERA
    + r"|\b\d{1,4}\s?(?:BCE?|CE|AD|B\.C\.|A\.D\.)(?!\w)|\bAD\s?\d{1,4}\b"
)  # fmt: skip


def is_name_word(word: str) -> bool:
    """Return whether a word starts with a capital or, as in "iPod", has a capital second letter."""
    return word[:1].isupper() or (word[:1].isdigit() is False and len(word) > 2 and word[1:2].isupper())


def name_run(sentence: Sentence, first: int) -> int:
    """Return the end of the name that starts at a token, or the token itself if no name starts there.

    Args:
        sentence: Sentence to read.
        first: Token at which the name starts. It may be the position after the last token.
    """
    words, lowers = sentence.words, sentence.lowers
    if first >= len(words) or not is_name_word(words[first]):
        return first
    stop = first + 1
    while stop < len(words):
        after = stop
        while after < len(words) and after - stop < 3 and lowers[after] in PARTICLES and words[after].islower():
            after += 1
        if (
            after < len(words)
            and words[after] == "."
            and after == stop
            and (len(words[after - 1]) == 1 or lowers[after - 1] in HONORIFICS)
        ):
            after += 1  # initial or title, as in "M. Krishnan Nair" and "Hon. George Villiers"
        if (after < len(words) and is_name_word(words[after]) and words[after] not in _BREAKING) or (
            after < len(words)
            and after == stop
            and words[after][0].isdigit()
            and words[after - 1][0].isupper()
            and len(words[after]) < 4
        ):
            stop = after + 1
        else:
            break
    return stop


_BREAKING = frozenset(("He", "She", "It", "They", "The", "His", "Her", "In", "On", "At", "An", "This"))


def strip_title_words(sentence: Sentence, first: int, stop: int) -> int:
    """Return the start of a name without nationalities: "American Jim Sheridan" starts at "Jim".

    Args:
        sentence: Sentence that the name is from.
        first: First token of the name.
        stop: Token after the last one. At least one token of the name remains.
    """
    while stop - first > 1:
        two_words = " ".join(sentence.words[first : first + 2])
        if two_words in PEOPLES and stop - first > 2:
            first += 2
        elif sentence.words[first] in PEOPLES:
            first += 1
        else:
            break
    return first


def names(sentence: Sentence) -> list[tuple[int, int]]:
    """Return first token and end of the runs of capitalised words, but of no stop word that begins the sentence."""
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(sentence.words):
        stop = name_run(sentence, position)
        first = position + (sentence.lowers[position] in STOPWORDS)
        if stop > first:
            spans.append((first, stop))
        position = max(stop, position + 1)
    return spans

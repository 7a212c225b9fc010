"""Dates, numbers, places, nationalities and names in a sentence, as spans of token positions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyrag.embedded.lexicon import (
    CONTINENTS,
    COUNTRIES,
    HONORIFICS,
    MONTHS,
    NUMBER_WORDS,
    PARTICLES,
    PEOPLES,
    SHORT_MONTHS,
    STATES,
    words,
)
from pyrag.embedded.words import STOPWORDS, Sentence

_JOINERS = PARTICLES - {"and"}  # lower-case words that may stand inside a name, up to three in a row
_MONTH = rf"(?:{MONTHS}|{SHORT_MONTHS})"
_ERA = r"(?:\s?(?:BCE?|CE|AD|B\.C\.|A\.D\.))?"
DATE = re.compile(
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+\d{{3,4}}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{3,4}}"
    rf"|{_MONTH},?\s+(?:of\s+)?\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{MONTHS})\b|(?:{MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?(?![\d,]))"
    + _ERA
)
YEAR = re.compile(
    r"(?:AD\s)?\b(?:1\d{3}|20\d{2})s?\b(?!\s?(?:km|m|ft|feet|miles|people|inhabitants|metres|meters|%|,\d))" + _ERA
    + r"|\b\d{1,4}\s?(?:BCE?|CE|AD|B\.C\.|A\.D\.)(?!\w)|\bAD\s?\d{1,4}\b"
)  # fmt: skip
CENTURY = re.compile(
    r"\b(?:(?:early|late|mid|the)[\s-])*(?:\d{1,2}(?:st|nd|rd|th)|[a-z]+th|first|second|third)[\s-]centur(?:y|ies)\b"
    + _ERA
)
_UNITS = (
    r"(?:\s(?:million|billion|trillion|thousand|hundred|percent|per\scent|km2|km²|sq\smi|square\s(?:miles|kilomet(?:er|re)s|feet|met(?:er|re)s)"
    r"|kilomet(?:er|re)s|met(?:er|re)s|miles|feet|inches|km|m|ft|mi|kg|tons|tonnes|pounds|years|months|weeks|days|hours|minutes|acres|hectares"
    r"|dollars|euros|mph|degrees|times|people|inhabitants|seats|students|members)\b|\s?%|-time\b)?"
)
NUMBER = re.compile(
    r"[$€£¥]?(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])(?:\s(?:million|billion|trillion|thousand)\b)?" + _UNITS
)
_NUMBER_WORD = re.compile(
    rf"\b(?:{'|'.join(sorted(NUMBER_WORDS))})(?:[\s-](?:{'|'.join(sorted(NUMBER_WORDS))}))*\b" + _UNITS, re.I
)
_PLACES = frozenset(COUNTRIES) | STATES | CONTINENTS


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `first` to `stop` (exclusive) of a sentence; `kind` is one of the names in this module's docstring."""

    first: int
    stop: int
    kind: str


def is_name_word(word: str) -> bool:
    return word[:1].isupper() or (word[:1].isdigit() is False and len(word) > 2 and word[1:2].isupper())


def _by_regex(sentence: Sentence, pattern: re.Pattern[str], kind: str) -> Iterator[Span]:
    for match in pattern.finditer(sentence.text):
        first = next((i for i, end in enumerate(sentence.ends) if end > match.start()), None)
        if first is None:
            continue
        stop = first
        while stop < len(sentence.ends) and sentence.starts[stop] < match.end():
            stop += 1
        if stop > first:
            yield Span(first, stop, kind)


def dates(sentence: Sentence) -> list[Span]:
    """Full dates first, then years and centuries that lie in no date."""
    found = list(_by_regex(sentence, DATE, "date")) if any(char.isdigit() for char in sentence.text) else []
    for pattern in (CENTURY, YEAR):
        for span in _by_regex(sentence, pattern, "year"):
            if not any(span.first < other.stop and other.first < span.stop for other in found):
                found.append(span)
    return found


def numbers(sentence: Sentence, taken: list[Span]) -> list[Span]:
    """Return numbers with their unit ("number"), and again without it ("bare number").

    Args:
        sentence: The sentence to read.
        taken: Spans that no number may overlap, such as its dates.
    """
    found: list[Span] = []
    for pattern in (NUMBER, _NUMBER_WORD):
        for span in _by_regex(sentence, pattern, "number"):
            if not any(span.first < other.stop and other.first < span.stop for other in (*taken, *found)):
                found.append(span)
                if span.stop - span.first > 1 and sentence.words[span.stop - 1].isalpha():
                    found.append(Span(span.first, span.stop - 1, "bare number"))
    return found


def name_run(sentence: Sentence, first: int) -> int:
    """Return the end (exclusive) of the name that starts at token `first`; `first` itself where there is none.

    Args:
        sentence: The sentence to read.
        first: Token at which the name starts; may lie beyond the last.
    """
    words, lowers = sentence.words, sentence.lowers
    if first >= len(words) or not is_name_word(words[first]):
        return first
    stop = first + 1
    while stop < len(words):
        look = stop
        while look < len(words) and look - stop < 3 and lowers[look] in _JOINERS and words[look].islower():
            look += 1
        if (
            look < len(words)
            and words[look] == "."
            and look == stop
            and (len(words[look - 1]) == 1 or lowers[look - 1] in HONORIFICS)
        ):
            look += 1  # an initial or a title: "M. Krishnan Nair", "Hon. George Villiers"
        if (look < len(words) and is_name_word(words[look]) and words[look] not in _BREAKING) or (
            look < len(words)
            and look == stop
            and words[look][0].isdigit()
            and words[look - 1][0].isupper()
            and len(words[look]) < 4
        ):
            stop = look + 1
        else:
            break
    return stop


_BREAKING = frozenset(("He", "She", "It", "They", "The", "His", "Her", "In", "On", "At", "An", "This"))


def strip_title_words(sentence: Sentence, first: int, stop: int) -> int:
    """Return the start of a name without leading nationalities: "American Jim Sheridan" begins at "Jim".

    Args:
        sentence: The sentence of the name.
        first: First token of the name.
        stop: Token after its last; at least one token is kept.
    """
    while stop - first > 1:
        two = " ".join(sentence.words[first : first + 2])
        if two in PEOPLES and stop - first > 2:
            first += 2
        elif sentence.words[first] in PEOPLES:
            first += 1
        else:
            break
    return first


def kind_of_name(sentence: Sentence, first: int, stop: int) -> str:
    """Return the kind of a name: nationality, place, person, organisation, opener (a sentence's first word) or name.

    Args:
        sentence: The sentence of the name.
        first: First token of the name.
        stop: Token after its last.
    """
    text = sentence.span(first, stop)
    if text in PEOPLES:
        return "nationality"
    if text.removeprefix("the ").removeprefix("The ") in _PLACES:
        return "place"
    before = sentence.lowers[first - 1] if first else ""
    if sentence.lowers[first] in HONORIFICS and stop - first > 1:
        return "person"
    if first == 0 and stop == 1:
        return "opener"  # any word may open a sentence with a capital
    if sentence.lowers[stop - 1] in _ORGANISATION:
        return "organisation"
    if sentence.lowers[stop - 1] in _LANDSCAPE or before in ("in", "near", "at"):
        return "place"
    return "name"


_ORGANISATION = words("""
    university college school institute company corporation inc ltd records studios pictures press club party
    association society league army navy church museum council committee band orchestra group foundation agency bank
    academy museum union entertainment productions
""")  # fmt: skip
_LANDSCAPE = words("""
    city county river lake mountain mountains island islands sea ocean valley province district state republic
    kingdom bay street road park hills hill village town beach range desert peninsula region square
""")  # fmt: skip


def names(sentence: Sentence) -> list[Span]:
    """Capitalised runs. A word that opens the sentence counts unless it is a stop word."""
    found: list[Span] = []
    position = 0
    while position < len(sentence.words):
        stop = name_run(sentence, position)
        lone_stopword = stop - position == 1 and sentence.lowers[position] in STOPWORDS
        if stop > position and not lone_stopword:
            first = position + (sentence.lowers[position] in STOPWORDS)
            found.append(Span(first, stop, kind_of_name(sentence, first, stop)))
        position = max(stop, position + 1)
    return found

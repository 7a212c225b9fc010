"""Spans of a sentence's tokens: dates, numbers and names, with the kind of each."""

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

_JOINERS = PARTICLES - {"and"}  # lower-case words inside of names, up to three in a row
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
    """Span of tokens.

    Args:
        first: First token.
        stop: Token after the last one.
        kind: "date", "year", "number", "bare number" (without its unit), or a kind of name; see `kind_of_name`.
    """

    first: int
    stop: int
    kind: str


def is_name_word(word: str) -> bool:
    """Return whether a word has a capital first or, as in "iPod", a capital second letter."""
    return word[:1].isupper() or (word[:1].isdigit() is False and len(word) > 2 and word[1:2].isupper())


def _by_regex(sentence: Sentence, pattern: re.Pattern[str], kind: str) -> Iterator[Span]:
    """Yield the matches of a pattern as spans of the tokens that they touch."""
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
    """Return the dates of a sentence, then the years and centuries outside of these dates."""
    spans = list(_by_regex(sentence, DATE, "date")) if any(char.isdigit() for char in sentence.text) else []
    for pattern in (CENTURY, YEAR):
        for span in _by_regex(sentence, pattern, "year"):
            if not any(span.first < other.stop and other.first < span.stop for other in spans):
                spans.append(span)
    return spans


def numbers(sentence: Sentence, excluded: list[Span]) -> list[Span]:
    """Return the numbers of a sentence with their units ("number"), and again without ("bare number").

    Args:
        sentence: Sentence to read.
        excluded: Spans that numbers must not overlap, such as dates.
    """
    spans: list[Span] = []
    for pattern in (NUMBER, _NUMBER_WORD):
        for span in _by_regex(sentence, pattern, "number"):
            if not any(span.first < other.stop and other.first < span.stop for other in (*excluded, *spans)):
                spans.append(span)
                if span.stop - span.first > 1 and sentence.words[span.stop - 1].isalpha():
                    spans.append(Span(span.first, span.stop - 1, "bare number"))
    return spans


def name_run(sentence: Sentence, first: int) -> int:
    """Return the end of the name that starts at a token, or the token itself if no name starts there.

    Args:
        sentence: Sentence to read.
        first: Token at which the name starts. It may be after the last token.
    """
    words, lowers = sentence.words, sentence.lowers
    if first >= len(words) or not is_name_word(words[first]):
        return first
    stop = first + 1
    while stop < len(words):
        after = stop
        while after < len(words) and after - stop < 3 and lowers[after] in _JOINERS and words[after].islower():
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


def kind_of_name(sentence: Sentence, first: int, stop: int) -> str:
    """Return the kind of a name.

    Args:
        sentence: Sentence that the name is from.
        first: First token of the name.
        stop: Token after the last one.

    Returns:
        "nationality", "place", "person", "organisation", "opener" for the first word of a sentence, or "name".
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
        return "opener"  # the first word of a sentence has a capital even if it is not a name
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
    """Return the runs of capitalised words. The first word of the sentence is included unless it is a stop word."""
    spans: list[Span] = []
    position = 0
    while position < len(sentence.words):
        stop = name_run(sentence, position)
        is_stop_word = stop - position == 1 and sentence.lowers[position] in STOPWORDS
        if stop > position and not is_stop_word:
            first = position + (sentence.lowers[position] in STOPWORDS)
            spans.append(Span(first, stop, kind_of_name(sentence, first, stop)))
        position = max(stop, position + 1)
    return spans

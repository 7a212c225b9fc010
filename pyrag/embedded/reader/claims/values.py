"""Comparable values in a text: dates, amounts and names."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.measures import NUMBER_WORDS
from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.reader.spans import DATE, YEAR
from pyrag.embedded.words import STOPWORDS, fold, stem, without_possessive
from pyrag.trace.sentences import UPPER_CLASS
from pyrag_helpers.numbers import parse_number

_MONTH_NAMES = [name.lower() for name in MONTHS.split("|")]
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_WHEN = re.compile(rf"{_ISO.pattern}|{DATE.pattern}|\b(?:{MONTHS})\b(?! [a-z]+ed\b)|{YEAR.pattern}")
_MEASURE = (
    "kg|g|t|tonnes?|tons?|grams?|pounds?|km|m|cm|mm|met(?:re|er)s?|kilomet(?:re|er)s?|feet|ft|miles?|euros?|dollars?|EUR|USD"
    "|percent|years?|months?|weeks?|days?|hours?|minutes?|seconds?|degrees?|litres?|liters?|dB|kW|W|V|GB|MB|people|members"
    "|million|billion|thousand|am|pm|square"
)
_NAME = re.compile(
    rf"[{UPPER_CLASS}][\w'’-]*(?:\.[\w'’-]+)*(?:\s+(?:(?:of|de|von|van|du|la|the)\s+){{0,2}}[{UPPER_CLASS}][\w'’-]*)*"
    rf"(?:\s+(?!{YEAR.pattern})\d+(?:\.\d+)*(?![\w,%])(?!\s?(?:{_MEASURE})\b))?"
)
_NUMBER = re.compile(
    rf"(?<![\w.,-])(?P<sign>[$€£¥])?(?P<number>\d+(?:[.,:]\d+)*|(?:{'|'.join(sorted(NUMBER_WORDS - {'once', 'twice', 'half'}))})\b)"
    r"(?P<scale>\s(?:thousand|million|billion)\b)?(?:[\s-]?(?P<unit>%|[^\W\d_]+))?",
    re.IGNORECASE,
)
_UNITS = {
    "kg": "kilogram", "kilograms": "kilogram", "kilos": "kilogram", "g": "gram", "grams": "gram", "t": "tonne",
    "tonnes": "tonne", "m": "metre", "metres": "metre", "meters": "metre", "meter": "metre", "km": "kilometre",
    "kilometres": "kilometre", "kilometers": "kilometre", "cm": "centimetre", "mm": "millimetre", "eur": "euro",
    "€": "euro", "euros": "euro", "$": "dollar", "dollars": "dollar", "usd": "dollar", "£": "pound", "pounds": "pound",
    "%": "percent", "h": "hour", "hours": "hour", "min": "minute", "minutes": "minute", "s": "second",
    "litres": "litre", "liters": "litre", "l": "litre",
}  # fmt: skip
_NO_UNIT = words(
    "a an and as at but by for from in is it of on or than that the to was were which with per who whose when"
)


@dataclass(frozen=True, slots=True)
class When:
    """Date or part of a date.

    Args:
        year: Year. 0 if unknown.
        month: Month, from 1. 0 if unknown.
        day: Day of the month. 0 if unknown.
    """

    year: int
    month: int
    day: int

    def may_equal(self, other: When) -> bool:
        """Return whether the parts that both dates have are equal, so that both may be the same day."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(own == others or not own or not others for own, others in pairs)

    def is_comparable(self, other: When) -> bool:
        """Return whether the dates have a part in common, such as the year."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return any(own and others for own, others in pairs)

    def order(self, other: When) -> int:
        """Return a positive number if this date is after another, a negative one if before, and 0 if neither is known."""
        if not (self.month and other.month):
            return self.year - other.year
        own, others = (self.year, self.month, self.day), (other.year, other.month, other.day)
        return (own > others) - (own < others)


@dataclass(frozen=True, slots=True)
class Amount:
    """Number with the word after it.

    Args:
        number: Value. NaN if it cannot be parsed.
        unit: Unit, or stem of the noun that is counted. Empty if the number has neither.
        text: Number as written, which distinguishes versions such as "2.0.3".
    """

    number: float
    unit: str
    text: str

    def equals(self, other: Amount) -> bool:
        """Return whether both numbers are equal. Versions such as "2.0.3" must be written the same."""
        return self.number == other.number and (self.text == other.text or self.text.count(".") < 2)

    def is_comparable(self, other: Amount) -> bool:
        """Return whether both amounts have the same unit or count the same noun."""
        return bool(self.unit) and self.unit == other.unit

    def may_compare(self, other: Amount) -> bool:
        """Return whether both amounts may have the same unit, which one of them may leave out."""
        return self.unit == other.unit or not self.unit or not other.unit


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a text.

    Args:
        dates: Dates.
        amounts: Amounts.
        names: Names, without leading stop words.
        rest: The text with all values replaced by spaces.
    """

    dates: tuple[When, ...]
    amounts: tuple[Amount, ...]
    names: tuple[str, ...]
    rest: str


@lru_cache(maxsize=4096)
def values_of(text: str) -> Values:
    """Return the dates, names and amounts of a text. Each word belongs to at most one of them."""
    dates, rest = [], text
    for match in _WHEN.finditer(text):
        when = _when(match[0])
        if when is not None:
            dates.append(when)
            rest = _blank(rest, match)
    names = []
    for match in _NAME.finditer(rest):
        words = without_possessive(match[0]).split()
        while words and words[0].lower() in STOPWORDS:
            words.pop(0)
        if words:
            names.append(" ".join(words))
            rest = _blank(rest, match)
    amounts = []
    for match in _NUMBER.finditer(rest):
        amounts.append(_amount(match))
        stop = match.end("scale") if match["scale"] else match.end("number")
        rest = rest[: match.start()] + " " * (stop - match.start()) + rest[stop:]
    return Values(tuple(dates), tuple(amounts), tuple(names), rest)


def _blank(text: str, match: re.Match[str]) -> str:
    return text[: match.start()] + " " * len(match[0]) + text[match.end() :]


def _when(text: str) -> When | None:
    """Return a date, or None for a decade or a text without year and month."""
    if iso := _ISO.fullmatch(text):
        return When(int(iso[1]), int(iso[2]), int(iso[3]))
    year = re.search(r"\d{3,4}", text)
    day = re.search(r"\b\d{1,2}(?=\b|st|nd|rd|th)", text)
    month = next((at for at, name in enumerate(_MONTH_NAMES, 1) if name[:3] in text.lower()), 0)
    if text.rstrip().endswith("s") and year:
        return None  # a decade
    return When(int(year[0]) if year else 0, month, int(day[0]) if day else 0) if year or month else None


def _amount(match: re.Match[str]) -> Amount:
    text = match["number"].lower()
    scaled = f"{text}{match['scale'] or ''}"
    try:
        number = float(parse_number(scaled))
    except ValueError:
        number = float("nan")
    return Amount(number, unit_of(match["sign"] or match["unit"] or ""), text)


def unit_of(word: str) -> str:
    """Return the unit after a number, or the stem of the noun that it counts; "" for any other word."""
    word = word.lower()
    return "" if not word or word in _NO_UNIT else _UNITS.get(word) or stem(word)


def is_unit(word: str) -> bool:
    """Return whether a word is a unit of measurement."""
    return word.lower() in _UNITS or bool(re.fullmatch(_MEASURE, word))


def same_name(claimed: str, stated: str) -> bool:
    """Return whether a name in a text may mean a claimed name.

    It has all words of the claimed name, or is a shortened form of it: its first or last word, with its numbers.

    Args:
        claimed: Name in the question.
        stated: Name in the text.
    """
    claimed_words, stated_words = (
        [word for word in fold(name).split() if word not in _IGNORED] for name in (claimed, stated)
    )
    if not claimed_words or not stated_words:
        return False
    if set(claimed_words) <= set(stated_words):
        return True
    is_short_form = set(stated_words) < set(claimed_words) and (
        stated_words[-1] == claimed_words[-1] or stated_words[0] == claimed_words[0]
    )
    return is_short_form and {word for word in claimed_words if _DIGIT.search(word)} <= set(stated_words)


def is_named_among(claimed: str, names: Iterable[str]) -> bool:
    """Return whether any of some names may mean a claimed name; see `same_name`.

    Args:
        claimed: Name in the question.
        names: Names in the text.
    """
    return any(same_name(claimed, name) for name in names)


_DIGIT = re.compile(r"\d")
_IGNORED = frozenset(("the", "of", "a", "mr", "mrs", "ms", "dr", "king", "queen", "duchess", "duke", "sir"))

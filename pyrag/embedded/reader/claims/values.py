"""Dates, quantities and names in a text, as values that can be compared. Reads no question and knows no passage."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pyrag.embedded.lexicon import MONTHS, NUMBER_WORDS, words
from pyrag.embedded.reader.spans import DATE, YEAR
from pyrag.embedded.words import STOPWORDS, fold, stem
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
    """A date; parts that a text leaves open are 0."""

    year: int
    month: int
    day: int

    def fits(self, other: When) -> bool:
        """Return whether both may be the same day: the parts that both have are equal."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(mine == theirs or not mine or not theirs for mine, theirs in pairs)

    def shares(self, other: When) -> bool:
        """Return whether both have a part that can be compared."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return any(mine and theirs for mine, theirs in pairs)

    def order(self) -> tuple[int, int, int]:
        return self.year, self.month, self.day


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with the word behind it, a unit or a noun; `text` keeps versions such as "2.0.3" apart."""

    number: float
    unit: str
    text: str

    def same(self, other: Amount) -> bool:
        return self.number == other.number and (self.text == other.text or self.text.count(".") < 2)

    def comparable(self, other: Amount) -> bool:
        """Return whether both count or measure the same, as far as their units tell."""
        return bool(self.unit) and self.unit == other.unit


@dataclass(frozen=True, slots=True)
class Values:
    """All values of a text, and the text with them blanked out."""

    dates: tuple[When, ...]
    amounts: tuple[Amount, ...]
    names: tuple[str, ...]
    rest: str


@lru_cache(maxsize=4096)
def values_of(text: str) -> Values:
    """Find dates, then names, then amounts; what is one is not looked at as another."""
    dates, rest = [], text
    for match in _WHEN.finditer(text):
        when = _when(match[0])
        if when is not None:
            dates.append(when)
            rest = _blank(rest, match)
    names = []
    for match in _NAME.finditer(rest):
        words = re.sub(r"['’]s?$", "", match[0]).split()
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
    """Return the unit or the stem of the noun that a number counts; empty for a word that is neither."""
    word = word.lower()
    return "" if not word or word in _NO_UNIT else _UNITS.get(word) or stem(word)


def is_unit(word: str) -> bool:
    """Return whether a word is a unit of measurement."""
    return word.lower() in _UNITS or bool(re.fullmatch(_MEASURE, word))


def same_name(asked: str, there: str) -> bool:
    """Return whether a name in a text may mean the asked one: all its words, or the family name only.

    Args:
        asked: The name in the question.
        there: A name in a text.
    """
    one, other = fold(asked).split(), fold(there).split()
    one, other = ([word for word in each if word not in _ARTICLES] for each in (one, other))
    if not one or not other:
        return False
    if set(one) <= set(other):
        return True
    shortened = set(other) < set(one) and (other[-1] == one[-1] or other[0] == one[0])
    return shortened and {word for word in one if _DIGIT.search(word)} <= set(other)


_DIGIT = re.compile(r"\d")


_ARTICLES = frozenset(("the", "of", "a", "mr", "mrs", "ms", "dr", "king", "queen", "duchess", "duke", "sir"))

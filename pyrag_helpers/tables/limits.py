"""Limits in conditions on tables: "more than 50 cows", "older than 40", "after March 2024", "in the first quarter"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from pyrag_helpers.numbers import parse_number
from pyrag_helpers.tables.numbers import (
    date_columns,
    date_of,
    is_label,
    is_unit,
    is_years,
    last_day,
    numbers_of,
    same_unit,
)
from pyrag_helpers.tables.vocabulary import COMPARATIVES, MONEY, MONTHS
from pyrag_helpers.tables.words import (
    Row,
    TableError,
    alike,
    column_by_word,
    folded,
    is_number,
    only_numbers,
    related,
)

Test = Callable[[Row], bool]

_ABOVE = (
    r"more than|over|above|greater than|higher than|exceeding|exceeds?|at least|no less than|not less than|minimum of"
)
_BELOW = r"fewer than|less than|under|below|lower than|at most|no more than|not more than|up to|maximum of"
_COMPARED = "|".join(COMPARATIVES)
_MONEY_BEFORE = r"(?:[$€£]\s?|(?:EUR|USD|GBP|CHF)\s)?"
_NUMBER = rf"{_MONEY_BEFORE}(?P<number>\d[\d.,]*\d|\d)(?P<scale> ?(?:million|thousand|k|m)\b)?"
_LIMIT = re.compile(
    rf"\b(?P<sign>{_ABOVE}|{_BELOW}|(?:{_COMPARED}) than|exactly|equal to)\s+{_NUMBER}(?P<sign_after>\s?[%€$£])?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"\bbetween {_MONEY_BEFORE}(?P<low>\d[\d.,]*\d|\d) and {_MONEY_BEFORE}(?P<high>\d[\d.,]*\d|\d)\b", re.IGNORECASE
)
_MONTH = rf"(?:{'|'.join(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_TIME = (
    rf"(?:\d{{4}}-\d\d(?:-\d\d)?|(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?)?{_MONTH}\.?(?:,? \d{{4}})?(?![\w-])"
    rf"|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}|(?:19|20)\d\d(?![\d.,-]))"
)
_SIDED = re.compile(
    r"\b(?P<side>before|after|since|until|till|by|starting|prior to|later than|earlier than|from)"
    rf" (?:the )?(?P<time>{_TIME})"
    rf"(?: (?P<link>to|until|till|and|through) (?:the )?(?P<end>{_TIME}))?",
    re.IGNORECASE,
)
_SPAN = re.compile(rf"\bbetween (?:the )?(?P<time>{_TIME}) and (?:the )?(?P<end>{_TIME})", re.IGNORECASE)
_QUARTER = re.compile(
    r"\b(?:q(?P<digit>[1-4])|(?:the )?(?P<word>first|second|third|fourth|last) quarter)"
    r"(?: of)?(?: (?P<year>(?:19|20)\d\d))?\b",
    re.IGNORECASE,
)
_WITHIN = re.compile(rf"\b(?:in|during|on|of|for|dated|from)? ?(?:the )?(?P<time>{_TIME})", re.IGNORECASE)


def limits(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Return tests for the limits of numbers in a condition, and the remaining words.

    Args:
        rows: Rows of the table.
        condition: Condition in words.
    """
    tests: list[Test] = []
    while match := _BETWEEN.search(condition):
        if _years(match["low"], match["high"]):
            break
        name = _nearby(rows, condition, match.start(), match.end())
        low, high = (Decimal(str(parse_number(match[end]))) for end in ("low", "high"))
        tests += [_compared(rows, name, "at least", low), _compared(rows, name, "at most", high)]
        condition = _without(rows, condition, match, name)
    while match := _LIMIT.search(condition):
        sign = match["sign"].lower().removesuffix(" than")
        column, direction = COMPARATIVES.get(sign, ("", ""))
        name = _nearby(rows, condition, match.start(), match.end(), column)
        limit = Decimal(str(parse_number(match["number"] + (match["scale"] or ""))))
        tests.append(_compared(rows, name, direction or match["sign"].lower(), limit))
        condition = _without(rows, condition, match, name)
    return tests, condition


def _years(*texts: str) -> bool:
    return all(re.fullmatch(r"(?:19|20)\d\d", text) for text in texts)


def _nearby(rows: Sequence[Row], condition: str, start: int, end: int, kind: str = "") -> str:
    """Return the column that the words around a limit mean; the only column of numbers if they mean none."""
    if kind:
        name = column_by_word(rows, kind) or related(rows, kind)
        if not name:
            raise ValueError(f"no column of the table matches the limit of {kind}")
        return name
    after, before = condition[end:].split()[:2], condition[:start].split()[-4:]
    for word in (*after, *reversed(before)):
        name = column_by_word(rows, word) or related(rows, folded(word))
        if (
            name
            and not is_label(rows, name, word)
            and any(is_number(row.get(name)) or isinstance(row.get(name), str) for row in rows)
        ):
            return name
    return only_numbers(rows)


def _without(rows: Sequence[Row], condition: str, match: re.Match[str], name: str) -> str:
    """Return a condition without a limit and the words around it that name its column, its unit or money."""
    before, after = condition[: match.start()].split(), condition[match.end() :].split()
    kept_before = [
        word for word in before[-4:] if not (related(rows, folded(word)) == name or _names(rows, word, name))
    ]
    unit = after[0].strip(",") if after and is_unit(after[0].strip(",")) else ""
    if unit and not same_unit(rows, name, unit):
        raise TableError(f"the condition is in {unit!r}, and the column {name!r} is not")
    kept_after = [
        word
        for place, word in enumerate(after[:2])
        if folded(word) not in MONEY and not (place == 0 and unit) and not _names(rows, word, name)
    ]
    return " ".join((*before[:-4], *kept_before, *kept_after, *after[2:]))


def _names(rows: Sequence[Row], word: str, name: str) -> bool:
    return column_by_word(rows, word) == name and not alike(folded(word), "order")


def _compared(rows: Sequence[Row], name: str, sign: str, limit: Decimal) -> Test:
    numbers = {id(row): number for row, number in numbers_of(rows, name)}

    def test(row: Row) -> bool:
        number = numbers.get(id(row))
        if number is None:
            return False
        if sign in ("at least", "no less than", "not less than", "minimum of"):
            return number >= limit
        if sign in ("at most", "no more than", "not more than", "up to", "maximum of"):
            return number <= limit
        if sign in ("exactly", "equal to"):
            return number == limit
        is_below = sign == "<" or sign.split()[0] in ("fewer", "less", "under", "below", "lower")
        return number < limit if is_below else number > limit

    return test


def sided_times(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Return tests for times such as "after March 2024" or "between 2020 and 2022", and the remaining words.

    Args:
        rows: Rows of the table.
        condition: Condition in words.
    """
    tests: list[Test] = []
    for pattern in (_SPAN, _SIDED):
        while match := pattern.search(condition):
            side = match["side"].lower() if pattern is _SIDED else "from"
            end = match["end"] or ""
            if side == "from" and not end:
                side = "in"
            column = _time_column(rows, condition)
            if not column:
                return tests, condition
            tests.append(_in_time(rows, column, side, match["time"], end))
            condition = f"{condition[: match.start()]} {condition[match.end() :]}"
    return tests, condition


def plain_times(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Return tests for times such as "in March", "2024" or "the first quarter", and the remaining words.

    Args:
        rows: Rows of the table.
        condition: Condition in words.
    """
    tests: list[Test] = []
    for pattern in (_QUARTER, _WITHIN):
        matches = list(pattern.finditer(condition))
        if not matches or not date_columns(rows):
            continue
        column = _time_column(rows, condition)
        times = [_quarter(match) if pattern is _QUARTER else _parts(match["time"]) for match in matches]
        if re.search(r"\bor\b|,| and ", condition) or len(times) == 1:
            tests.append(_any_time(column, times))
        else:
            tests += [_any_time(column, [time]) for time in times]  # "in March", "2024"
        condition = pattern.sub(" ", condition)
    return tests, condition


def _time_column(rows: Sequence[Row], condition: str) -> str:
    """Return the column of dates or years that a condition means; empty if the table has none.

    Raises:
        TableError: Several columns fit.
    """
    dates = date_columns(rows)
    years = [name for name in rows[0] if is_years(rows, name)]
    words = folded(condition).split()
    named = [name for name in dates if any(alike(word, part) for word in words for part in _own_words(name))]
    for names in (named, dates, years):
        if len(names) == 1:
            return names[0]
        if names:
            raise TableError(f"the condition names a time, and several columns have dates: {', '.join(names)}")
    return ""


def _own_words(name: str) -> list[str]:
    return [word for word in folded(name).split() if word not in ("date", "day", "time", "on", "at", "of")]


def _parts(time: str) -> tuple[str, str, str]:
    """Return year, month and day of a time, each empty if the time does not have it."""
    text = time.strip().lower().rstrip(".")
    if match := re.fullmatch(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", text):
        return match[1], match[2] or "", match[3] or ""
    month = re.search(_MONTH, text)
    if month is None:
        date = date_of(text)
        if not date:
            raise TableError(f"{time!r} is not a date with one reading: write it as YYYY-MM-DD")
        parts = (*date.split("-"), "", "")
        return parts[0], parts[1], parts[2]
    year_match = re.search(r"\d{4}", text)
    day_match = re.search(r"(?<!\d)\d{1,2}(?!\d)", text)
    number = next(place for place, name in enumerate(MONTHS, start=1) if name.startswith(month[0][:3]))
    return year_match[0] if year_match else "", f"{number:02}", f"{int(day_match[0]):02}" if day_match else ""


def _quarter(match: re.Match[str]) -> tuple[str, str, str]:
    number = int(match["digit"] or {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}[match["word"].lower()])
    return match["year"] or "", "|".join(f"{month:02}" for month in range(3 * number - 2, 3 * number + 1)), ""


def _any_time(column: str, times: Sequence[tuple[str, str, str]]) -> Test:
    shared = next((year for year, _, _ in reversed(times) if year), "")

    def test(row: Row) -> bool:
        year, month, day = (*date_of(row.get(column)).split("-"), "", "")[:3]
        return any(
            (year_asked or shared) in ("", year)
            and (not month_asked or month in month_asked.split("|"))
            and day_asked in ("", day)
            for year_asked, month_asked, day_asked in times
        )

    return test


def _in_time(rows: Sequence[Row], column: str, side: str, start: str, end: str) -> Test:
    """Return the test of a time before, after or between others."""
    first, last = _prefix(rows, column, start), _prefix(rows, column, end) if end else ""
    numeric = is_years(rows, column)

    def test(row: Row) -> bool:
        value = str(row.get(column)) if numeric else date_of(row.get(column))
        if not value or value == "None":
            return False
        value = f"{value}-01" if len(value) == 7 else value
        earliest, latest = (first, first) if numeric else (f"{first}-01-01"[:10], last_day(first))
        if last:
            return earliest <= value <= (last if numeric else last_day(last))
        if side in ("before", "prior to", "earlier than"):
            return value < earliest
        if side in ("until", "till", "by"):
            return value <= latest
        if side in ("since", "starting", "from"):
            return value >= earliest
        return value > latest if side in ("after", "later than") else earliest <= value <= latest

    return test


def _prefix(rows: Sequence[Row], column: str, time: str) -> str:
    """Return a time as YYYY, YYYY-MM or YYYY-MM-DD; a month without a year is in the only year of the column."""
    year, month, day = _parts(time)
    if not year:
        years = {date_of(row.get(column))[:4] for row in rows} - {""}
        if len(years) != 1:
            raise TableError(f"{time!r} has no year, and the column {column!r} has several")
        year = years.pop()
    return "-".join(part for part in (year, month, day) if part)

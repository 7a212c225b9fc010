"""Times in conditions on tables: "after March 2024", "between 2020 and 2022", "in the first quarter", "in May"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import ge, lt

from pyrag_helpers.tables.clocks import clock_times
from pyrag_helpers.tables.dates import date_column, date_columns, date_of, dates_of, exists, last_day, unread_dates
from pyrag_helpers.tables.numbers import is_years
from pyrag_helpers.tables.vocabulary import COMPARED, MONTHS
from pyrag_helpers.tables.words import Row, TableError, folded

Test = Callable[[Row], bool]

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
    r"\b(?:q(?P<digit>\d)|(?:the )?(?P<word>first|second|third|fourth|last|fifth|sixth) quarter)"
    r"(?: of)?(?: (?P<year>(?:19|20)\d\d))?\b",
    re.IGNORECASE,
)
_WITHIN = re.compile(rf"\b(?:in|during|on|of|for|dated|from)? ?(?:the )?(?P<time>{_TIME})", re.IGNORECASE)


_DAY = re.compile(
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}[./]|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|{_MONTH}\.? \d{{1,2}}(?!\d)",
    re.IGNORECASE,
)
_WEEK = re.compile(r"\b(?:in |during |of )?(?:calendar )?week \d{1,2}\b", re.IGNORECASE)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4, "fifth": 5, "sixth": 6}


def sided_times(rows: Sequence[Row], condition: str) -> tuple[list[Test], str, list[str]]:
    """Return tests for times such as "after March 2024" or "between 2020 and 2022", the remaining words and columns.

    Args:
        rows: Rows of the table.
        condition: Condition in words.
    """
    tests, condition, columns = clock_times(rows, condition)
    for pattern in (_SPAN, _SIDED):
        while match := pattern.search(condition):
            side = match["side"].lower() if pattern is _SIDED else "from"
            end = match["end"] or ""
            if side == "from" and not end:
                side = "in"
            column = date_column(rows, folded(condition).split())
            if not column:
                return tests, condition, columns
            columns.append(column)
            tests.append(_in_time(rows, column, side, match["time"], end))
            condition = f"{condition[: match.start()]} {condition[match.end() :]}"
    days = [match for match in _WITHIN.finditer(condition) if _DAY.match(match["time"])]
    if len(days) == 1 and (column := date_column(rows, folded(condition).split(), years=False)):
        columns.append(column)  # here, so that no figure of the day is taken for a cell
        tests.append(_any_time(rows, column, [_parts(days[0]["time"])]))
        condition = f"{condition[: days[0].start()]} {condition[days[0].end() :]}"
    return tests, condition, columns


def plain_times(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Return tests for times such as "in March", "2024" or "the first quarter", and the remaining words.

    Args:
        rows: Rows of the table.
        condition: Condition in words.
    """
    tests: list[Test] = []
    if not date_columns(rows) and not unread_dates(rows):
        return tests, condition
    if (match := _WEEK.search(condition)) and not any("week" in folded(name) for name in rows[0]):
        raise TableError(f"{match[0].strip()!r} is not computed: name its first and last day")
    for pattern in (_QUARTER, _WITHIN):
        matches = list(pattern.finditer(condition))
        if not matches:
            continue
        column = date_column(rows, folded(condition).split(), years=False)
        times = [_quarter(match) if pattern is _QUARTER else _parts(match["time"]) for match in matches]
        if re.search(r"\bor\b|,| and ", condition) or len(times) == 1:
            tests.append(_any_time(rows, column, times))
        else:
            tests += [_any_time(rows, column, [time]) for time in times]  # "in March", "2024"
        condition = pattern.sub(" ", condition)
    return tests, condition


def _parts(time: str) -> tuple[str, str, str]:
    """Return year, month and day of a time, each empty if the time does not have it.

    Raises:
        TableError: The day is not in the calendar, or may be two different days.
    """
    text = time.strip().lower().rstrip(".")
    month = re.search(_MONTH, text)
    if match := re.fullmatch(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", text):
        parts = match[1], match[2] or "", match[3] or ""
    elif month is None:
        year, month_text, day = (*date_of(text).split("-"), "", "")[:3]
        if not year:
            raise TableError(f"{time!r} is not a date with one reading: write it as YYYY-MM-DD")
        parts = year, month_text, day
    else:
        year_match = re.search(r"\d{4}", text)
        day_match = re.search(r"(?<!\d)\d{1,2}(?!\d)", text)
        number = next(place for place, name in enumerate(MONTHS, start=1) if name.startswith(month[0][:3]))
        parts = year_match[0] if year_match else "", f"{number:02}", f"{int(day_match[0]):02}" if day_match else ""
    if parts[1] and not exists(int(parts[0] or 2000), int(parts[1]), int(parts[2] or 1)):
        raise TableError(f"{time!r} is not in the calendar")
    return parts


def _quarter(match: re.Match[str]) -> tuple[str, str, str]:
    number = int(match["digit"]) if match["digit"] else _ORDINALS[match["word"].lower()]
    if not 1 <= number <= 4:
        raise TableError(f"{match[0].strip()!r} is not a quarter of a year")
    return match["year"] or "", "|".join(f"{month:02}" for month in range(3 * number - 2, 3 * number + 1)), ""


def _any_time(rows: Sequence[Row], column: str, times: Sequence[tuple[str, str, str]]) -> Test:
    shared = next((year for year, _, _ in reversed(times) if year), "")
    date = dates_of(rows, column)

    def test(row: Row) -> bool:
        year, month, day = (*date(row).split("-"), "", "")[:3]
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
    date = dates_of(rows, column)

    def test(row: Row) -> bool:
        value = str(row.get(column)) if numeric else date(row)
        if not value or value == "None":
            return False
        value = f"{value}-01" if len(value) == 7 else value
        earliest, latest = (first, first) if numeric else (f"{first}-01-01"[:10], last_day(first))
        if last:
            return earliest <= value <= (last if numeric else last_day(last))
        compared = COMPARED[side]
        return (
            earliest <= value <= latest
            if side == "in"
            else compared(value, earliest if compared in (lt, ge) else latest)
        )

    return test


def _prefix(rows: Sequence[Row], column: str, time: str) -> str:
    """Return a time as YYYY, YYYY-MM or YYYY-MM-DD; a month without a year is in the only year of the column."""
    year, month, day = _parts(time)
    if not year:
        years = {date[:4] for date in map(dates_of(rows, column), rows)} - {""}
        if len(years) != 1:
            raise TableError(f"{time!r} has no year, and the column {column!r} has several")
        year = years.pop()
    return "-".join(part for part in (year, month, day) if part)

"""Dates and periods in texts: "7 December 1973", "7. Mai 1987", "from 1914 to 1938", "18th century"."""

from __future__ import annotations

import calendar
import re
from datetime import date

from pyrag_helpers.date_forms import DateForm, find_dates
from pyrag_helpers.known import require_known

PRESENT = date(9999, 12, 31)  # end of a period that has not ended

_PART_OF_YEAR = re.compile(r"\d{4}-?W\d{2}(?:-?\d)?|\d{4}-\d{3}")

Period = tuple[date, date]
Datable = str | int | date


def _first(text: str, kind: str) -> DateForm:
    form = next(iter(find_dates(text)), None)
    if form is None:
        raise ValueError(f"no {kind} in {text!r}: ask for the date again, or test with is_known() first")
    return form


def _build_date(form: DateForm, text: str) -> date:
    if form.problem:
        raise ValueError(f"{text!r} is not a readable date ({form.problem}): ask for it as YYYY-MM-DD")
    if not 1 <= form.year <= 9999:
        raise ValueError(f"{text!r} lies outside the calendar (years 1 to 9999): compare with parse_year instead")
    month = form.month or 1
    return date(form.year, month, min(form.day or 1, calendar.monthrange(form.year, month)[1]))


def parse_date(text: Datable) -> date:
    """Return the first date in a text; a missing month or day counts as 1. A range or "born – died" gives its start.

    Args:
        text: Text in any language whose months are known, or an answer that contains a date.

    Raises:
        ValueError: There is no date, or it cannot be read as a whole: the month is unknown, the day does not exist, or
            it is ambiguous, such as "03/04/1999".
    """
    text = require_known(text)
    if isinstance(text, date):
        return text
    if _PART_OF_YEAR.fullmatch(str(text).strip()):
        raise ValueError(f"{text!r} names a week or a day of the year: ask for it as YYYY-MM-DD")
    return _build_date(_first(str(text), "date"), str(text))


def parse_year(text: Datable) -> int:
    """Return the first year in a text; years BC are negative, "18th century" is 1701."""
    text = require_known(text)
    if isinstance(text, date):
        return text.year
    form = _first(str(text), "year")
    if form.problem.startswith("its year"):
        raise ValueError(f"{str(text)!r} is not a readable date ({form.problem}): ask for it as YYYY-MM-DD")
    return form.year


def years_between(a: Datable, b: Datable) -> int:
    """Return the whole years between two dates, in either order, such as an age or a duration.

    Args:
        a: First date, or an answer that contains a date.
        b: Second date, or an answer that contains a date.
    """
    first, last = sorted((parse_date(a), parse_date(b)))
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


# Periods

_OPEN_END = re.compile(
    r"(?:[-–—]|\bto|\buntil|\bsince)\s*(?:the\s+)?(?:present|now|today|date|current|ongoing)\b|[-–—]\s*\)?$", re.I
)
_SHORT_END = re.compile(r"(\d{2})(\d{2})\s*[-–—/]\s*(\d{2})(?!\d)(?![-–—/.]\d)")


def parse_period(text: str | tuple[Datable, Datable] | date | int) -> Period:
    """Return start and end of "1914–1938", "from 1921 to 44", "since 1990", "1990–present", one year, or a pair."""
    text = require_known(text)
    if isinstance(text, tuple):
        return parse_date(text[0]), _last_day(text[1])
    if isinstance(text, date):
        return text, text
    whole = _SHORT_END.sub(r"\1\2–\1\3", str(text))
    dates = find_dates(whole)
    start = parse_date(whole)
    if _OPEN_END.search(whole) or (len(dates) == 1 and re.search(r"\b(since|from|after)\b", whole, re.I)):
        return start, PRESENT
    return start, _close(dates[1] if len(dates) > 1 else dates[0], whole)


def _close(form: DateForm, text: str) -> date:
    day = _build_date(form, text)
    if form.day:
        return day
    year, month = day.year + (9 if form.span == 10 else 0), form.month or 12
    return date(year, month, calendar.monthrange(year, month)[1])


def _last_day(value: Datable) -> date:
    return value if isinstance(value, date) else parse_period(str(value))[1]


def overlap(a: str | tuple[Datable, Datable], b: str | tuple[Datable, Datable]) -> str:
    """Return the years that two periods share, such as "1921–1938", or a single year.

    Args:
        a: First period, as text or as its two dates.
        b: Second period, as text or as its two dates.

    Raises:
        ValueError: The periods do not overlap.
    """
    (start_a, end_a), (start_b, end_b) = parse_period(a), parse_period(b)
    start, end = max(start_a, start_b), min(end_a, end_b)
    if start > end:
        raise ValueError(f"{a!r} and {b!r} have no time in common: say so in the answer")
    if end == PRESENT:
        return f"{start.year}–present"
    return str(start.year) if start.year == end.year else f"{start.year}–{end.year}"

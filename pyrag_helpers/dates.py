"""Dates and periods in texts: "7 December 1973", "from 1914 to 1938", "18th century"."""

from __future__ import annotations

import calendar
import re
from datetime import date

from pyrag_helpers.known import require_known

PRESENT = date(9999, 12, 31)  # the end of a period that has not ended

Period = tuple[date, date]
Datable = str | int | date

_MONTHS = {name[:3].lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<{0}>\d{{3,4}})(?![\d])(?!,\d{{3}})"
_DECADE = r"(?P<{0}>'?s\b)?"
_ERA = r"(?P<{0}>\s*(?:BCE?|B\.\s?C\.(?:\s?E\.)?))?(?![a-zA-Z])"
_DATE = re.compile(
    "|".join(
        (
            rf"\b{_DAY.format('d1')}(?:\s+or\s+\d{{1,2}}(?:st|nd|rd|th)?)?(?:\s+of)?\s+{_MONTH.format('m1')},?\s+(?:of\s+)?"
            rf"{_YEAR.format('y1')}{_ERA.format('e1')}",
            rf"\b{_MONTH.format('m2')}\s+{_DAY.format('d2')}(?:\s+or\s+\d{{1,2}})?,?\s+(?:of\s+)?"
            rf"{_YEAR.format('y2')}{_ERA.format('e2')}",
            rf"\b{_MONTH.format('m3')},?\s+(?:of\s+)?{_YEAR.format('y3')}{_ERA.format('e3')}",
            r"\b(?P<y4>\d{4})-(?P<m4>\d{2})-(?P<d4>\d{2})(?!\d)",
            r"\b(?P<a5>\d{1,2})/(?P<b5>\d{1,2})/(?P<y5>\d{4})(?!\d)",
            rf"(?<![\d,.$€£/]){_YEAR.format('y6')}{_DECADE.format('s6')}{_ERA.format('e6')}",
            r"\b(?P<y7>\d{1,2})(?P<e7>\s*(?:BCE?|B\.\s?C\.))(?![a-zA-Z])",
            r"\b(?:AD|A\.D\.)\s*(?P<y8>\d{1,4})\b",
            r"\b(?P<c9>\d{1,2})(?:st|nd|rd|th)[\s-]century(?P<e9>\s*BCE?)?",
        )
    ),
    re.IGNORECASE,
)
_SHORT_YEAR_LEAD = re.compile(
    r"(?:\bc\.|\bca\.?|circa|\bAD|\bin|\byear|\b[bd]\.|born|died|about|around|before|after|from|to|until|since"
    r"|between|and|[-–—(])\s*$",
    re.IGNORECASE,
)


def _readable_year(match: re.Match[str]) -> bool:
    """Return True if a number can be a year; a number of three digits only if the words around it mean a year."""
    if match["y6"] is None or len(match["y6"]) == 4 or match["e6"]:
        return True
    before, after = match.string[: match.start()], match.string[match.end() :]
    alone = not before.strip("( ") and re.match(r"\s*(?:$|[-–—,;)]|to\b|until\b)", after)
    return bool(alone or _SHORT_YEAR_LEAD.search(before))


def _signed_year(match: re.Match[str]) -> int:
    if match["c9"]:
        century = int(match["c9"])
        return -century * 100 if match["e9"] else century * 100 - 99
    year = int(next(match[key] for key in ("y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8") if match[key]))
    return -year if any(match[key] for key in ("e1", "e2", "e3", "e6", "e7")) else year


def _month_and_day(match: re.Match[str]) -> tuple[int, int]:
    if match["a5"]:
        first, second = int(match["a5"]), int(match["b5"])
        return (second, first) if first > 12 else (first, second)  # month first, as in the United States, if both fit
    if match["m4"]:
        return int(match["m4"]), int(match["d4"])
    name = match["m1"] or match["m2"] or match["m3"]
    return (_MONTHS[name[:3].lower()] if name else 1), int(match["d1"] or match["d2"] or 1)


def _first_date(text: str) -> re.Match[str] | None:
    return next((match for match in _DATE.finditer(text) if _readable_year(match)), None)


def _build_date(match: re.Match[str], text: str) -> date:
    year = _signed_year(match)
    if not 1 <= year <= 9999:
        raise ValueError(f"{text!r} lies outside the calendar (years 1 to 9999): compare with parse_year instead")
    month, day = _month_and_day(match)
    month = min(max(month, 1), 12)
    return date(year, month, min(max(day, 1), calendar.monthrange(year, month)[1]))


def parse_date(text: Datable) -> date:
    """Return the first date in a text; a missing month or day counts as 1. A range or "born – died" gives its start."""
    text = require_known(text)
    if isinstance(text, date):
        return text
    match = _first_date(str(text))
    if match is None:
        raise ValueError(f"no date in {str(text)!r}: ask for the date again, or test with is_known() first")
    return _build_date(match, str(text))


def parse_year(text: Datable) -> int:
    """Return the first year in a text; years BC are negative, "18th century" is 1701."""
    text = require_known(text)
    if isinstance(text, date):
        return text.year
    match = _first_date(str(text))
    if match is None:
        raise ValueError(f"no year in {str(text)!r}: ask for the date again, or test with is_known() first")
    return _signed_year(match)


def years_between(a: Datable, b: Datable) -> int:
    """Return the whole years between two dates, in either order: an age, a duration.

    Args:
        a: A date, or an answer that contains a date.
        b: The other date.
    """
    first, last = sorted((parse_date(a), parse_date(b)))
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


# Periods

_OPEN_END = re.compile(
    r"(?:[-–—]|\bto|\buntil|\bsince)\s*(?:the\s+)?(?:present|now|today|date|current|ongoing)\b|[-–—]\s*\)?$", re.I
)
_SHORT_END = re.compile(r"(\d{2})(\d{2})\s*[-–—/]\s*(\d{2})(?!\d)")


def parse_period(text: str | tuple[Datable, Datable] | date | int) -> Period:
    """Return start and end of "1914–1938", "from 1921 to 44", "since 1990", "1990–present", a year, or a pair."""
    text = require_known(text)
    if isinstance(text, tuple):
        return parse_date(text[0]), _last_day(text[1])
    if isinstance(text, date):
        return text, text
    whole = _SHORT_END.sub(r"\1\2–\1\3", str(text))
    dates = [match for match in _DATE.finditer(whole) if _readable_year(match)]
    start = parse_date(whole)
    if _OPEN_END.search(whole) or (len(dates) == 1 and re.search(r"\b(since|from|after)\b", whole, re.I)):
        return start, PRESENT
    return start, _close(dates[1] if len(dates) > 1 else dates[0], whole)


def _close(match: re.Match[str], text: str) -> date:
    day = _build_date(match, text)
    if match["d1"] or match["d2"] or match["d4"] or match["a5"]:
        return day
    year, month = day.year + (9 if match["s6"] else 0), day.month if match["m3"] else 12
    return date(year, month, calendar.monthrange(year, month)[1])


def _last_day(value: Datable) -> date:
    return value if isinstance(value, date) else parse_period(str(value))[1]


def overlap(a: str | tuple[Datable, Datable], b: str | tuple[Datable, Datable]) -> str:
    """Return the years that two periods share, such as "1921–1938", or a single year.

    Args:
        a: A period as text, or its two dates.
        b: The other period.

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

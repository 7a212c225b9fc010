"""Times in questions that no calendar or clock has, such as "2024-13-45", "31 February" and "25:61"."""

from __future__ import annotations

import re

from pyrag_helpers.date_forms import find_dates
from pyrag_helpers.months import month_of

_AT = re.compile(
    r"\b(?:on|in|at|by|before|after|since|until|till|from|to|and|between|during|than|of|dated?|day|week)"
    r"(?: the| about| around| week| calendar)*\s*$",
    re.IGNORECASE,
)
_AT_CLOCK = re.compile(r"\b(?:at|before|after|until|till|since)(?: about| around)?\s*$", re.IGNORECASE)
_IN_WORDS = re.compile(r"[^\W\d_]{3,}")
_DIGIT_BEFORE = re.compile(r"\d\s$")
_DAY_AND_MONTH = re.compile(
    r"\b(?P<day>\d{1,2})(?:st|nd|rd|th)?\s(?:of\s)?(?P<month>[A-Z][a-z]+)\b"
    r"|\b(?P<month_2>[A-Z][a-z]+)\s(?P<day_2>\d{1,2})(?:st|nd|rd|th)?(?=\s*(?:[?.!,]|$))"
)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_CLOCK = re.compile(
    r"(?<![\d:.])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?![\d:])|(?<!\d)(?P<hour_2>\d{1,3})(?= o'?clock\b)"
)
_WEEK = re.compile(r"\b(?:calendar )?week (?P<number>\d{1,3})(?= (?:of|in) \d{4})", re.IGNORECASE)
_LEAP_DAYS = frozenset(("1712",))  # Sweden had 30 February 1712


def impossible_time(question: str) -> str:
    """Return the impossible time in a question, such as "31 June", with the reason; empty without such a time.

    Args:
        question: The question.
    """
    for form in find_dates(question):
        text = question[form.start : form.end]
        is_written_out = bool(_IN_WORDS.search(text))
        if is_written_out and (len(_IN_WORDS.findall(text)) > 1 or _DIGIT_BEFORE.search(question, 0, form.start)):
            continue  # a range: "24 January 76 - 10 July 138"
        if form.problem in ("there is no such day", "there is no such time", "a year has no such part") and (
            is_written_out or _AT.search(question, 0, form.start)
        ):
            return "" if str(form.year) in _LEAP_DAYS else f"{text!r} is not in the calendar ({form.problem})"
    return _day_without_year(question) or _clock(question)


def _day_without_year(question: str) -> str:
    for match in _DAY_AND_MONTH.finditer(question):
        month, day = month_of(match["month"] or match["month_2"], short=False), int(match["day"] or match["day_2"])
        if month and not 1 <= day <= _DAYS[month - 1] and _AT.search(question, 0, match.start()):
            return f"{match[0]!r} is not in the calendar (there is no such day)"
    for match in _WEEK.finditer(question):
        if not 1 <= int(match["number"]) <= 53:
            return f"{match[0]!r} is not in the calendar (a year has 52 or 53 weeks)"
    return ""


def _clock(question: str) -> str:
    for match in _CLOCK.finditer(question):
        hour, minute = int(match["hour"] or match["hour_2"]), int(match["minute"] or 0)
        is_time = hour < 24 or (hour == 24 and not minute)
        if not (is_time and minute < 60) and _AT_CLOCK.search(question, 0, match.start()):
            return f"{match[0]!r} is not a time of the day"
    return ""

"""Rules of recurrence (RFC 5545) in words: `FREQ=WEEKLY;BYDAY=MO` is "weekly on Monday"."""

from __future__ import annotations

import re

from pyrag.retrieval.documents.cards.card import listed
from pyrag.retrieval.documents.cards.contacts import iso_date
from pyrag.retrieval.documents.formats.number_formats import DAYS, MONTHS

_UNITS = {
    "YEARLY": ("yearly", "years"),
    "MONTHLY": ("monthly", "months"),
    "WEEKLY": ("weekly", "weeks"),
    "DAILY": ("daily", "days"),
    "HOURLY": ("hourly", "hours"),
    "MINUTELY": ("every minute", "minutes"),
    "SECONDLY": ("every second", "seconds"),
}
_DAYS = {day[:2].upper(): day for day in DAYS}
_ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "-1": "last"}
_MONTH = re.compile("0?[1-9]|1[0-2]")
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")


def recurrence(rule: str) -> str:
    """Return a rule of recurrence in words. Parts without a wording stay as written."""
    fields = {name.upper(): value for name, _, value in (part.partition("=") for part in rule.split(";")) if value}
    unit = _UNITS.get(fields.pop("FREQ", "").upper())
    if unit is None:
        return rule
    interval = fields.pop("INTERVAL", "1")
    pieces = [unit[0] if interval == "1" else f"every {interval} {unit[1]}"]
    place = fields.pop("BYSETPOS", "")
    if days := fields.pop("BYDAY", ""):
        prefix = f"the {_ORDINALS.get(place, place)} " if place else ""
        pieces.append(f"on {prefix}{listed([_day(day) for day in days.split(',')])}")
    elif place:
        fields["BYSETPOS"] = place
    if days := fields.pop("BYMONTHDAY", ""):
        pieces.append(f"on day {listed(days.split(','))} of the month")
    if months := fields.pop("BYMONTH", ""):
        pieces.append(f"in {listed([_month(month) for month in months.split(',')])}")
    if count := fields.pop("COUNT", ""):
        pieces.append(f"{count} times")
    if until := fields.pop("UNTIL", ""):
        pieces.append(f"until {iso_date(until)}")
    fields.pop("WKST", None)
    return " ".join((*pieces, *(f"({name}={value})" for name, value in fields.items())))


def _day(text: str) -> str:
    match = _DAY.fullmatch(text.strip().upper())
    if match is None:
        return text
    place = (match[1] or "").lstrip("+")
    return f"the {_ORDINALS.get(place, place)} {_DAYS[match[2]]}" if place else _DAYS[match[2]]


def _month(text: str) -> str:
    return MONTHS[int(text) - 1] if _MONTH.fullmatch(text) else text

"""Conditions on times, as filters of the metadata field that holds the times."""

from __future__ import annotations

import datetime as dt
import re

from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.lexicon.word_classes import BE_FORM
from pyrag.embedded.planner.corpus.vocabulary import YEAR, Vocabulary, is_time
from pyrag.retrieval.filters.tree import Comparison, Filter, all_of, any_of

_PERIOD = re.compile(
    rf"(?:(?:are|is|were|was)\s+)?(?:(?:from|in|of|dated|for|during)\s+)?(?:the )?(?:years? )?(?P<year>{YEAR})"
    rf"|(?:(?:are|is|were|was)\s+)?(?:dated\s+|from\s+)?(?P<side>before|after|since|until)\s+(?P<bound>{YEAR})"
    rf"|(?:dated\s+)?(?:between|from)\s+(?P<start>{YEAR})\s+(?:and|to)\s+(?P<end>{YEAR})",
    re.IGNORECASE,
)
_OR = re.compile(rf"(?P<opening>.*?)(?P<first>{YEAR})(?P<more>(?:, {YEAR})*,? or )(?P<last>{YEAR})")
_TIME = rf"(?:\d{{4}}-\d\d(?:-\d\d)?|(?:\d{{1,2}} )?(?:(?:{MONTHS}),? )?{YEAR}|(?:{MONTHS}) \d{{1,2}},? {YEAR})"
DONE = rf"(?:(?:{BE_FORM}|have been|has been) )?(?P<verb>[a-z]+(?:ed|en|t|de|ade))"  # "were signed"
_DONE = re.compile(
    rf"(?:{DONE}|(?P<dated>dated|from))\s+"
    rf"(?P<side>in|on|before|after|since|during|until|by|between)\s+(?P<time>{_TIME})(?: and (?P<end>{_TIME}))?",
    re.IGNORECASE,
)


def time_filter(text: str, vocabulary: Vocabulary) -> Filter | None:
    """Return the filter for a time such as "from 2021", "signed in 2021 or 2022"; None if no field holds it.

    Args:
        text: Words of the condition.
        vocabulary: Words of the metadata.
    """
    if alternatives := _OR.fullmatch(text):
        years = re.findall(YEAR, alternatives["first"] + alternatives["more"] + alternatives["last"])
        parts = [time_filter(f"{alternatives['opening']}{year}", vocabulary) for year in years]
        known = [part for part in parts if part is not None]
        return any_of(*known) if len(known) == len(parts) else None
    return _of_period(text, vocabulary) or _of_event(text, vocabulary)


def event_field(verb: str, vocabulary: Vocabulary) -> str:
    """Return the date field that a verb names, such as "signed" or "signed_on"; empty if no field matches.

    Args:
        verb: Participle in lower case.
        vocabulary: Words of the metadata.
    """
    for name in (verb, f"{verb} on", f"{verb} at", f"{verb} date", f"date {verb}"):
        field = vocabulary.fields.get(name)
        if field is not None and is_time(field):
            return field.name
    return ""


def _of_period(text: str, vocabulary: Vocabulary) -> Filter | None:
    match = _PERIOD.fullmatch(text)
    if match is None:
        return None
    if match["year"]:
        return vocabulary.period(match["year"], match["year"])
    if match["start"]:
        return vocabulary.period(match["start"], match["end"])
    year, side = int(match["bound"]), match["side"].lower()
    first = {"after": str(year + 1), "since": str(year)}.get(side, "")
    last = {"before": str(year - 1), "until": str(year)}.get(side, "")
    return vocabulary.period(first, last)


def _of_event(text: str, vocabulary: Vocabulary) -> Filter | None:
    match = _DONE.fullmatch(text)
    name = event_field((match["verb"] or match["dated"]).lower(), vocabulary) if match else ""
    if match is None or not name or (match["side"].lower() == "between") != bool(match["end"]):
        return None
    first, last = _iso(match["time"]), _iso(match["end"] or match["time"])
    if not first or not last:
        return None
    side = match["side"].lower()
    if side == "before":
        return Comparison(name, "<", first)
    if side == "after":
        return Comparison(name, ">=", _next(last))
    if side == "since":
        return Comparison(name, ">=", first)
    if side in ("until", "by"):
        return Comparison(name, "<", _next(last))
    return all_of(Comparison(name, ">=", first), Comparison(name, "<", _next(last)))


def _iso(text: str) -> str:
    """Convert a year, month or day to the beginning of an ISO date; empty if the day does not exist."""
    if re.fullmatch(r"\d{4}(?:-\d\d){0,2}", text):
        return text
    year = re.search(YEAR, text)
    month = re.search(MONTHS, text, re.IGNORECASE)
    day = re.search(r"(?<!\d)\d{1,2}(?!\d)", text)
    if year is None or (day and month is None):
        return ""
    if month is None:
        return year[0]
    number = MONTHS.lower().split("|").index(month[0].lower()) + 1
    return f"{year[0]}-{number:02}" + (f"-{int(day[0]):02}" if day else "")


def _next(iso: str) -> str:
    """Return the year, month or day that follows."""
    parts = [int(part) for part in iso.split("-")]
    if len(parts) == 1:
        return str(parts[0] + 1)
    if len(parts) == 2:
        return f"{parts[0] + parts[1] // 12}-{parts[1] % 12 + 1:02}"
    try:
        return str(dt.date(*parts) + dt.timedelta(days=1))
    except (ValueError, OverflowError):
        return f"{iso}~"

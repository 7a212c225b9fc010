"""Calendars (`.ics`), one card for each event, task and entry of a journal, with readable labels.

Times are in ISO form with the zone that the file names. The end of an event over whole days is its last day.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pyrag.retrieval.documents.cards.card import Card
from pyrag.retrieval.documents.cards.contacts import iso_date
from pyrag.retrieval.documents.cards.content_lines import ContentLine, content_lines, parts
from pyrag.retrieval.documents.cards.recurrence import recurrence

_KINDS = {
    "VEVENT": "Event",
    "VTODO": "Task",
    "VJOURNAL": "Entry",
    "VFREEBUSY": "Free and busy times",
    "VCALENDAR": "Calendar",
}
_LABELS = {
    "DTSTART": "Start", "DTEND": "End", "DUE": "Due", "COMPLETED": "Completed", "DURATION": "Duration",
    "LOCATION": "Place", "ORGANIZER": "Organiser", "CATEGORIES": "Categories", "STATUS": "Status", "URL": "Website",
    "CONTACT": "Contact", "RESOURCES": "Resources", "PRIORITY": "Priority", "GEO": "Coordinates", "RRULE": "Repeats",
    "RDATE": "Also on", "EXDATE": "Except on", "RECURRENCE-ID": "Instead of", "PERCENT-COMPLETE": "Percent complete",
    "ATTACH": "Attachment", "CONFERENCE": "Conference", "FREEBUSY": "Busy", "NAME": "Name", "X-WR-CALNAME": "Name",
    "X-WR-TIMEZONE": "Time zone", "REQUEST-STATUS": "Request status", "CLASS": "Access", "RELATED-TO": "Related",
}  # fmt: skip
_TEXTS = {"DESCRIPTION": "Description", "COMMENT": "Comment", "X-WR-CALDESC": "Description"}
_WRITTEN_BY_PROGRAMS = re.compile(
    r"(?:VERSION|PRODID|CALSCALE|METHOD|UID|DTSTAMP|CREATED|LAST-MODIFIED|SEQUENCE|TRANSP|SUMMARY|ACTION|TRIGGER"
    r"|REFRESH-INTERVAL|X-PUBLISHED-TTL|X-ALT-DESC|X-(?:MICROSOFT|APPLE|MOZ|LIC|MS|OUTLOOK|GOOGLE-CALENDAR)-.*)"
)
_TIMES = frozenset(("DTSTART", "DTEND", "DUE", "COMPLETED", "RECURRENCE-ID", "RDATE", "EXDATE", "FREEBUSY"))
_PEOPLE = frozenset(("ORGANIZER", "ATTENDEE"))
_STATES = {"DECLINED": "Declined", "TENTATIVE": "Tentative attendees", "DELEGATED": "Delegated"}
_UNITS = ("week", "day", "hour", "minute", "second")
_DURATION = re.compile(
    r"([+-]?)P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?", re.ASCII
)
_NO_TEXT = re.compile(r"(?:this is an event |event |alarm )?(?:reminder|notification)?|alarm", re.IGNORECASE)
_CLOCK = re.compile(r"(?P<time>.{10} \d\d:\d\d)(?::\d\d)?(?P<zone> \S.*|[+-]\S*|)")


@dataclass(slots=True)
class _Component:
    name: str
    lines: list[ContentLine] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)


def calendar_cards(data: bytes, remarks: list[str]) -> Iterator[Card]:
    """Yield the cards of a calendar, and add a remark on omitted attachments.

    Args:
        data: Content of the file.
        remarks: List to which remarks are added.
    """
    stack = [_Component("VCALENDAR")]
    attachments = 0
    for line in content_lines(data, remarks):
        if line.name == "BEGIN":
            stack.append(_Component(line.text.upper()))
        elif line.name == "END":
            component = stack.pop() if len(stack) > 1 else stack[0]
            if component.name == "VALARM":
                stack[-1].alarms += _alarm(component)
            elif component is not stack[0]:
                yield from _card(component)
        elif line.is_binary:
            attachments += 1
        else:
            stack[-1].lines.append(line)
    for component in reversed(stack):  # of a file that was cut off
        yield from _card(component)
    if attachments:
        remarks.append(f"left out: attachments ({attachments})")


def _card(component: _Component) -> Iterator[Card]:
    """Yield the card of a component, unless it only has properties that programs write."""
    kind = _KINDS.get(component.name)
    if not component.lines or component.name in ("VTIMEZONE", "STANDARD", "DAYLIGHT"):
        return
    card = Card(next((line.text for line in component.lines if line.name == "SUMMARY"), ""))
    label = kind or component.name.removeprefix("X-").removeprefix("V").replace("-", " ").capitalize()
    card.add(label, card.title)
    people: dict[str, list[str]] = defaultdict(list)
    for line in component.lines:
        if line.name == "ATTENDEE":
            people[_role(line)].append(_person(line))
        else:
            _add(card, line)
    for role, names in people.items():
        card.add(role, ("; " if any("," in name for name in names) else ", ").join(names))
    for alarm in component.alarms:
        card.add("Reminder", alarm)
    _settle_times(card, component.lines)
    if card.fields or card.texts:
        yield card


def _add(card: Card, line: ContentLine) -> None:
    if line.name in _TEXTS:
        if line.text:
            card.texts.append((_TEXTS[line.name], line.text))
    elif not _WRITTEN_BY_PROGRAMS.fullmatch(line.name):
        card.add(line.label(_LABELS), _value(line))


def _value(line: ContentLine) -> str:
    if line.name in _TIMES:
        return ", ".join(_time(text, line) for text in line.value.split(","))
    if line.name in _PEOPLE:
        return _person(line)
    if line.name in ("CATEGORIES", "RESOURCES"):
        return ", ".join(filter(None, parts(line.value, ",")))
    if line.name == "RRULE":
        return recurrence(line.text)
    if line.name == "DURATION":
        return _in_words(line.text)
    if line.name in ("STATUS", "CLASS"):
        return line.text.lower()
    return line.text


def _time(text: str, line: ContentLine) -> str:
    """Return a time, or both ends of a period, with its zone."""
    zone = _zone(line.parameter("TZID"))
    times = []
    for end in text.strip().split("/"):
        time = _in_words(end) if end.startswith(("P", "+P")) else iso_date(end)
        times.append(f"{time} {zone}" if zone and ":" in time and time[-1].isdigit() else time)
    return " to ".join(times)


def _zone(text: str) -> str:
    """Return a zone without the origin that programs write before it: "/citadel.org/20190914_1/Europe/Berlin"."""
    parts = text.strip("/").split("/")
    origins = [place for place, part in enumerate(parts[:-1], start=1) if re.search(r"[.\d]", part)]
    return "/".join(parts[max(origins, default=0) :])


def _person(line: ContentLine) -> str:
    """Return the name of a person with the address, as in a mail."""
    name, address = line.parameter("CN").strip(), re.sub(r"^mailto:", "", line.text, flags=re.IGNORECASE)
    if not name or name == address:
        return address
    return f"{name} <{address}>" if "@" in address else name


def _role(line: ContentLine) -> str:
    """Return the label under which a person or thing takes part."""
    if line.parameter("CUTYPE").upper() in ("ROOM", "RESOURCE"):
        return "Rooms and resources"
    if state := _STATES.get(line.parameter("PARTSTAT").upper()):
        return state
    is_optional = line.parameter("ROLE").upper() in ("OPT-PARTICIPANT", "NON-PARTICIPANT")
    return "Optional attendees" if is_optional else "Attendees"


def _alarm(component: _Component) -> list[str]:
    """Return when a reminder is due, in words."""
    reminders = []
    texts = [line.text for line in component.lines if line.name == "DESCRIPTION" and not _NO_TEXT.fullmatch(line.text)]
    for line in component.lines:
        if line.name == "TRIGGER":
            match = _DURATION.fullmatch(line.text)
            side = "after" if match and match[1] != "-" else "before"
            spoken = _in_words(line.text)
            edge = "the end" if line.parameter("RELATED").upper() == "END" else "the start"
            reminders.append(
                (f"{spoken} {side} {edge}" if spoken else f"at {edge}") if match else _time(line.text, line)
            )
    return [f"{reminder}: {texts[0]}" if texts else reminder for reminder in reminders]


def _span(text: str) -> timedelta | None:
    """Return a duration; None if it cannot be read."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    numbers = (int(number or 0) for number in match.groups()[1:])
    with suppress(OverflowError):
        return timedelta(**dict(zip((f"{unit}s" for unit in _UNITS), numbers, strict=True)))
    return None


def _in_words(text: str) -> str:
    """Return a duration in words; other texts stay as they are."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return text
    numbers = zip(match.groups()[1:], _UNITS, strict=True)
    return " ".join(
        f"{int(number)} {unit}{'s' * (int(number) != 1)}" for number, unit in numbers if number and int(number)
    )


def _settle_times(card: Card, lines: Sequence[ContentLine]) -> None:
    """Make the end of whole days the last day, add the end of an event with a duration, and add metadata."""
    by_name = {line.name: line for line in lines if line.name in ("DTSTART", "DTEND", "DUE", "DURATION")}
    values = dict(card.fields)
    start, end = (_moment(values.get(label, "")) for label in ("Start", "End"))
    if isinstance(start, datetime) and end is None and "DURATION" in by_name:
        clock = _CLOCK.fullmatch(values["Start"])
        if clock and (length := _span(by_name["DURATION"].text)):
            with suppress(OverflowError):
                end = start + length
                card.add("End", f"{end:%Y-%m-%d %H:%M}{clock['zone']}")
    elif start is not None and end is not None and not isinstance(start, datetime) and not isinstance(end, datetime):
        end = end - timedelta(days=1) if end > start else start
        card.fields = [(label, end.isoformat() if label == "End" else value) for label, value in card.fields]
    for label, moment in (("start", start), ("end", end), ("due", _moment(values.get("Due", "")))):
        if moment is not None:
            card.metadata[label] = _stamped(moment, values.get(label.capitalize(), values.get("Start", "")))


def _moment(text: str) -> date | None:
    """Return a date, or a time without its zone."""
    with suppress(ValueError):
        return datetime.fromisoformat(text[:16]) if text[10:11] == " " else date.fromisoformat(text)
    return None


def _stamped(moment: date, text: str) -> str:
    """Return a moment in ISO form, with the offset of its zone if the zone is known."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    zone = text.rpartition(" ")[2]
    if zone == "UTC":
        return f"{moment.isoformat()}+00:00"
    with suppress(ValueError, KeyError, OSError):
        is_name = 1 <= zone.count("/") <= 2  # zoneinfo itself fails for a deep path
        return moment.replace(tzinfo=ZoneInfo(zone)).isoformat() if is_name else moment.isoformat()
    return moment.isoformat()

"""Times of the day and durations in a table's column: "07:45", "6 pm", "26:30", "1 h 20 min"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from pyrag_helpers.tables.vocabulary import COMPARED, DURATIONS, HOURS, MINUTES, TIME_KINDS
from pyrag_helpers.tables.words import Row, TableError, alike, filled_cells, folded

Test = Callable[[Row], bool]

EITHER = "h:mm or m:ss"
"""Form of durations whose unit is not known."""

_COLONS = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?")
_FIGURE = r"\d{1,6}(?:\.\d{1,6})?"
_IN_WORDS = re.compile(
    rf"(?:(?P<d>{_FIGURE}) ?d(?:ays?)?\b)?(?:,? ?(?:and )?(?P<h>{_FIGURE}) ?h(?:ours?|rs?)?(?![a-z])\.?)?"
    rf"(?:,? ?(?:and )?(?P<min>{_FIGURE})(?: ?m(?:in(?:ute)?s?)?(?![a-z])\.?)?)?"
    rf"(?:,? ?(?:and )?(?P<s>{_FIGURE}) ?s(?:ec(?:ond)?s?)?\b\.?)?",
    re.IGNORECASE,
)
_MINUTES_IN = {"d": Decimal(1440), "h": Decimal(60), "min": Decimal(1), "s": Decimal(1) / 60}
_CLOCK = (
    r"(?P<{0}>\d{{1,2}}[:.]\d{{2}}|\d{{1,2}}(?= ?[ap]\.?m\b| o['’]clock)|noon|midday|midnight)"
    r"(?: ?(?P<{0}_half>[ap])\.?m\b\.?| o['’]clock)?(?![\d.:])"
)
_SIDED = re.compile(
    rf"\b(?P<side>before|after|until|till|by|since|at|from|later than|earlier than|between) {_CLOCK.format('time')}"
    rf"(?: (?:and|to|until|till) {_CLOCK.format('end')})?",
    re.IGNORECASE,
)
_CELL = re.compile(r"([01]?\d|2[0-4])[:.]([0-5]\d)(?::[0-5]\d)?(?: ?([ap])\.?m\.?)?", re.IGNORECASE)
_NAMED = {"noon": "12:00", "midday": "12:00", "midnight": "24:00"}


def minutes_in(text: str) -> Decimal | None:
    """Return the minutes of a duration in words, such as "1 h 20 min" or "90 minutes"; None for another text."""
    match = _IN_WORDS.fullmatch(text.strip())
    parts = {unit: value for unit, value in match.groupdict().items() if value} if match else {}
    if not parts or (len(parts) == 1 and "min" in parts and not re.search("min", text, re.IGNORECASE)):
        return None
    return sum((Decimal(value) * _MINUTES_IN[unit] for unit, value in parts.items()), Decimal(0))


def duration_form(rows: Sequence[Row], name: str) -> str:
    """Return how a column shows durations: "words", "h:mm", "h:mm:ss", "m:ss" or `EITHER`.

    Other columns have the form "". Durations that all have one unit, such as "90 min", are ordinary numbers.

    Args:
        rows: Rows of the table.
        name: Column.
    """
    cells = [cell.strip() if isinstance(cell, str) else "" for cell in filled_cells(rows, name)]
    if not cells or not all(cells):
        return ""
    if all(minutes_in(cell) is not None for cell in cells):
        units = {re.sub(r"[\d.\s]", "", cell) for cell in cells}
        return "words" if len(units) > 1 or any(len(re.findall(r"\d+(?:\.\d+)?", cell)) > 1 for cell in cells) else ""
    colons = [match for cell in cells if (match := _COLONS.fullmatch(cell))]
    words = set(folded(name).split())
    highest = max((int(match[1]) for match in colons), default=0)
    is_named = any(word in DURATIONS or (word.endswith("time") and word != "time") for word in words)
    if len(colons) < len(cells) or not (is_named or highest > 24):
        return ""
    if any(match[3] for match in colons):
        return "h:mm:ss"
    is_hours, is_minutes = highest >= 60 or not words.isdisjoint(HOURS), not words.isdisjoint(MINUTES)
    return EITHER if is_hours == is_minutes else "h:mm" if is_hours else "m:ss"


def read_duration(text: str, form: str) -> Decimal:
    """Return a duration in minutes; hours and minutes if it has two parts of unknown unit.

    Args:
        text: Cell or limit.
        form: Form of the column's durations.
    """
    match = _COLONS.fullmatch(text.strip())
    if match is None:
        return minutes_in(text) or Decimal(0)
    first, second, third = int(match[1]), int(match[2]), int(match[3] or 0)
    seconds = 60 * first + second if form == "m:ss" else 3600 * first + 60 * second + third
    return Decimal(seconds) / 60


def shown_duration(minutes: Decimal, form: str) -> str:
    """Return a duration in the form of its column.

    Args:
        minutes: The duration.
        form: Form of the column's durations.
    """
    seconds = round(minutes * 60)
    whole, rest = divmod(seconds, 60)
    if form == "m:ss":
        return f"{whole}:{rest:02}"
    hours, part = divmod(whole, 60)
    if form != "words":
        return f"{hours}:{part:02}" + (f":{rest:02}" if rest or form == "h:mm:ss" else "")
    parts = ((hours, "h"), (part, "min"), (rest, "s"))
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "0 min"


def clock_column(rows: Sequence[Row], words: Sequence[str], *, is_named: bool = False) -> str:
    """Return the column of times of the day that the words name, or an empty string.

    Args:
        rows: Rows of the table.
        words: Words that may name the column.
        is_named: Whether the words must name it, even if it is the only one.

    Raises:
        TableError: Several columns fit.
    """
    clocks = [name for name in rows[0] if _has_clocks(rows, name)]
    named = [name for name in clocks if any(alike(word, part) for word in words for part in folded(name).split())]
    whole = [name for name in named if all(any(alike(word, part) for word in words) for part in folded(name).split())]
    named = whole if len(whole) == 1 else named
    named = named or [name for name in clocks if any(_is_verb_of(word, name) for word in words)]
    names = named or ([] if is_named else clocks)
    if len(names) > 1:
        raise TableError(f"the question is about a time, and several columns have times: {', '.join(names)}")
    return names[0] if names else ""


def _is_verb_of(word: str, name: str) -> bool:
    """Return whether a word is a verb about a column of times, as "leaves" about "Departure"."""
    return any(word in kind and not kind.isdisjoint(folded(name).split()) for kind in TIME_KINDS)


def clock_times(rows: Sequence[Row], condition: str) -> tuple[list[Test], str, list[str]]:
    """Return tests for times of the day, such as "before 07:00", the remaining words, and the columns.

    Args:
        rows: Rows of the table.
        condition: Condition in words.
    """
    tests: list[Test] = []
    columns: list[str] = []
    while (match := _SIDED.search(condition)) and (column := clock_column(rows, folded(condition).split())):
        side, start, end = match["side"].lower(), _limit(match, "time"), _limit(match, "end") if match["end"] else None
        if (side in ("between", "from")) != (end is not None) and side != "from":
            raise TableError(f"{match[0]!r} is not one time of the day or two")
        tests.append(_by_clock(column, side, start))
        tests += [] if end is None else [_by_clock(column, "until", end)]
        columns.append(column)
        words = f"{condition[: match.start()]} {condition[match.end() :]}".split()
        condition = " ".join(word for word in words if not _is_verb_of(folded(word), column))
    return tests, condition, columns


def _limit(match: re.Match[str], group: str) -> int:
    text, half = match[group].lower(), match[f"{group}_half"]
    text = _NAMED.get(text, text if re.search("[:.]", text) else f"{text}:00")
    limit = clock_minutes(f"{text} {half}m" if half else text)
    if limit is None:
        raise TableError(f"{match[group]!r} is not a time of the day")
    return limit


def _has_clocks(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column has times of the day, and otherwise only words such as "closed"."""
    cells = filled_cells(rows, name)
    others = [str(cell) for cell in cells if not isinstance(cell, str) or clock_minutes(cell) is None]
    has_figures = any(any(map(str.isdigit, text)) for text in others)
    return len(others) < len(cells) and not has_figures and not duration_form(rows, name)


def clock_minutes(text: str) -> int | None:
    """Return the minutes since midnight of a time of the day; None for another text."""
    match = _CELL.fullmatch(text.strip())
    if match is None or (match[3] and not 0 < int(match[1]) <= 12):
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0) if match[3] else int(match[1])
    return 60 * hour + int(match[2]) if 60 * hour + int(match[2]) <= 1440 else None


def _by_clock(column: str, side: str, limit: int) -> Test:
    def test(row: Row) -> bool:
        value = clock_minutes(str(row.get(column)))
        return value is not None and COMPARED[side](value, limit)

    return test

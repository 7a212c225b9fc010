"""One computation over the rows of one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from statistics import median
from typing import Any

from pyrag_helpers.tables.asked import Computation, completed, named_numbers, numbers_column
from pyrag_helpers.tables.clocks import clock_column, clock_minutes
from pyrag_helpers.tables.conditions import is_foreign, matching
from pyrag_helpers.tables.counting import counter, noun_of, quantity_of, refuse_parts_of_rows
from pyrag_helpers.tables.dates import date_column, dates_of, origin_column
from pyrag_helpers.tables.numbers import Column, is_unit, is_years, plain_number, refuse_sum_of_prices
from pyrag_helpers.tables.vocabulary import MONTHS, ORIGINS, PLAIN
from pyrag_helpers.tables.words import (
    Row,
    TableError,
    alike,
    alike_any,
    column_of,
    entity_column,
    folded,
    is_about,
    is_missing,
    is_number,
    related,
    shown_column,
)

HOW = (
    "count", "distinct", "sum", "average", "median", "highest", "lowest", "earliest", "latest", "difference", "share",
    "list",
)  # fmt: skip
_TAIL = re.compile(r" (?:in|for|on|during|of|from) .+")
_DATED = frozenset(("issued", "published", "released", "founded", "built", "ordered", "scheduled", "paid"))
_DATES = frozenset(("date", "day", "time"))
_PRICED = frozenset(("price", "prices", "expensive", "cheap"))
_PERIODS = ("month", "quarter", "year")


def compute(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    """Return the value of a computation.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        asked: The computation.

    Raises:
        TableError: The words are about the table, and it does not give the value.
        ValueError: The words are not about the table.
    """
    if not rows:
        raise ValueError("the table has no rows")
    try:
        return _computed(title, rows, completed(title, rows, asked))
    except TableError as error:
        if is_foreign(title, rows, asked.condition):
            raise ValueError(str(error)) from None
        raise


def _computed(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    if asked.how == "difference":
        return _difference(title, rows, asked)
    if asked.by:
        return _grouped(title, rows, asked)
    return _COMPUTED[asked.how](title, rows, asked)


def _difference(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    if isinstance(asked.where, str) or len(asked.where) != 2:
        raise ValueError("a difference needs the names of two rows: where=(first, second)")
    column = Column(rows, numbers_column(rows, asked.column or named_numbers(rows, asked.condition)))
    pair: list[Row] = []
    tail = _TAIL.search(asked.where[1])
    for part in asked.where:
        numbers = column.numbers(_row_named(rows, part) or matching(title, rows, part))
        if len(numbers) > 1 and tail:  # "Ada and Ben in 2024"
            numbers = column.numbers(matching(title, rows, f"{part}{tail[0]}"))
        if len(numbers) != 1:
            kind = TableError if numbers else ValueError
            raise kind(f"{len(numbers)} rows fit {part!r}, and a difference needs one")
        pair.append(numbers[0][0])
    (_, first), (_, second) = column.numbers(pair)  # both must have the same unit
    return column.shown(abs(first - second))


def _row_named(rows: Sequence[Row], text: str) -> list[Row]:
    """Return the row whose cell in a column without repetitions is the text, if rows of other columns have it too."""
    chosen = [row for row in rows if any(folded(value) == folded(text) for value in row.values() if value is not None)]
    for name in rows[0] if len(chosen) > 1 else ():
        cells = [folded(row[name]) for row in rows if isinstance(row.get(name), str)]
        if len(set(cells)) == len(rows) and folded(text) in cells:
            return [row for row in rows if folded(row[name]) == folded(text)]
    return []


def _numbers(title: str, rows: Sequence[Row], asked: Computation) -> tuple[Column, list[tuple[Row, Decimal]]]:
    column = Column(rows, numbers_column(rows, asked.column))
    numbers = column.numbers(matching(title, rows, asked.condition))
    if not numbers:
        raise TableError(f"no row with {asked.condition!r} has a number in the column {column.name!r}")
    return column, numbers


def _count(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    noun = noun_of(rows, asked.condition)
    first = next(iter(folded(asked.condition).split()), "")
    if is_unit(first) and any(folded(value) == first for row in rows for value in row.values()):
        raise TableError(f"{first!r} is a unit of the table, and rows are not counted in units")
    quantity = quantity_of(title, rows, noun, asked.condition)
    chosen = matching(title, rows, asked.condition, (noun, quantity))
    if not quantity:
        refuse_parts_of_rows(title, rows, noun, asked.condition)
    return counter(title, rows, asked.condition)(chosen)


def _distinct(title: str, rows: Sequence[Row], asked: Computation) -> int:
    name = entity_column(rows, folded(asked.column)) or column_of(rows, asked.column)
    chosen = matching(title, rows, asked.condition)
    return len({folded(row.get(name)) for row in chosen if not is_missing(row.get(name))})


def _statistic(how: str, values: Sequence[Decimal]) -> Decimal:
    if how == "sum":
        return sum(values, Decimal(0))
    if how == "average":
        return round(sum(values, Decimal(0)) / len(values), 4)
    return median(values) if how == "median" else max(values) if how == "highest" else min(values)


def _summary(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    column, numbers = _numbers(title, rows, asked)
    if asked.how == "sum" and len(numbers) > 1 and is_years(rows, column.name):
        raise TableError(f"the column {column.name!r} has years, which have no sum")
    if asked.how == "sum":
        refuse_sum_of_prices([row for row, _ in numbers], column.name)
    value = _statistic(asked.how, [number for _, number in numbers])
    return column.shown(value, [row for row, _ in numbers], asked.unit)


def _extreme(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    if not asked.show:
        return _summary(title, rows, asked)
    column, numbers = _numbers(title, rows, asked)
    own = folded(column.name).split()
    if related(rows, asked.show) == column.name or all(alike_any(word, own) for word in folded(asked.show).split()):
        return _summary(title, rows, asked)  # "the height of the tallest tower"
    label = Column(rows, shown_column(title, rows, asked.show, column.name))
    chosen = [(_name(row, label), number) for row, number in numbers if not is_missing(row.get(label.name))]
    highest = asked.how == "highest"
    best = _ranked(chosen, highest=highest, top=asked.top)
    first = next(iter(folded(asked.condition).split()), "a")  # "the director of the longest film" has other films, too
    adds = column.unit != "%" and len({key for key, _ in chosen}) < len(chosen)
    if adds and (first in PLAIN or not is_about(title, rows, first)):
        sums: dict[str, Decimal] = {}
        for key, number in chosen:
            sums[key] = sums.get(key, Decimal(0)) + number
        if _ranked(list(sums.items()), highest=highest, top=asked.top) != best:
            raise TableError(f"{label.name!r} has several rows each, and their numbers and totals rank differently")
    return best


def _name(row: Row, label: Column) -> str:
    """Return a cell as the name of its row, with the unit of its column."""
    cell = row[label.name]
    return str(label.shown(Decimal(str(cell))) if is_number(cell) else cell)


def _ranked(pairs: Sequence[tuple[str, Decimal]], *, highest: bool, top: int) -> str:
    """Return the names with the best number, the best few, or those at a place.

    Args:
        pairs: Names and numbers.
        highest: Whether the highest number is the best.
        top: Number of names; 0 for all names with the best number, -2 for those with the second best.

    Raises:
        TableError: A tie lies at the end of the best few.
    """
    values = sorted({number for _, number in pairs}, reverse=highest)
    if top > 0:
        order = sorted(pairs, key=lambda pair: -pair[1] if highest else pair[1])
        if len(order) > top and order[top - 1][1] == order[top][1]:
            raise TableError(f"several rows share place {top}")
        return ", ".join(dict.fromkeys(key for key, _ in order[:top]))
    place = max(-top, 1)
    if place > len(values):
        raise TableError(f"there are only {len(values)} different values")
    return ", ".join(dict.fromkeys(key for key, number in pairs if number == values[place - 1]))


def _dated(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    label = shown_column(title, rows, asked.show, "") if asked.show else ""
    name, when = _time_column(rows, asked)
    if label == name:
        label = shown_column(title, rows, asked.show, name)
    chosen = [(row, when(row)) for row in matching(title, rows, asked.condition, (name, asked.column))]
    chosen = [(row, time) for row, time in chosen if time not in ("", None)]
    if not chosen:
        raise TableError(f"no row with {asked.condition!r} has a date or time in the column {name!r}")
    times = sorted({time for _, time in chosen})
    best = times[0 if asked.how == "earliest" else -1]
    if not label:
        return next(str(row[name]) for row, time in chosen if time == best) if isinstance(best, int) else best
    places, shown = {time: Decimal(place) for place, time in enumerate(times)}, Column(rows, label)
    pairs = [(_name(row, shown), places[time]) for row, time in chosen]
    return _ranked(pairs, highest=asked.how == "latest", top=asked.top)


def _time_column(rows: Sequence[Row], asked: Computation) -> tuple[str, Callable[[Row], Any]]:
    """Return the column of dates, years or times of the day that is asked about, and the key that orders its rows."""
    words = folded(asked.column).split()
    hints = words or [word for word in folded(asked.condition).split() if word not in PLAIN or word in _DATED]
    if asked.column in ORIGINS:
        name = origin_column(rows, ORIGINS[asked.column])
    elif words and (name := clock_column(rows, words, is_named=True)):
        return name, lambda row: clock_minutes(str(row.get(name)))
    else:
        name = date_column(rows, hints)
        own = folded(name).split()
        if words and name and not any(alike_any(word, own) for word in words) and not set(words) <= _DATES:
            raise ValueError(f"{asked.column!r} names no column of dates")
    if not name and not words and (name := clock_column(rows, hints)):
        return name, lambda row: clock_minutes(str(row.get(name)))
    if not name:
        raise ValueError("the table has no column of dates")
    return name, (lambda row: str(row.get(name) or "")) if is_years(rows, name) else dates_of(rows, name)


def _share(title: str, rows: Sequence[Row], asked: Computation) -> str:
    """Return the share of rows, or of a column's sum, that fits a condition."""
    try:
        name = numbers_column(rows, asked.column)
    except ValueError:
        whole: Any = matching(title, rows, asked.column)
        members = set(map(id, whole))
        part: Any = [row for row in matching(title, rows, asked.condition) if id(row) in members]
        count = counter(title, rows, asked.column)
        whole, part = Decimal(str(count(whole))), Decimal(str(count(part)))
    else:
        chosen = set(map(id, matching(title, rows, asked.condition)))
        numbers = Column(rows, name).numbers(rows)
        refuse_sum_of_prices(rows, name)
        whole = sum((number for _, number in numbers), Decimal(0))
        part = sum((number for row, number in numbers if id(row) in chosen), Decimal(0))
    if whole <= 0:
        raise TableError("the whole of the share is zero")
    return f"{plain_number(round(100 * part / whole, 2))}%"


def _listed(title: str, rows: Sequence[Row], asked: Computation) -> str:
    chosen = matching(title, rows, asked.condition)
    label = shown_column(title, rows, asked.show, "")
    names = list(dict.fromkeys(str(row[label]) for row in chosen if not is_missing(row.get(label))))
    if not names:
        raise TableError(f"no row fits {asked.condition!r}")
    return ", ".join(names)


_COMPUTED: Mapping[str, Callable[[str, Sequence[Row], Computation], Any]] = {
    "count": _count, "distinct": _distinct, "sum": _summary, "average": _summary, "median": _summary,
    "highest": _extreme, "lowest": _extreme, "earliest": _dated, "latest": _dated, "share": _share, "list": _listed,
}  # fmt: skip


def _grouped(title: str, rows: Sequence[Row], asked: Computation) -> Any:
    """Return a value for each group of rows, or the names of the groups with the highest or lowest value."""
    if asked.how not in ("count", "sum", "average", "median", "highest", "lowest"):
        raise ValueError(f"{asked.how!r} cannot be computed for each group")
    key = _key(title, rows, asked)
    groups: dict[str, list[Row]] = {}
    for row in matching(title, rows, asked.condition):
        if name := key(row):
            groups.setdefault(name, []).append(row)
    if not groups:
        raise TableError(f"no row fits {asked.condition!r}")
    values = _values(title, rows, groups, asked)
    if not asked.rank:
        return {name: shown for name, (_, shown) in values.items()}
    pairs = [(name, number) for name, (number, _) in values.items()]
    if asked.how == "count" and len(pairs) > 1 and all(number == 1 for _, number in pairs):
        raise TableError("each of the groups has one row, so that none has the most or fewest")
    return _ranked(pairs, highest=asked.rank == "highest", top=asked.top)


def _values(
    title: str, rows: Sequence[Row], groups: Mapping[str, Sequence[Row]], asked: Computation
) -> dict[str, tuple[Decimal, Any]]:
    if asked.how == "count":
        count = counter(title, rows, asked.condition)
        counts = {name: count(members) for name, members in groups.items()}
        return {name: (Decimal(re.sub(r"[^\d.-]", "", str(count))), count) for name, count in counts.items()}
    column = Column(rows, numbers_column(rows, asked.column))
    is_single = all(len(members) == 1 for members in groups.values())
    if asked.how == "sum" and not (is_single and not _PRICED.isdisjoint(folded(asked.column).split())):
        refuse_sum_of_prices([row for members in groups.values() for row in members], column.name)
    if asked.rank:  # which compares the groups
        column.numbers([row for members in groups.values() for row in members])
    values: dict[str, tuple[Decimal, Any]] = {}
    for group, members in groups.items():
        if numbers := [number for _, number in column.numbers(members)]:
            value = _statistic(asked.how, numbers)
            values[group] = value, column.shown(value, members)
    if not values:
        raise TableError(f"no row has a number in the column {column.name!r}")
    return values


def _key(title: str, rows: Sequence[Row], asked: Computation) -> Callable[[Row], str]:
    """Return the function from a row to the name of its group."""
    by = folded(asked.by)
    fitting = [name for name in rows[0] if by and alike(folded(name), by)]
    if not fitting and by in _PERIODS:
        dates = date_column(rows, (), years=False)
        if not dates:
            raise ValueError("no dates")
        date = dates_of(rows, dates)
        return lambda row: _period(date(row), by)
    numbers = column_of(rows, asked.column) if asked.column else ""
    label = fitting[0] if len(fitting) == 1 else _label(title, rows, asked.by, numbers)
    return lambda row: "" if is_missing(row.get(label)) else str(row[label])


def _label(title: str, rows: Sequence[Row], by: str, numbers: str) -> str:
    """Return the column of the groups. Raises `ValueError` if the noun names no column."""
    label = shown_column(title, rows, by, numbers)
    words = folded(by).split()
    others = [{name: value for name, value in rows[0].items() if name != numbers}]
    if not alike_any(words[-1], folded(label).split()) and not is_about(title, others, by):
        raise ValueError(f"{by!r} names no column of the table")
    return label


def _period(date: str, by: str) -> str:
    if not date:
        return ""
    year, month = date[:4], int(date[5:7])
    if by == "year":
        return year
    return f"{MONTHS[month - 1].capitalize()} {year}" if by == "month" else f"Q{(month + 2) // 3} {year}"

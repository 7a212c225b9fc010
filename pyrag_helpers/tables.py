"""Counts, sums, averages, differences and extremes over the rows of a table, with conditions in words.

Every word of a condition must be a cell, a column, the table's name, or a general word for its rows; otherwise
`ValueError` is raised, because a word that is ignored would give the result for other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from pyrag_helpers.table_words import column_of, folded, matching, numbers_of, shown_column, unit_of

HOW = ("count", "sum", "average", "highest", "lowest", "difference")
Row = Mapping[str, Any]


def table_value(
    tables: Sequence[Any], how: str, column: str = "", where: str | Sequence[str] = "", show: str = ""
) -> str | int | float:
    """Return a value that is computed over the rows of a table, such as a count, a sum or the name of the highest row.

    A number of a column with a unit, such as "Length (m)", is a text with the unit. Raises `ValueError` if no table has
    such a column, or a word of the condition is neither a cell nor a column.

    Args:
        tables: Tables that `read_tables` returned, or a list of rows. If several fit, the one that the words name.
        how: "count", "sum", "average", "highest", "lowest" or "difference".
        column: Words for the column of numbers, such as "price".
        where: Condition on the rows in words, such as "Berlin" or "2025"; for a difference, the names of two rows.
        show: Words for the column to return from the highest or lowest row; empty for the number itself.
    """
    if how not in HOW:
        raise ValueError(f"how must be one of {', '.join(HOW)}, not {how!r}")
    reasons: list[str] = []
    values: list[tuple[str | int | float, int, Sequence[Row]]] = []
    words = set(folded(" ".join((column, show, where if isinstance(where, str) else " ".join(where)))).split())
    for title, rows in _tables(tables):
        try:
            value = _value(title, rows, how, column, where, show)
        except ValueError as error:
            reasons.append(str(error))
            continue
        values.append((value, len(words.intersection(folded(title).split())), rows))
    words_shared = max((shared for _, shared, _ in values), default=0)
    best = [(value, rows) for value, shared, rows in values if shared == words_shared]
    if not best:
        raise ValueError(reasons[0] if reasons else "there is no table to compute over: retrieve other passages")
    value, rows = best[0]
    adds = how in ("count", "sum")  # equal parts of a whole are not the whole
    if any(other != value or (adds and other_rows != rows) for other, other_rows in best[1:]):
        raise ValueError(f"{len(best)} tables fit and differ: pass the rows of one of them")
    return value


def _tables(tables: Sequence[Any]) -> Iterable[tuple[str, Sequence[Row]]]:
    if tables and not any(isinstance(table, Mapping) and "rows" in table for table in tables):
        yield "", tables
        return
    for table in tables:
        yield f"{table.get('title', '')} {str(table.get('source', '')).rpartition('.')[0]}", table["rows"]


def _value(
    title: str, rows: Sequence[Row], how: str, column: str, where: str | Sequence[str], show: str
) -> str | int | float:
    if not rows:
        raise ValueError("the table has no rows")
    if how == "difference":
        first, second = _two(title, rows, column, where)
        return _measured(rows, column_of(rows, column), abs(first - second))
    condition = where if isinstance(where, str) else " and ".join(where)
    if how == "count":
        return len(matching(title, rows, condition))
    name = column_of(rows, column)
    numbers = numbers_of(matching(title, rows, condition), name)
    if not numbers:
        raise ValueError(f"no row with {condition!r} has a number in the column {name!r}")
    values = [number for _, number in numbers]
    if how == "sum":
        return _measured(rows, name, sum(values, Decimal(0)))
    if how == "average":
        return _measured(rows, name, round(sum(values, Decimal(0)) / len(values), 4))
    best = max(values) if how == "highest" else min(values)
    if not show:
        return _measured(rows, name, best)
    label = shown_column(title, rows, show, name)
    return ", ".join(dict.fromkeys(str(row[label]) for row, number in numbers if number == best))


def _two(title: str, rows: Sequence[Row], column: str, where: str | Sequence[str]) -> tuple[Decimal, Decimal]:
    if isinstance(where, str) or len(where) != 2:
        raise ValueError("a difference needs the names of two rows: where=(first, second)")
    name = column_of(rows, column)
    pair: list[Row] = []
    for part in where:
        numbers = numbers_of(matching(title, rows, part), name)
        if len(numbers) != 1:
            raise ValueError(f"{len(numbers)} rows fit {part!r}, and a difference needs one")
        pair.append(numbers[0][0])
    (_, first), (_, second) = numbers_of(pair, name)  # of both, which must have one unit
    return first, second


def _measured(rows: Sequence[Row], name: str, number: Decimal) -> str | int | float:
    """Return a number, as a text with its unit if the column has one."""
    unit = unit_of(rows, name)
    return f"{_plain(number)} {unit}" if unit else _plain(number)


def _plain(number: Decimal) -> int | float:
    try:
        return int(number) if number == number.to_integral_value() else float(number)
    except (InvalidOperation, OverflowError) as error:
        raise ValueError("the numbers of the column are too large") from error

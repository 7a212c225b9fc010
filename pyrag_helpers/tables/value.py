"""Values that are computed over the rows of a table: counts, sums, shares, extremes and groups.

Every word of a condition must be a cell, a column, the table's name, or a general word for its rows; otherwise
`ValueError` is raised, because a word that is ignored would give the result for other rows. If the words are about the
table and it does not give the value (unlike units, a cell that is no number, several readings), the error is a
`TableError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyrag_helpers.tables.asked import Computation
from pyrag_helpers.tables.computing import HOW, compute
from pyrag_helpers.tables.vocabulary import SMALL
from pyrag_helpers.tables.words import Row, TableError, alike_any, folded, known_words, without_totals

__all__ = ["HOW", "table_value"]

Value = str | int | float | dict[str, Any]
_SHOWN = 3  # tables that an error names


def table_value(
    tables: Sequence[Any],
    how: str,
    column: str = "",
    where: str | Sequence[str] = "",
    show: str = "",
    by: str = "",
    rank: str = "",
    top: int = 0,
) -> Value:
    """Return a value that is computed over the rows of a table, such as a count, a sum or the name of the highest row.

    A number of a column with a unit, such as "Length (m)", is a text with the unit. Rows of totals and empty cells are
    left out. Raises `ValueError` if no table has such a column, or a word of the condition is neither a cell nor a
    column, and its subclass `TableError` if the table does not give the value: unlike units, a cell that is not a
    number, several tables or columns that fit.

    Args:
        tables: Tables that `read_tables` returned, or a list of rows. If several fit, the one that the words name.
        how: "count", "distinct", "sum", "average", "median", "highest", "lowest", "earliest", "latest", "difference",
            "share" or "list".
        column: Words for the column of numbers, such as "price"; for a share, what it is a share of.
        where: Condition on the rows in words, such as "Berlin", "not paid", "more than 50 cows" or "after March 2024";
            for a difference, the names of two rows.
        show: Words for the column to return from the chosen rows; empty for the number itself.
        by: Words for a column, or "month", "quarter" or "year". The value is then a dict with a value for each group.
        rank: "highest" or "lowest", to return the name of the group with that value.
        top: Number of names of a ranking to return; -2 for the second only.
    """
    if how not in HOW:
        raise ValueError(f"how must be one of {', '.join(HOW)}, not {how!r}")
    asked = Computation(how, column, where, show, by, rank, top)
    reasons: list[str] = []
    outcomes: list[tuple[Value | TableError, int, Sequence[Row], str]] = []
    words = (
        set(folded(" ".join((column, show, by, where if isinstance(where, str) else " ".join(where)))).split()) - SMALL
    )
    for title, table, problem, name in _tables(tables):
        rows = without_totals(table)
        value: Value | TableError
        try:
            value = compute(title, rows, asked)
            value = TableError(problem) if problem else value
        except TableError as error:
            value = TableError(problem or str(error))
        except ValueError as error:
            reasons.append(str(error))
            continue
        outcomes.append((value, sum(alike_any(word, known_words(title, rows)) for word in words), rows, name))
    if not outcomes:
        missing = "there is no table to compute over: retrieve other passages, or name a file that has one"
        raise ValueError(reasons[0] if reasons else missing)
    return _best(outcomes, adds=how in ("count", "distinct", "sum", "share", "list") or bool(by))


def _best(outcomes: Sequence[tuple[Value | TableError, int, Sequence[Row], str]], *, adds: bool) -> Value:
    """Return the value of the table that the words name. Raises `TableError` if several differ."""
    words_shared = max(shared for _, shared, *_ in outcomes)
    best = [(value, rows, name) for value, shared, rows, name in outcomes if shared == words_shared]
    value, rows, _ = best[0]
    for other, other_rows, _ in best:
        if isinstance(other, TableError):
            raise other
        if other != value or (adds and other_rows != rows):  # equal parts of a whole are not the whole
            names = "; ".join(name for *_, name in best[:_SHOWN]) + ("; …" if len(best) > _SHOWN else "")
            raise TableError(f"{len(best)} tables fit and differ ({names}): name one of them, or pass only its rows")
    assert not isinstance(value, TableError)
    return value


def _tables(tables: Sequence[Any]) -> Iterable[tuple[str, Sequence[Row], str, str]]:
    """Yield words, rows, problem and name of each table. A table with a problem has only some of its rows."""
    if tables and not any(isinstance(table, Mapping) and "rows" in table for table in tables):
        yield "", tables, "", ""
        return
    for table in tables:
        title, source = str(table.get("title", "")), str(table.get("source", ""))
        name = f"{title} ({source})" if title and source else title or source
        yield f"{title} {source.rpartition('.')[0]}", table["rows"], str(table.get("problem", "")), name

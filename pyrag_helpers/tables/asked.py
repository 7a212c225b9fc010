"""Arguments of a computation over a table, completed by its columns: "hours" and "in week 2" for "Hours Week 2"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyrag_helpers.tables.numbers import conversion, has_numbers, is_label, is_unit, price_column, unit_of
from pyrag_helpers.tables.words import Row, TableError, alike_any, column_by_word, column_of, folded, is_missing

_IN_UNIT = re.compile(r"(?:^|(?:^| )in )(?P<unit>[^\s\d]{1,12})$")
_OPEN_COLUMNS = frozenset(("value", "values", "amount", "number", "figure", "entry", "result"))
_LINKS = r"(?:in|for|on|of|during|at)(?: the)?"


@dataclass(frozen=True, slots=True)
class Computation:
    """Arguments of `table_value`, without the tables.

    Attributes:
        unit: Unit that the result is converted to; empty for the unit of the column.
    """

    how: str
    column: str = ""
    where: str | Sequence[str] = ""
    show: str = ""
    by: str = ""
    rank: str = ""
    top: int = 0
    unit: str = ""

    @property
    def condition(self) -> str:
        return self.where if isinstance(self.where, str) else " and ".join(self.where)


def completed(title: str, rows: Sequence[Row], asked: Computation) -> Computation:
    """Return a computation whose unit and column are taken from its condition, where the condition names them.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        asked: The computation.
    """
    if not asked.column:
        return asked
    asked = _with_unit(rows, asked)
    words = [word for word in folded(asked.column).split() if word != "the"]
    numbers = [name for name in rows[0] if has_numbers(rows, name)]
    names = [name for name in numbers if words and all(alike_any(word, folded(name).split()) for word in words)]
    if not names and set(words) <= _OPEN_COLUMNS:
        names, words = numbers, []
    elif not names:
        plain = [word for word in words if not alike_any(word, folded(title).split())]
        return replace(asked, column=" ".join(plain)) if plain and plain != words else asked
    if len(names) == 1 or any(folded(name) == " ".join(words) for name in names):
        return asked
    last = asked.where if isinstance(asked.where, str) else asked.where[-1] if asked.where else ""
    rests = {name: [word for word in folded(name).split() if not alike_any(word, words)] for name in names}
    fitting = [name for name, rest in rests.items() if rest and f" {' '.join(rest)} " in f" {folded(last)} "]
    if len(fitting) != 1:
        return asked
    rest = r"\s+".join(map(re.escape, rests[fitting[0]]))
    parts = [asked.where] if isinstance(asked.where, str) else list(asked.where)
    parts = [re.sub(rf"(?:\b{_LINKS} )?\b{rest}\b", " ", part, flags=re.IGNORECASE).strip() for part in parts]
    return replace(asked, column=fitting[0], where=parts[0] if isinstance(asked.where, str) else tuple(parts))


def _with_unit(rows: Sequence[Row], asked: Computation) -> Computation:
    """Return a computation with the unit at the end of its condition, as in "of the parts in kg"."""
    if (
        asked.how in ("count", "distinct", "list", "share")
        or asked.by
        or asked.show
        or not isinstance(asked.where, str)
    ):
        return asked
    match = _IN_UNIT.search(asked.where)
    if match is None or not is_unit(match["unit"]):
        return asked
    cells = {folded(value) for row in rows for value in row.values() if isinstance(value, str)}
    try:
        unit = unit_of(rows, column_of(rows, asked.column))
    except ValueError:
        return asked
    if not unit or folded(match["unit"]) in cells or conversion(match["unit"], unit) is None:
        return asked
    return replace(asked, where=asked.where[: match.start()].strip(), unit=match["unit"])


def numbers_column(rows: Sequence[Row], text: str) -> str:
    """Return the column of numbers that words mean.

    Args:
        rows: Rows of the table.
        text: Words for the column.

    Raises:
        TableError: Several columns fit.
        ValueError: No column of numbers fits; for a column of words, other numbers are meant.
    """
    try:
        name = column_of(rows, text)
    except TableError:
        raise
    except ValueError:
        name = price_column(rows) if text == "price" else ""
        if not name:
            raise
    if is_label(rows, name, text):
        raise ValueError(f"the column {name!r} numbers {text}, and does not count them")
    if any(not is_missing(row.get(name)) for row in rows) and not has_numbers(rows, name):
        raise ValueError(f"the column {name!r} has no numbers")
    return name


def named_numbers(rows: Sequence[Row], condition: str) -> str:
    """Return the column of numbers that a condition names, as in "the rent of 3A"; empty if it names none.

    Args:
        rows: Rows of the table.
        condition: Condition in words.

    Raises:
        TableError: It names several.
    """
    words = folded(condition).split()
    named = {column_by_word(rows, word) for word in words}
    names = [name for name in rows[0] if name in named and has_numbers(rows, name)]
    if len(names) > 1:
        raise TableError(f"the condition names several columns of numbers: {', '.join(names)}")
    return names[0] if names else ""

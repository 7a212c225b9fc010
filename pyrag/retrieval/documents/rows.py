"""Rows of a table as running text, for tables without a column of text: `name: Ann; town: Ystad`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

_SUBJECTS = ("title", "name")  # columns that say what a row is about
_NUMBERS = frozenset("0123456789.,:/%-+ ")


def row_text(names: Sequence[str], row: Sequence[str]) -> str:
    """Every cell that is not empty, after the name of its column."""
    pairs = ((name.strip(), cell.strip()) for name, cell in zip_longest(names, row, fillvalue=""))
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)


def row_title(table: str, names: Sequence[str], row: Sequence[str]) -> str:
    """The table's name with the cell that says what the row is about: that of a name, or the first of words."""
    cells = [(name.strip().lower(), cell.strip()) for name, cell in zip(names, row, strict=False) if cell.strip()]
    named = [cell for name, cell in cells if name in _SUBJECTS]
    words = [cell for name, cell in cells if name != "id" and not set(cell) <= _NUMBERS]
    subject = next(iter([*named, *words]), "")
    return f"{table}: {subject}" if subject else table

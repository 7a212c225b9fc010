"""Numbers in the columns of a table, read using evidence from the column, the other columns and the words.

`1.750` is more than a thousand next to `4,75` or `640`, and less than two next to `12.5` or `2300`. Without evidence, a
cell is kept as text, which is always right. A file with commas between its cells is treated as English unless its
numbers show otherwise, and so is a column of which each cell is like `5,741`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence, Set
from typing import Any

from pyrag_helpers.numerals import decimal_mark, plain_digits, read_numeral

_CELL = re.compile(
    r"(?P<sign>[-+−]?)(?P<numeral>(?:0|[1-9]\d*)(?:[.,'’_\u00a0\u202f\u2009]\d+)*|\.\d+)(?P<power>[eE][-+]?\d{1,2})?"
)
_OPEN = re.compile(r"[-+−]?[1-9]\d{0,2}([.,])\d{3}")  # numerals with two readings
_THOUSANDS = re.compile(r"[-+−]?[1-9]\d{0,2},\d{3}")
_COMMA = re.compile(r"\d,\d{1,2}(?!\d)")
_WHOLE_THOUSANDS = re.compile(r"[-+−]?[$€£]?\d{1,3}(?:,\d{3})*(?:\.\d+)?[%$€£]?")
_WHOLE = re.compile(r"[-+−]?(?:0|[1-9]\d*)")
_BRACKETED = re.compile(r"\s*\(\s*(\d[\d.,'’\u00a0\u202f ]*)\)\s*")  # negative numbers of accounts
Cell = str | int | float | bool | None
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y")
_SLASHED = ("%d/%m/%Y", "%m/%d/%Y")  # read only if one of them fits a column and the other does not
_NOTHING = frozenset(("", "na", "n/a", "null", "none", "-"))
_MIXED = "?"  # mark of a column with decimal commas and decimal points
_TEXT_COLUMNS = 200  # maximum number of a column's cells that are searched for words


def column_marks(header: Sequence[str], columns: Sequence[Sequence[str]], delimiter: str = ",") -> list[str]:
    """Return the decimal mark of each column: ".", ",", or "" if there is no evidence.

    Args:
        header: Names of the columns.
        columns: Cells of each column, or some of them.
        delimiter: Character between the cells of a row.
    """
    columns = [_signed(cells) for cells in columns]
    own = [_mark_of_column(cells) for cells in columns]
    marks = {mark for mark in own if mark in (".", ",")}
    common = marks.pop() if len(marks) == 1 else ""
    if not common and not marks:
        words = [cell for cells in columns for cell in cells[:_TEXT_COLUMNS] if not any(map(str.isdigit, cell))]
        common = decimal_mark([*header, *words]) or ("." if delimiter == "," else "")
    english = "" if common or any(_COMMA.search(cell) for cells in columns for cell in cells) else "."
    marked = zip(own, columns, strict=True)
    return [
        "" if mark == _MIXED else mark or common or (english if english and _has_thousands(cells) else "")
        for mark, cells in marked
    ]


def _has_thousands(cells: Sequence[str]) -> bool:
    """Return whether a column has different cells that are all like `5,741`."""
    filled = {cell.strip() for cell in cells if cell.lower() not in _NOTHING}
    return len(filled) > 1 and all(map(_THOUSANDS.fullmatch, filled))


def is_single_column(lines: Sequence[str]) -> bool:
    """Return whether the commas in the lines of a CSV file are inside numbers such as `5,741`, below one name.

    Args:
        lines: First lines of the file, with their ends.
    """
    first, *others = [line.strip() for line in lines if line.strip()] or [""]
    return not set(",;\t|").intersection(first) and bool(others) and all(map(_WHOLE_THOUSANDS.fullmatch, others))


def read_cell(cell: str, mark: str) -> int | float | None:
    """Return the number in a cell; None if the cell has other content or its number has two readings.

    Args:
        cell: Text of the cell.
        mark: Decimal mark of its column; empty if there is no evidence.
    """
    match = _CELL.fullmatch(plain_digits(cell.strip()))
    if match is None or (not mark and _OPEN.fullmatch(match["numeral"])):
        return None
    try:
        number = read_numeral(match["numeral"], mark)
    except ValueError:
        return None
    if match["power"]:
        plain = repr(number)  # computed as text, because 4.35 · 100 is not 435.0
        number = number * 10.0 ** int(match["power"][1:]) if "e" in plain else float(f"{plain}{match['power']}")
    return number if match["sign"] in ("", "+") else -number


def column_values(cells: Sequence[str], mark: str) -> list[Cell]:
    """Convert a column's cells to the narrowest type that they all have; empty cells become None.

    Args:
        cells: Texts of the cells.
        mark: Decimal mark of the column, as returned by `column_marks`.
    """
    cells = _signed(cells)
    filled = {cell for cell in cells if cell.lower() not in _NOTHING}
    numbers = {cell: read_cell(cell, mark) for cell in filled}
    if all(number is not None for number in numbers.values()):
        whole = all(isinstance(number, int) for number in numbers.values())
        return [None if (number := numbers.get(cell)) is None else number if whole else float(number) for cell in cells]
    return _dates(cells, filled) or [cell or None for cell in cells]


def _signed(cells: Sequence[str]) -> Sequence[str]:
    """Return the cells with `(1,200)` as `-1,200`, if the column also has numbers without brackets."""
    if not any(_BRACKETED.fullmatch(cell) for cell in cells):
        return cells
    plain = [cell for cell in cells if cell.lower() not in _NOTHING and not _BRACKETED.fullmatch(cell)]
    if not plain or not all(_CELL.fullmatch(plain_digits(cell.strip())) for cell in plain):
        return cells
    return [f"-{match[1]}" if (match := _BRACKETED.fullmatch(cell)) else cell for cell in cells]


def with_dates(cells: Sequence[Any]) -> Sequence[Any]:
    """Return the cells of a column with dates as YYYY-MM-DD, if all of its cells are dates of one form."""
    texts = ["" if cell is None else cell for cell in cells]
    if not all(isinstance(text, str) for text in texts):
        return cells
    filled = {text for text in texts if text.lower() not in _NOTHING}
    return (_dates(texts, filled) if filled else None) or cells


def _dates(cells: Sequence[str], filled: Set[str]) -> list[Cell] | None:
    """Return a column of dates of one form; None if they have none, or a day and month in either order."""
    for read in map(_date_reader, _DATES):
        values = {cell: read(cell) for cell in filled}
        if all(values.values()):
            return [values.get(cell) for cell in cells]
    readings = [{cell: read(cell) for cell in filled} for read in map(_date_reader, _SLASHED)]
    fitting = [values for values in readings if all(values.values())]
    return [fitting[0].get(cell) for cell in cells] if len(fitting) == 1 else None


def _date_reader(form: str) -> Callable[[str], str | None]:
    def read(cell: str) -> str | None:
        try:
            return dt.datetime.strptime(cell, form).date().isoformat()
        except ValueError:
            return None

    return read


def _mark_of_column(cells: Sequence[str]) -> str:
    """Return the decimal mark that a column's own numbers show; `_MIXED` if they show both."""
    figures = [plain_digits(cell.strip()) for cell in cells]
    figures = [figure for figure in figures if _CELL.fullmatch(figure)]
    shown = {mark for figure in set(figures) if (mark := decimal_mark([figure]))}
    if shown:
        return shown.pop() if len(shown) == 1 else _MIXED
    marks = {match[1] for figure in figures if (match := _OPEN.fullmatch(figure))}
    whole = [figure.lstrip("-+−") for figure in figures if _WHOLE.fullmatch(figure)]
    if len(marks) != 1 or not whole:
        return ""
    mark = marks.pop()
    if any(len(figure) > 3 for figure in whole):  # thousands are not grouped in this column
        return mark
    return "," if mark == "." else "."

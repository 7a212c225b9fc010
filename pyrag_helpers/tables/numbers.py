"""Numbers in the cells of a table's column, with the column's unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from pyrag_helpers.columns import column_marks, read_cell
from pyrag_helpers.measures.units import Unit, read_unit
from pyrag_helpers.numerals import plain_digits
from pyrag_helpers.tables.clocks import EITHER, duration_form, read_duration, shown_duration
from pyrag_helpers.tables.vocabulary import COLUMN_KINDS, INCOMES, KEYS, PIECES, QUANTITIES, UNIT_COLUMNS
from pyrag_helpers.tables.words import Row, TableError, alike, filled, folded, is_key, is_missing, is_number

_BRACKETS = re.compile(r"[(\[]([^()\[\]\d]{1,16})[)\]]\s*$|\bin ([^\W\d_/²³°%]{1,6}|[$€£¥])\s*$")
_MONEY_SIGNS = frozenset("$€£¥%")
_FIGURE = re.compile(
    r"(?P<before>[$€£¥]|[A-Z]{3}(?=[\s\d]))?\s*(?P<number>[-+−]?\s?(?:\d[\d.,'’_ \u00a0\u202f\u2009]*\d|\d)|\.\d+)"
    r"\s*(?P<unit>[^\W\d_][^\W\d]{0,11}(?:[/²³][^\W\d_]{0,6})?\.?|[%$€£¥°])?"
)
_ENGLISH_MONEY = re.compile(
    r"[-+−(]?\s?[$£]\s?[-−]?[1-9]\d{0,2},\d{3}\)?"
)  # a decimal comma has no three decimals here
_OTHER_ROWS = 500  # rows of other columns that show the decimal mark


@dataclass(frozen=True, eq=False)
class Column:
    """Column of numbers, for which the evidence of the whole table is read only once.

    Attributes:
        rows: All rows of the table.
        name: Name of the column.
    """

    rows: Sequence[Row]
    name: str

    @cached_property
    def form(self) -> str:
        """Form of its durations, or an empty string."""
        return duration_form(self.rows, self.name)

    @cached_property
    def unit(self) -> str:
        """Unit of its numbers, or an empty string."""
        return unit_of(self.rows, self.name)

    @cached_property
    def _mark(self) -> str:
        """Decimal mark of its texts, by the evidence of its numerals and of the other cells."""
        others = [other for other in self.rows[0] if other != self.name]
        columns = [[_numeral(row.get(self.name)) for row in self.rows]]
        columns += [[_numeral(row.get(other)) for row in self.rows[:_OTHER_ROWS]] for other in others]
        mark = column_marks(list(self.rows[0]), columns, "|")[0]
        cells = (str(cell).strip() for row in self.rows[:_OTHER_ROWS] for cell in row.values())
        return mark or ("." if any(map(_ENGLISH_MONEY.fullmatch, cells)) else "")

    def numbers(self, rows: Sequence[Row]) -> list[tuple[Row, Decimal]]:
        """Return some rows with their numbers, without the rows whose cells have no content.

        Raises:
            TableError: A cell is not a number, or numbers have different units.
            ValueError: No cell is a number.
        """
        name = self.name
        present = [row for row in rows if not is_missing(row.get(name))]
        if not all(is_number(row[name]) or isinstance(row[name], str) for row in present):
            raise TableError(f"the column {name!r} has other values than numbers")
        if present and not has_numbers(present, name):
            raise ValueError(f"the column {name!r} has no numbers")
        if self.form:
            return [(row, read_duration(row[name], self.form)) for row in present]
        read = [(row, *self._figure(row[name])) for row in present]
        units = {unit for _, _, unit in read}
        if other := _unit_column(rows, name):
            units.update(folded(row.get(other, "")) or "no unit" for row in present)
            units.discard("")
        if len(units) > 1:
            shown = ", ".join(sorted(unit or "no unit" for unit in units))
            raise TableError(f"the numbers of the column {name!r} have different units: {shown}")
        return [(row, number) for row, number, _ in read]

    def _figure(self, cell: Any) -> tuple[Decimal, str]:
        if is_number(cell):
            return Decimal(str(cell)), ""
        match = _FIGURE.fullmatch(plain_digits(cell.strip()))
        if match is None:
            raise TableError(f"{cell!r} in the column {self.name!r} is not a number")
        numeral = re.sub(r"[\s\u00a0\u202f\u2009]", "\u00a0", match["number"].strip()).replace("+", "")
        number = read_cell(numeral, self._mark)
        if number is None:
            raise TableError(f"{cell!r} in the column {self.name!r} has two readings")
        return Decimal(str(number)), f"{match['before'] or ''}{match['unit'] or ''}".casefold().rstrip(".")

    def shown(self, number: Decimal, rows: Sequence[Row] = (), wanted: str = "") -> str | int | float:
        """Return a number, as a text with its unit if the column has one.

        Args:
            number: The number.
            rows: Rows that it comes from, which show the unit; by default all rows.
            wanted: Unit in words to convert to; empty for the column's own.

        Raises:
            TableError: The column's unit cannot be converted.
        """
        if self.form and not wanted:
            return shown_duration(number, self.form)
        unit = unit_of(rows, self.name) if rows and not self.form else self.unit
        if wanted:
            factor = conversion(wanted, unit)
            if not unit or not factor:
                raise TableError(
                    f"the numbers of the column {self.name!r} are not in a unit that is known in {wanted!r}"
                )
            return f"{plain_number(round(number / factor, 6).normalize())} {wanted}"
        shown = plain_number(number)
        if not unit:
            return shown
        if unit in "$£¥€" and not _stands_behind(rows or self.rows, self.name, unit):
            return f"{'-' if shown < 0 else ''}{unit}{abs(shown)}"
        return f"{shown}{unit}" if unit == "%" else f"{shown} {unit}"


def has_numbers(rows: Sequence[Row], name: str) -> bool:
    """Return whether any cell of a column is a number, with or without a unit, or all are durations.

    Args:
        rows: Rows to look at.
        name: Column.
    """
    cells = (row.get(name) for row in rows)
    is_figure = any(is_number(cell) or (isinstance(cell, str) and _FIGURE.fullmatch(cell.strip())) for cell in cells)
    return is_figure or bool(duration_form(rows, name))


def _unit_column(rows: Sequence[Row], name: str) -> str:
    names = list(rows[0])[1:] if rows else []  # a first column of currencies names the rows, as in a list of rates
    return next((other for other in names if other != name and folded(other) in UNIT_COLUMNS), "")


def _numeral(value: Any) -> str:
    """Return the numeral of a cell, a text as it is, and nothing of a number that was read by other evidence."""
    if not isinstance(value, str):
        return ""
    match = _FIGURE.fullmatch(plain_digits(value.strip()))
    is_open_euro = match and "€" in value and re.fullmatch(r"\d{1,3},\d{3}", match["number"])
    return match["number"] if match and not is_open_euro else value


def unit_of(rows: Sequence[Row], name: str) -> str:
    """Return the unit of a column: in its name, in each of its cells, or in a column of units; empty if there is none.

    Args:
        rows: Rows of the table.
        name: Column.
    """
    if form := duration_form(rows, name):
        return EITHER if form == EITHER else "min"
    heading = _BRACKETS.search(name)
    texts = {str(row.get(name)).strip() for row in rows if not is_missing(row.get(name))}
    cells = {match["unit"] or match["before"] or "" for text in texts if (match := _FIGURE.fullmatch(text))}
    other = _unit_column(rows, name)
    listed = {str(row.get(other)) for row in rows if filled(row.get(other))} if other else set()
    for text in ((heading[1] or heading[2]).strip() if heading else "", _single(cells), _single(listed)):
        if text in _MONEY_SIGNS or (text and _whole_unit(text) is not None) or (text and listed == {text}):
            return text
    return _suffix(name)


def _suffix(name: str) -> str:
    """Return the unit at the end of a name such as "weight_kg" or "Price EUR"."""
    parts = re.split(r"[_\s]+", name.strip())
    last = parts[-1] if len(parts) > 1 else ""
    if len(parts) > 2 and parts[-2].lower() in ("a", "an", "per", "of", "the"):  # "Times a day"
        return ""
    unit = _whole_unit(last) or _whole_unit(last.upper()) if 0 < len(last) <= 3 else None
    return last if unit is not None and folded(last) not in ("in", "no", "a", "m", "s", "t", "day") else ""


def _single(texts: set[str]) -> str:
    return next(iter(texts)) if len(texts) == 1 else ""


def _whole_unit(text: str) -> Unit | None:
    unit, end = read_unit(text, 0)
    return unit if unit.kind and end == len(text) else None


def price_column(rows: Sequence[Row]) -> str:
    """Return the only column of money if it may be a price, such as "Rent (EUR)", or an empty string."""
    names = [name for name in rows[0] if _is_money(unit_of(rows, name)) and has_numbers(rows, name)]
    return names[0] if len(names) == 1 and INCOMES.isdisjoint(folded(names[0]).split()) else ""


def _is_money(text: str) -> bool:
    return text in _MONEY_SIGNS - {"%"} or ((unit := _whole_unit(text)) is not None and unit.kind.startswith("money"))


def _stands_behind(rows: Sequence[Row], name: str, sign: str) -> bool:
    return any(str(row.get(name)).rstrip().endswith(sign) for row in rows) or sign in name


def refuse_sum_of_prices(rows: Sequence[Row], name: str) -> None:
    """Raise an error if a column may have prices of single pieces, and another column tells how many were sold.

    Args:
        rows: Rows that are added up.
        name: Column whose numbers are added up.

    Raises:
        TableError: A sum of the column may leave out how many pieces were sold.
    """
    words = set(folded(name).split())
    if words.isdisjoint(("price", "prices")) or not words.isdisjoint(("total", "line", "full", "order", "sum")):
        return
    others = (other for other in (rows[0] if rows else ()) if other != name and set(folded(other).split()) <= PIECES)
    for other in others:
        if has_numbers(rows, other) and any(number != 1 for _, number in Column(rows, other).numbers(rows)):
            raise TableError(
                f"{name!r} may be the price of one piece, and {other!r} the number of pieces, so a sum of {name!r} "
                f"may be wrong: multiply them in each row, row[{name!r}] * row[{other!r}]"
            )


def plain_number(number: Decimal) -> int | float:
    """Return a number without needless decimals."""
    try:
        return int(number) if number == number.to_integral_value() else float(number)
    except (InvalidOperation, OverflowError) as error:
        raise ValueError("the numbers of the column are too large") from error


def conversion(text: str, own: str) -> Decimal | None:
    """Return the factor from a unit in words, such as "kg" or "euros", to the unit of a column.

    Args:
        text: Unit in words.
        own: Unit of the column; empty for a column without a unit.

    Returns:
        1 if the column has no unit that is known, or None if the units cannot be converted exactly.
    """
    asked, unit = _whole_unit(text), _whole_unit(own) if own else None
    if own == EITHER:
        return None
    if asked is None or unit is None:
        return None if asked and asked.kind == "share" and own != "%" else Decimal(1)
    if asked.kind != unit.kind or ((asked.offset or unit.offset or asked.spread or unit.spread) and asked != unit):
        return None
    return Decimal(1) if asked.factor == unit.factor else Decimal(str(asked.factor)) / Decimal(str(unit.factor))


def is_unit(text: str) -> bool:
    """Return whether a text is a unit."""
    return bool(text) and _whole_unit(text) is not None


def is_years(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column has years and nothing else.

    Args:
        rows: Rows to look at.
        name: Column.
    """
    values = [row.get(name) for row in rows if row.get(name) is not None]
    return bool(values) and all(isinstance(value, int) and 1500 <= value <= 2100 for value in values)


def is_label(rows: Sequence[Row], name: str, text: str) -> bool:
    """Return whether a column only numbers things, as "Order" and "Order no" do for "orders".

    Args:
        rows: Rows of the table.
        name: Column.
        text: Words that mean the column.
    """
    words, own = folded(text).split(), folded(name).split()
    noun = words[-1] if words else ""
    cells = [row[name] for row in rows if not is_missing(row.get(name))]
    numbers = [cell for cell in cells if isinstance(cell, int)]
    if len(numbers) < len(cells) or not any(alike(noun, word) for word in own):
        return False
    measures = {word for kind in COLUMN_KINDS for word in kind} - KEYS
    if name == next(iter(rows[0])) and measures.isdisjoint(own) and len(numbers) > 1 and not is_years(rows, name):
        return numbers == sorted(set(numbers))
    if noun in own or (QUANTITIES | measures).intersection(own):
        return False
    values = set(numbers)
    counts_up = bool(values) and max(values) - min(values) < 2 * len(values)  # 1, 2, 3, also once for each day
    return is_key(name) or (noun.endswith("s") and counts_up)

"""Dates in the cells of a table's column.

`03/04/2024` is read by the evidence of the column: a cell such as `14/03/2024` shows that days come first. A column of
dates with a cell that cannot be read, such as `2024-13-45`, is never computed with.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from pyrag_helpers.date_forms import find_dates
from pyrag_helpers.dates import parse_date
from pyrag_helpers.tables.numbers import is_years
from pyrag_helpers.tables.words import Row, TableError, alike, folded, is_missing

_ISO = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?(?:[T ].*)?")
_EITHER_WAY = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(\d{4})")
_LIKE_DATE = re.compile(r"\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{2}[./-]\d{2}[./-]\d{2}")
_DAY_FIRST, _MONTH_FIRST = "day", "month"


def dates_of(rows: Sequence[Row], name: str) -> Callable[[Row], str]:
    """Return a function from a row to the date in a column, as YYYY-MM-DD or YYYY-MM; empty without a date.

    Args:
        rows: All rows of the table, whose other dates show whether days or months come first.
        name: Column.
    """
    order = _order(rows, name)
    return lambda row: _date(row.get(name), order)


def date_of(value: object) -> str:
    """Return the date in a text as YYYY-MM-DD or YYYY-MM; empty if there is no single date."""
    return _date(value, "")


def _date(value: object, order: str) -> str:
    return "" if value is None or isinstance(value, int | float) else _read(str(value).strip(), order)


@lru_cache(maxsize=1 << 15)
def _read(text: str, order: str) -> str:
    if match := _EITHER_WAY.fullmatch(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        is_month_first = second > 12 or (order == _MONTH_FIRST and first <= 12)
        if first <= 12 and second <= 12 and first != second and not order:
            return ""
        month, day = (first, second) if is_month_first else (second, first)
        return f"{year:04}-{month:02}-{day:02}" if exists(year, month, day) else ""
    if match := _ISO.fullmatch(text):
        is_date = exists(int(match[1]), int(match[2]), int(match[3] or 1)) and (match[3] is None or int(match[3]))
        return text[:10].strip() if is_date and find_dates(text)[:1] and not find_dates(text)[0].problem else ""
    forms = find_dates(text) if re.search(r"\d{4}", text) else ()
    if len(forms) != 1 or forms[0].problem or not forms[0].month:
        return ""
    try:
        day_of_form = parse_date(text).isoformat()
    except ValueError:
        return ""
    return day_of_form if forms[0].day else day_of_form[:7]


def exists(year: int, month: int, day: int) -> bool:
    """Return whether a day is in the calendar.

    Args:
        year: The year.
        month: Number of the month.
        day: Day of the month.
    """
    try:
        dt.date(year, month, day)
    except ValueError:
        return False
    return True


def _order(rows: Sequence[Row], name: str) -> str:
    """Return whether days or months come first in a column; empty if there is no evidence, or it is contradictory."""
    texts = {value.strip() for row in rows if isinstance(value := row.get(name), str)}
    matches = [match for text in texts if (match := _EITHER_WAY.fullmatch(text))]
    orders = {_DAY_FIRST for match in matches if int(match[1]) > 12}
    orders |= {_MONTH_FIRST for match in matches if int(match[3]) > 12}
    return orders.pop() if len(orders) == 1 else ""


def date_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns that hold dates and nothing else."""
    return [name for name in rows[0] if (cells := _cells(rows, name)) and all(map(dates_of(rows, name), cells))]


def _cells(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if not is_missing(row.get(name))]


def unread_dates(rows: Sequence[Row]) -> dict[str, str]:
    """Return the columns of dates with a cell that is not a date or has two readings, with the first such cell."""
    unread: dict[str, str] = {}
    for name in rows[0]:
        read, cells = dates_of(rows, name), _cells(rows, name)
        if not all(isinstance(row[name], str) for row in cells):
            continue
        others = [str(row[name]) for row in cells if not read(row)]
        alike_dates = len(cells) - len(others) + sum(bool(_LIKE_DATE.match(text.strip())) for text in others)
        if others and 2 * alike_dates > len(cells):
            unread[name] = others[0]
    return unread


def date_column(rows: Sequence[Row], hints: Sequence[str], *, years: bool = True) -> str:
    """Return the column of dates, or of years, that words mean; empty without such a column.

    Args:
        rows: Rows of the table.
        hints: Words that may name the column.
        years: Whether a column of years may be meant.

    Raises:
        TableError: Several columns fit, or the one that fits has a cell that cannot be read.
    """
    unread = unread_dates(rows)
    dates = [*date_columns(rows), *unread]
    whole_years = [name for name in rows[0] if is_years(rows, name)] if years else []
    named = [name for name in (*dates, *whole_years) if any(alike(hint, word) for hint in hints for word in _own(name))]
    if not named and {"date", "dates", "dated"}.intersection(hints):
        named = [name for name in dates if folded(name) == "date"]
    for names in (named, dates, whole_years):
        if len(names) > 1:
            raise TableError(f"several columns have dates: {', '.join(names)}")
        if names and names[0] in unread:
            raise TableError(f"{unread[names[0]]!r} in the column {names[0]!r} is not a date with one reading")
        if names:
            return names[0]
    return ""


def origin_column(rows: Sequence[Row], origins: Collection[str]) -> str:
    """Return the column of dates or years that shows how old things are, such as "Built".

    Args:
        rows: Rows of the table.
        origins: Words that such names have, apart from "year" and "date".

    Raises:
        TableError: There is not exactly one such column.
    """
    dates = [*date_columns(rows), *unread_dates(rows), *(name for name in rows[0] if is_years(rows, name))]
    names = [name for name in dates if set(_own(name)) - {"year", "in"} <= set(origins)]
    if len(names) != 1:
        raise TableError(f"{len(names)} columns tell how old a row is, and one is needed")
    return date_column(rows, folded(names[0]).split())


def _own(name: str) -> list[str]:
    return [word for word in folded(name).split() if word not in ("date", "day", "time", "on", "at", "of")]


def last_day(prefix: str) -> str:
    """Return the last day of a year, month or day, as YYYY-MM-DD."""
    year, month, day = (*map(int, prefix.split("-")), 0, 0)[:3]
    if day:
        return prefix
    month = month or 12
    after = dt.date(year + month // 12, month % 12 + 1, 1)
    return (after - dt.timedelta(days=1)).isoformat()

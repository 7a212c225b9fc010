"""Headings of tables in spreadsheets, pages and Word documents.

Their first row may be a title above the heading, which becomes a paragraph here. A heading of two rows, whose upper
cells are merged, becomes one row, so that every column has its whole name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, groupby, pairwise, zip_longest

NO_NAME = "\ue000"
"""Text of the cells of an empty heading, which a reader adds above a table of labels and values."""

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|(?: *:?-+:? *\|)+")
_VALUE = re.compile(r"(?!(?:19|20)\d\d$)[-+]?(?=\D*\d)[\d.,:/%\s-]+")  # years may be names of columns
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
_FIGURE = re.compile(r"\W*+\d[\d.,:/%\s-]*+\W*+[^\W\d]{0,4}+\W*")
_MAX_TITLES = 12  # rows above a heading


def with_headings(text: str) -> str:
    """Return a Markdown text with the heading of each table in its first row.

    Args:
        text: Output of a converter, which takes the first row of each table for its heading.
    """
    lines: list[str] = []
    for is_table, group in groupby(text.split("\n"), lambda line: line.startswith("|")):
        block = list(group)
        has_rule = is_table and len(block) > 1 and bool(_RULE.fullmatch(block[1].strip()))
        lines += _corrected(block) if has_rule else block
    return "\n".join(lines).replace(NO_NAME, "")


def _corrected(lines: list[str]) -> list[str]:
    rows = [_cells(line) for line in (lines[0], *lines[2:])]
    titles, table = headed(rows)
    if len(table) == len(rows):
        return lines
    above = [text for title in titles for text in (title, "")]
    first, *others = [f"| {' | '.join(row)} |" for row in table]
    return [*above, first, f"|{' --- |' * len(table[0])}", *others]


def headed(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Split the titles from a table, and find or add its heading.

    A heading of two rows is joined. A table that begins with data gets an empty heading.

    Args:
        rows: Cells of the table. A merged cell is followed by empty ones, or stands in the next row again.

    Returns:
        Titles above the heading, and the rows from the heading on.
    """
    start = next((place for place, row in enumerate(rows[:_MAX_TITLES]) if sum(map(bool, row)) > 1), 0)
    if start and any(map(_VALUE.fullmatch, rows[start])):
        start = 0
    titles = [text for row in rows[:start] if (text := " ".join(filter(None, row)))]
    rows = rows[start:]
    if rows and _begins_with_data(rows):
        rows = [[""] * len(rows[0]), *rows]
    elif len(rows) > 2 and _continues(rows):
        rows = [_joined(rows[0], rows[1]), *rows[2:]]
    return titles, rows


def _begins_with_data(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row holds figures of the same kinds as the rows below, rather than names of columns."""
    first, *others = rows
    figures = [place for place, cell in enumerate(first) if _FIGURE.fullmatch(cell) and not _YEAR.fullmatch(cell)]
    if not others or not figures or (len(figures) > 1 and _are_numbered([first[place] for place in figures])):
        return False
    if len(first) == 2:
        return True  # labels and values, such as `Height` and `37 m`
    return all(_unit(first[place]) in map(_unit, _figures(_column(others, place))) for place in figures)


def _are_numbered(names: Sequence[str]) -> bool:
    """Return whether names count up, such as days and classes."""
    numbers = [int(name) for name in names if name.isdecimal()]
    return len(numbers) == len(names) and all(after - before == 1 for before, after in pairwise(numbers))


def _unit(figure: str) -> str:
    return re.sub(r"[\d.,:/\s+-]", "", figure)


def _figures(cells: Iterable[str]) -> list[str]:
    return [cell for cell in cells if _FIGURE.fullmatch(cell)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line.strip())[1:-1]]


def _continues(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the second row is the second part of a heading.

    Its names stand under merged cells of the first row. It must also differ from a row of data: it leaves out the first
    column, repeats its names under each merged cell, or has names above columns of figures.
    """
    upper, lower, *others = (list(row) for row in rows)
    upper, lower = (row + [""] * (len(max(rows, key=len)) - len(row)) for row in (upper, lower))
    starts = [place for place, cell in enumerate(upper) if cell]
    spans = [range(start, stop) for start, stop in pairwise([*starts, len(upper)]) if _is_merged(lower[start:stop])]
    names = [tuple(filter(None, (lower[place] for place in span))) for span in spans]
    all_names = list(chain(*names))
    if len(set(all_names)) == len(all_names) and any(map(_DIGIT.search, all_names)):
        return False  # such as years, which name columns well enough
    if not names or any(_VALUE.fullmatch(name) or group.count(name) > 1 for group in names for name in group):
        return False
    places = {place for span in spans for place in span}
    singles = [(upper[place], lower[place]) for place in range(len(upper)) if place not in places]
    if 0 not in places and lower[0] in ("", upper[0]) and all(low in ("", high) for high, low in singles):
        return True
    if len(names) > 1 and len(set(names)) == 1:
        return True
    has_gap = len(set(all_names)) < len(all_names) or any(high and low in ("", high) for high, low in singles)
    return has_gap and all(_is_above_figures(lower[place], _column(others, place)) for place in places if lower[place])


def _is_merged(names: Sequence[str]) -> bool:
    """Return whether the cells below a name, except for empty ones on the right, are several names."""
    return len(names) > 1 and all(names[:2])


def _column(rows: Iterable[Sequence[str]], place: int) -> list[str]:
    return [row[place] for row in rows if place < len(row) and row[place]]


def _is_above_figures(name: str, cells: Sequence[str]) -> bool:
    """Return whether most cells of a column are figures, and its name is not, or is a year above other figures."""
    if 2 * len(_figures(cells)) <= len(cells):
        return False
    return not any(map(_YEAR.fullmatch, cells)) if _YEAR.fullmatch(name) else not _FIGURE.fullmatch(name)


def _joined(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Return the names of columns; a merged cell of the upper row covers the columns to its right."""
    names: list[str] = []
    above = ""
    for high, low in zip_longest(upper, lower, fillvalue=""):
        above = high or (above if low else "")
        names.append(above if low == above else f"{above} {low}".strip())
    return names

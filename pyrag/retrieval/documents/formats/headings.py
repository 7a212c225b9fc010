"""Headings of tables in spreadsheets, pages and Word documents.

Their first row may be a title above the heading, which becomes a paragraph here. A heading of two rows, whose upper
cells are merged, becomes one row, so that every column has its whole name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby, zip_longest

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|(?: *:?-+:? *\|)+")
_DIGIT = re.compile(r"\d")
_VALUE = re.compile(r"(?!(?:19|20)\d\d$)[-+]?[\d.,:/%\s-]*\d[\d.,:/%\s-]*")  # years may be names of columns
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
    return "\n".join(lines)


def _corrected(lines: list[str]) -> list[str]:
    rows = [_cells(line) for line in (lines[0], *lines[2:])]
    titles, table = headed(rows)
    if len(table) == len(rows):
        return lines
    first, *others = [f"| {' | '.join(row)} |" for row in table]
    return [*(text for title in titles for text in (title, "")), first, f"|{' --- |' * len(table[0])}", *others]


def headed(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Split the titles from a table, and join a heading of two rows.

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
    if len(rows) > 2 and _continues(rows[0], rows[1]):
        rows = [_joined(rows[0], rows[1]), *rows[2:]]
    return titles, rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line.strip())[1:-1]]


def _continues(upper: Sequence[str], lower: Sequence[str]) -> bool:
    """Return whether the lower row is the second part of a heading.

    Its names stand under a merged cell, and repeat, or leave out a column whose name fills both rows.
    """
    names = [low for high, low in zip(upper, lower, strict=False) if low and low != high]
    first = next((place for place, cell in enumerate(upper) if cell), len(upper))
    is_merged = any(low and not high for high, low in list(zip(upper, lower, strict=False))[first + 1 :])
    is_heading = len(set(names)) < len(names) or any(
        high and low in ("", high) for high, low in zip(upper, lower, strict=False)
    )
    return is_merged and is_heading and not any(map(_DIGIT.search, names))


def _joined(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Return the names of columns; a merged cell of the upper row goes on to the right."""
    names: list[str] = []
    above = ""
    for high, low in zip_longest(upper, lower, fillvalue=""):
        above = high or (above if low else "")
        names.append(above if low == above else f"{above} {low}".strip())
    return names

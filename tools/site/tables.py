"""Markdown for reference pages: tables, and docstrings in Google style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$")
_ENTRY = re.compile(r"^    (\**[\w.]+(?:, \**[\w.]+)*): (.*)$")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, or an empty text if there are no rows.

    Args:
        head: Titles of the columns.
        rows: Cells of each row.
    """
    lines = [_row(cells) for cells in rows]
    return "\n".join([_row(head), _row(["---"] * len(head)), *lines]) + "\n" if lines else ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def code(text: Any) -> str:
    """Return a text as inline code, or an empty text for an empty one."""
    return f"`{text}`" if str(text) else ""


def docstring(value: Any) -> str:
    """Return an object's docstring as Markdown, with its sections as lists of entries."""
    return prose(inspect.getdoc(value) or "")


def prose(text: str) -> str:
    """Return a docstring as Markdown: sections become lists, and indented examples become code blocks."""
    lines: list[str] = []
    entries = False
    for line in inspect.cleandoc(text).splitlines():
        if section := _SECTION.match(line):
            entries = True
            lines += ["", f"**{section[1]}**", ""]
        elif entries and (entry := _ENTRY.match(line)):
            lines.append(f"* `{entry[1]}`: {entry[2]}")
        elif entries and line.startswith("    "):
            lines.append(f"  {line.strip()}" if line.startswith("        ") else line.strip())
        else:
            entries = entries and not line
            lines.append(line)
    return "\n".join(lines).strip() + "\n"


def summary(value: Any) -> str:
    """Return the first paragraph of an object's docstring as one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())

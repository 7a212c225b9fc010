"""Passages with tables, narrowed to the row that the question names, so that no cell of another row is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.words import fold
from pyrag.trace.model import Passage

_RULE = re.compile(r":?-{2,}:?")
_MAX_LINES = 400


@dataclass(frozen=True, slots=True)
class NamedRow:
    """Row of a Markdown table.

    Attributes:
        line: Number of its line.
        cells: Its cells by column.
    """

    line: int
    cells: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return self.cells[0][1] if self.cells else ""

    def as_record(self) -> str:
        """Return the row as fields: `column: cell; column: cell`."""
        return "; ".join(f"{column}: {cell}" if column else cell for column, cell in self.cells if cell)


def narrowed(analysis: QuestionAnalysis, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages, in which a table is reduced to a record if the question names one of its rows.

    Args:
        analysis: The question.
        passages: Passages with or without tables.
    """
    question = f" {fold(analysis.question)} "
    return [_narrowed(question, passage) if passage.text.count("|") > 2 else passage for passage in passages]


def _narrowed(question: str, passage: Passage) -> Passage:
    rows = list(rows_of(passage.text))
    named = [row for row in rows if (name := fold(row.name)) and f" {name} " in question and not name.isdigit()]
    longest = max((len(fold(row.name)) for row in named), default=0)
    named = [row for row in named if len(fold(row.name)) == longest]
    if len(named) != 1 or len(rows) < 2:
        return passage
    dropped = {row.line for row in rows}
    lines = passage.text.splitlines()
    headings = {place for place in range(len(lines)) if place + 1 in dropped | _rules(lines) and "|" in lines[place]}
    narrowed_lines = [
        named[0].as_record() if place == named[0].line else line
        for place, line in enumerate(lines)
        if place == named[0].line or (place not in dropped and place not in _rules(lines) and place not in headings)
    ]
    return replace(passage, text="\n".join(narrowed_lines))


def _rules(lines: Sequence[str]) -> set[int]:
    return {place for place, line in enumerate(lines) if "|" in line and _is_rule(_cells(line))}


def _is_rule(cells: Sequence[str]) -> bool:
    return all(_RULE.fullmatch(cell) for cell in cells)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_of(text: str) -> Iterator[NamedRow]:
    """Yield the rows of Markdown tables; the first line of a table names its columns.

    Args:
        text: Text of a passage.
    """
    header: list[str] = []
    for place, line in enumerate(text.splitlines()[:_MAX_LINES]):
        cells = _cells(line)
        if "|" not in line or len(cells) < 2:
            header = []
        elif not header:
            header = cells
        elif not _is_rule(cells):
            yield NamedRow(place, tuple(zip(header, cells, strict=False)))

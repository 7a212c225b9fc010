"""Answers from a table in a passage: the cell where the row and the column that a question names meet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrag.agents.protocol import Reading
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import STOPWORDS, fold
from pyrag.trace.model import Passage

_CONFIDENCE = 0.8
_RULE = re.compile(r":?-{2,}:?")
_MAX_ROWS = 200


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with the names of its row and column."""

    row: str
    column: str
    text: str


def by_table(analysis: QuestionAnalysis, pages: Sequence[View], passages: Sequence[Passage]) -> Reading | None:
    """Return the one cell that a question names by its row and column; None if no cell or several are named.

    Args:
        analysis: The question.
        pages: A view of each passage.
        passages: The passages, whose lines hold the tables.
    """
    if analysis.wh not in ("who", "what", "which", "when", "where", "how much", "how many", "how long", "how", "name"):
        return None
    asked = fold(analysis.question).split()
    for page, passage in zip(pages, passages, strict=True):
        cells = [cell for cell in cells_of(passage.text) if _is_named(cell, asked, page)]
        if len({cell.text for cell in cells}) == 1 and _accounted(cells[0], asked, page):
            because = f"row “{cells[0].row}”, column “{cells[0].column}” of [{page.position + 1}]"
            return Reading(cells[0].text, True, (page.position,), because, _CONFIDENCE)
    return None


def cells_of(text: str) -> Iterator[Cell]:
    """Yield the cells of Markdown tables behind the first column; the first line of a table names its columns."""
    header: list[str] = []
    for line in text.splitlines()[:_MAX_ROWS]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "|" not in line or len(cells) < 2:
            header = []
        elif not header:
            header = cells
        elif not all(_RULE.fullmatch(cell) for cell in cells):
            for column, cell in zip(header[1:], cells[1:], strict=False):
                if cell:
                    yield Cell(cells[0], column, cell)


def _is_named(cell: Cell, asked: Sequence[str], page: View) -> bool:
    """Return whether the question has all words of the row and, unless it only says "value", of the column."""
    return _has(asked, cell.row) and (fold(cell.column) in _PLAIN_COLUMNS or _has(asked, cell.column))


_PLAIN_COLUMNS = frozenset(("value", "values", "details", "description", "specification", "data", ""))


def _has(asked: Sequence[str], name: str) -> bool:
    words = [word for word in fold(name).split() if word not in STOPWORDS]
    return bool(words) and all(any(are_alike(word, each) for each in asked) for word in words)


def _accounted(cell: Cell, asked: Sequence[str], page: View) -> bool:
    """Return whether every other word of the question is one of the page's: "the weight of the Heron H5"."""
    known = {*fold(cell.row).split(), *fold(cell.column).split(), *fold(page.title).split()}
    known |= {word for each in page.sentences for word in fold(each.text).split()}
    return all(word in STOPWORDS or word in _ASKING or any(are_alike(word, each) for each in known) for word in asked)


_ASKING = frozenset(("much", "many", "long", "number", "name", "value", "have", "tell"))


def other_label(analysis: QuestionAnalysis, passage: Passage, start: int) -> bool:
    """Return whether a mark stands under one label, and the question names another: "Present: …", "Absent: …".

    Args:
        analysis: The question.
        passage: The passage.
        start: First character of the mark.
    """
    labels = [(match.end(), match["label"]) for match in _LABEL.finditer(passage.text)]
    mine = next((label for end, label in reversed(labels) if end <= start and "\n" not in passage.text[end:start]), "")
    asked = fold(analysis.question).split()
    return bool(mine) and not _has(asked, mine) and any(_has(asked, label) for _, label in labels)


_LABEL = re.compile(r"(?:^|(?<=[.;!?] )|(?<=\n))(?:[-*] )?(?P<label>[A-Z][\w-]*(?: [\w-]+)?): ")


def other_row(analysis: QuestionAnalysis, passage: Passage, start: int) -> bool:
    """Return whether a mark stands in a table's row, and the question names another row of that table.

    Args:
        analysis: The question.
        passage: The passage.
        start: First character of the mark.
    """
    text = passage.text
    line = text[text.rfind("\n", 0, start) + 1 : (text.find("\n", start) + 1 or len(text) + 1) - 1]
    if line.count("|") < 2:
        return False
    asked = fold(analysis.question).split()
    rows = [cells.split("|")[0].strip() for each in text.splitlines() if (cells := each.strip().strip("|")).count("|")]
    mine = line.strip().strip("|").split("|")[0].strip()
    return not _has(asked, mine) and any(_has(asked, row) for row in rows if row != mine)

"""Answers from a table in a passage: the cell of the row and column that a question names."""

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
    """Cell of a table.

    Args:
        row: First cell of the row, which names it.
        column: Heading of the column.
        text: Text of the cell.
    """

    row: str
    column: str
    text: str


def by_table(analysis: QuestionAnalysis, pages: Sequence[View], passages: Sequence[Passage]) -> Reading | None:
    """Return the cell that a question names by its row and column.

    Args:
        analysis: Analysis of the question.
        pages: View of each passage.
        passages: Passages, whose lines hold the tables.

    Returns:
        The answer, or None if the question names no cell or several, or has words that the passage lacks.
    """
    if analysis.wh not in ("who", "what", "which", "when", "where", "how much", "how many", "how long", "how", "name"):
        return None
    question_words = fold(analysis.question).split()
    for page, passage in zip(pages, passages, strict=True):
        cells = [cell for cell in cells_of(passage.text) if _is_named(cell, question_words, page)]
        if len({cell.text for cell in cells}) == 1 and _is_covered(cells[0], question_words, page):
            because = f"row “{cells[0].row}”, column “{cells[0].column}” of [{page.position + 1}]"
            return Reading(cells[0].text, True, (page.position,), because, _CONFIDENCE)
    return None


def cells_of(text: str) -> Iterator[Cell]:
    """Yield the cells of Markdown tables except those in the first column.

    The first line of a table has the headings of its columns.
    """
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


def _is_named(cell: Cell, question_words: Sequence[str], page: View) -> bool:
    """Return whether a question contains the words of a cell's row and column. A column such as "value" is optional."""
    return _has(question_words, cell.row) and (fold(cell.column) in _PLAIN_COLUMNS or _has(question_words, cell.column))


_PLAIN_COLUMNS = frozenset(("value", "values", "details", "description", "specification", "data", ""))


def _has(question_words: Sequence[str], name: str) -> bool:
    """Return whether a question contains all words of a name, in any form."""
    words = [word for word in fold(name).split() if word not in STOPWORDS]
    return bool(words) and all(any(are_alike(word, asked) for asked in question_words) for word in words)


def _is_covered(cell: Cell, question_words: Sequence[str], page: View) -> bool:
    """Return whether each word of the question is in the cell, on its page, or a common word."""
    page_words = {*fold(cell.row).split(), *fold(cell.column).split(), *fold(page.title).split()}
    page_words |= {word for sentence in page.sentences for word in fold(sentence.text).split()}
    return all(
        word in STOPWORDS or word in _ASKING or any(are_alike(word, page_word) for page_word in page_words)
        for word in question_words
    )


_ASKING = frozenset(("much", "many", "long", "number", "name", "value", "have", "tell"))


def other_label(analysis: QuestionAnalysis, passage: Passage, start: int) -> bool:
    """Return whether a span has a label such as "Present:" while the question names another label in the passage.

    Args:
        analysis: Analysis of the question.
        passage: Passage of the span.
        start: First character of the span.
    """
    labels = [(match.end(), match["label"]) for match in _LABEL.finditer(passage.text)]
    own_label = next(
        (label for end, label in reversed(labels) if end <= start and "\n" not in passage.text[end:start]), ""
    )
    question_words = fold(analysis.question).split()
    return (
        bool(own_label)
        and not _has(question_words, own_label)
        and any(_has(question_words, label) for _, label in labels)
    )


_LABEL = re.compile(r"(?:^|(?<=[.;!?] )|(?<=\n))(?:[-*] )?(?P<label>[A-Z][\w-]*(?: [\w-]+)?): ")


def other_row(analysis: QuestionAnalysis, passage: Passage, start: int) -> bool:
    """Return whether a span is in a table's row while the question names another row of the table.

    Args:
        analysis: Analysis of the question.
        passage: Passage of the span.
        start: First character of the span.
    """
    text = passage.text
    line = text[text.rfind("\n", 0, start) + 1 : (text.find("\n", start) + 1 or len(text) + 1) - 1]
    if line.count("|") < 2:
        return False
    question_words = fold(analysis.question).split()
    table = (row.strip().strip("|") for row in text.splitlines())
    rows = [row.split("|")[0].strip() for row in table if "|" in row]
    own_row = line.strip().strip("|").split("|")[0].strip()
    return not _has(question_words, own_row) and any(_has(question_words, row) for row in rows if row != own_row)

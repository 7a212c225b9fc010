"""What counts as right for a step of a trace: whether its documents sufficed, and what it should have answered.

Data sets label whole questions, rarely their sub-questions. So a step is labelled only where the question's labels
settle it, and is left out else. Left out: labels of data sets that have them for each hop (`sets`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.evaluation.metrics import exact_match
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.model import Answer, Attempt


@dataclass(frozen=True, slots=True)
class Label:
    """`answers` are the spellings that count; those of the question where the documents do not suffice."""

    sufficient: bool
    answers: tuple[str, ...]


def label(row: ResultRow, attempt: Attempt) -> Label | None:
    """Sufficient: a step of a question that came out right, answered from documents with a gold passage among them.
    Insufficient: documents without any gold passage, from which nothing of use was read. None: nobody can tell.
    """
    answer, golds = attempt.answer, {hop.gold for hop in row.support}
    if answer is None or not golds:
        return None
    hit = not golds.isdisjoint(attempt.passages)
    if answer.known and row.em == 1.0:
        return Label(True, accepted(row, answer)) if hit else None
    return None if hit else Label(False, row.gold)


def accepted(row: ResultRow, answer: Answer) -> tuple[str, ...]:
    """Spellings of a right step's answer: the question's where it is the question's answer, else its own."""
    return row.gold if exact_match(answer.text, row.gold) else (answer.text,)

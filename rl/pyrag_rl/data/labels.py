"""Labels of a step of a trace: whether its documents sufficed, and its right answer.

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
    """Label an attempt, where the labels of its question settle it.

    Args:
        row: the scored question, with its gold passages.
        attempt: one reading of documents in its trace.

    Returns:
        Sufficient for a right question answered from a gold passage; insufficient where no gold passage is among the
        documents and no right answer was read; None otherwise.
    """
    answer, golds = attempt.answer, {hop.gold for hop in row.support}
    if answer is None or not golds:
        return None
    hit = not golds.isdisjoint(attempt.passages)
    if answer.known and row.em == 1.0:
        return Label(True, accepted(row, answer)) if hit else None
    return None if hit else Label(False, row.gold)


def accepted(row: ResultRow, answer: Answer) -> tuple[str, ...]:
    """Return the accepted spellings of a right step's answer.

    Args:
        row: the scored question; its spellings count where the answer is the question's.
        answer: the answer of the step.
    """
    return row.gold if exact_match(answer.text, row.gold) else (answer.text,)

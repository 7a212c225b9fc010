"""Disjoint training and validation questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError, UsageError
from pyrag.evaluation.datasets.layout import Question, read_questions
from pyrag.evaluation.datasets.suite import digest, sample
from pyrag.evaluation.metrics import normalise


@dataclass(frozen=True, slots=True)
class Split:
    """Questions of a run. `identity` identifies them, for comparing runs."""

    train: tuple[Question, ...]
    validation: tuple[Question, ...]
    identity: dict[str, str | int | None]


def split(train: Path, validation: str, *, limit: int | None = None, seed: int = 0) -> Split:
    """Read the training and validation questions.

    Args:
        train: File of the training questions.
        validation: File of the validation questions, or the share of `train` to hold out, such as "0.2".
        limit: Maximum number of training questions to learn from; None for all.
        seed: Seed of the samples.

    Raises:
        DataError: A file is damaged or too small.
        UsageError: The two files share a question.
    """
    questions = list(read_questions(train))
    identity: dict[str, str | int | None] = {"train": digest(train), "limit": limit, "seed": seed}
    share = _share(validation)
    if share is None:
        held_out = list(read_questions(Path(validation)))
        identity["validation"] = digest(Path(validation))
        _check_overlap(questions, held_out, train, Path(validation))
    else:
        held_out = sample(questions, max(1, round(share * len(questions))), seed)
        held_out_keys = _keys(held_out)
        questions = [question for question in questions if not _keys([question]) & held_out_keys]
        identity["validation"] = validation
    if not questions or not held_out:
        raise DataError(f"{train} has too few questions to learn from some and measure on others: name a larger file")
    return Split(tuple(sample(questions, limit, seed)), tuple(held_out), identity)


def _share(validation: str) -> float | None:
    try:
        share = float(validation)
    except ValueError:
        return None
    if not 0 < share < 1:
        raise UsageError(f"--val must be a file or a share between 0 and 1, not {validation}")
    return share


def _check_overlap(train: Sequence[Question], held_out: Sequence[Question], path: Path, other: Path) -> None:
    both = _keys(train) & _keys(held_out)
    if both:
        raise UsageError(
            f"{path} and {other} share {len(both)} ids or questions, such as {min(both)[:80]!r}: "
            "validation questions must not be learned from, so take them out of one of the files"
        )


def _keys(questions: Sequence[Question]) -> set[str]:
    """Return ids and normalised texts. Questions that share either one are the same."""
    return {question.id for question in questions} | {normalise(question.question) for question in questions}

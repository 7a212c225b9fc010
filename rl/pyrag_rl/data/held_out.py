"""Held-out questions: no question is both learnt from and measured on, compared by id in the same set or by wording.

The sub-questions of test questions, if their set has them, are not learnt either; MuSiQue's come from other sets,
such as SQuAD. Wordings are normalised as for scoring answers: in lower case, without punctuation and articles.
Questions with the same meaning but a different wording cannot be detected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyrag.errors import DataError
from pyrag.evaluation.datasets.layout import find_file, read_questions
from pyrag.evaluation.metrics import normalise
from pyrag.evaluation.runs.folder import CONFIG, read_run
from pyrag_rl.data.rows import TrainRow, is_supervised, read_conversations, read_rows
from pyrag_rl.data.sets import sub_questions


@dataclass(slots=True)
class HeldOut:
    """Digests of the questions to measure on, each with the path of its file."""

    known: dict[bytes, Path] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Add questions from a file, a folder, a set written by `pyrag train data`, or a run of `pyrag bench`.

        Raises `DataError` for any other path.
        """
        for source, id_, question, parts in _questions(path):
            for mark in (*_marks(source, id_, question), *map(words_mark, parts)):
                self.known.setdefault(mark, path)

    def place(self, row: TrainRow) -> Path | None:
        """Return the file that holds out the row's question; None if the row may be learnt from."""
        return self.holding(row.source, row.id, row.question, row.asked)

    def holding(self, source: str, id_: str, question: str, *others: str) -> Path | None:
        """Return the file that holds out a question, by its id or words; None if none does.

        Args:
            source: Name of the question's set.
            id_: Id of the question in the set.
            question: Text of the question.
            others: Additional texts, such as a sub-question.
        """
        marks = (*_marks(source, id_, question), *map(words_mark, others))
        matches = (self.known.get(mark) for mark in marks)
        return next((path for path in matches if path is not None), None)

    def check(self, row: TrainRow) -> None:
        """Raise `DataError` if the row's question is held out."""
        if (path := self.place(row)) is not None:
            raise DataError(
                f"the question {row.question[:80]!r} ({row.source}, {row.id}) is held out in {path}: "
                "take it from one of the two, or pass --leave-out to train without such questions"
            )


def learnt_questions(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield set, id and text of each question of a training set. Raises `DataError` if it is not a training set."""
    yield from ((source, id_, question) for source, id_, question, _ in _questions(path))


def held_out(paths: Iterable[Path]) -> HeldOut:
    held = HeldOut()
    for path in paths:
        held.add(path)
    return held


def _marks(source: str, id_: str, question: str) -> tuple[bytes, bytes]:
    """Return the two digests used to compare questions: of the id within the set, and of the wording."""
    return _digest(f"id\n{source}\n{id_}"), words_mark(question)


def words_mark(question: str) -> bytes:
    return _digest(f"words\n{normalise(question)}")


def draw(question: str) -> float:
    """Return a number from 0 to 1 that depends only on the question's words, so that equal questions stay together.

    Args:
        question: Text of the question.
    """
    return int.from_bytes(words_mark(question)[:8]) / 2**64


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _questions(path: Path) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """Yield set, id, text and sub-questions of each question; runs and training sets have no sub-questions."""
    if path.is_dir() and (path / CONFIG).is_file():
        yield from ((row.set, row.id, row.question, ()) for row in read_run(path).rows)
        return
    if path.suffix == ".parquet" and is_supervised(path):
        yield from (
            (conversation.source, conversation.id, conversation.question, ())
            for conversation in read_conversations(path)
            if conversation.question
        )
        return
    if path.suffix == ".parquet":
        yield from ((row.source, row.id, row.question, ()) for row in read_rows(path))
        return
    file = find_file(path, "questions") if path.is_dir() else path
    if file is None:
        raise DataError(f"{path} holds neither questions.jsonl[.gz] nor a run: name what is to be held out")
    source = file.parent.name
    yield from ((source, question.id, question.question, sub_questions(question)) for question in read_questions(file))

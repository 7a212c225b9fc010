"""Held-out questions: none is both learnt from and measured on, by id in the same set or by the same words.

Nor are the sub-questions of a measured question learnt, where its set has them: those of MuSiQue come from other sets,
SQuAD among them. Words are compared as answers are scored: lower case, without punctuation and articles. Left out:
questions that mean the same in other words, which nothing here can tell.
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
    """Digests of the questions to measure on, each with the path that it came from."""

    known: dict[bytes, Path] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """A file of questions, a folder with one, a set written by `pyrag train data`, or a run of `pyrag bench`.

        Raises `DataError` where it is none of these.
        """
        for source, id_, question, parts in _questions(path):
            for mark in (*_marks(source, id_, question), *map(words_mark, parts)):
                self.known.setdefault(mark, path)

    def place(self, row: TrainRow) -> Path | None:
        """Return the file that holds the row's question out; None if it may be learnt from."""
        return self.holding(row.source, row.id, row.question, row.asked)

    def holding(self, source: str, id_: str, question: str, *others: str) -> Path | None:
        """Return the file that holds a question out, by its id or words; None if none does.

        Args:
            source: name of the question's set.
            id_: its id there.
            question: its words.
            others: further words, such as a sub-question's.
        """
        marks = (*_marks(source, id_, question), *map(words_mark, others))
        matches = (self.known.get(mark) for mark in marks)
        return next((path for path in matches if path is not None), None)

    def check(self, row: TrainRow) -> None:
        """Raises `DataError` where the row's question is held out."""
        if (path := self.place(row)) is not None:
            raise DataError(
                f"the question {row.question[:80]!r} ({row.source}, {row.id}) is held out in {path}: "
                "take it from one of the two, or pass --leave-out to train without such questions"
            )


def learnt_questions(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the set, id and text of each question of a training set. Raises `DataError` where it is none."""
    yield from ((source, id_, question) for source, id_, question, _ in _questions(path))


def held_out(paths: Iterable[Path]) -> HeldOut:
    found = HeldOut()
    for path in paths:
        found.add(path)
    return found


def _marks(source: str, id_: str, question: str) -> tuple[bytes, bytes]:
    """Return the two digests by which questions are compared: id within its set, and words."""
    return _digest(f"id\n{source}\n{id_}"), words_mark(question)


def words_mark(question: str) -> bytes:
    return _digest(f"words\n{normalise(question)}")


def draw(question: str) -> float:
    """Return a number from 0 to 1 that depends on the question's words alone, so that equal questions stay together.

    Args:
        question: Its words.
    """
    return int.from_bytes(words_mark(question)[:8]) / 2**64


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _questions(path: Path) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """Yield the set, id, text and sub-questions of each question; runs and training sets name no sub-questions."""
    if path.is_dir() and (path / CONFIG).is_file():
        yield from ((row.set, row.id, row.question, ()) for row in read_run(path).rows)
        return
    if path.suffix == ".parquet" and is_supervised(path):
        yield from ((one.source, one.id, one.question, ()) for one in read_conversations(path) if one.question)
        return
    if path.suffix == ".parquet":
        yield from ((row.source, row.id, row.question, ()) for row in read_rows(path))
        return
    file = find_file(path, "questions") if path.is_dir() else path
    if file is None:
        raise DataError(f"{path} holds neither questions.jsonl[.gz] nor a run: name what is to be held out")
    source = file.parent.name
    yield from ((source, one.id, one.question, sub_questions(one)) for one in read_questions(file))

"""Data sets in the common layout: folders with `*_questions.jsonl.gz` and `*_corpus.jsonl.gz`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError
from pyrag.evaluation.datasets.layout import Question, numbered_lines, read_questions_as


@dataclass(frozen=True, slots=True)
class Text:
    """Passage of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """Question with its answers and the passage that holds them.

    Args:
        question: The question.
        answers: Correct answers to the question.
        text: Passage that holds an answer.
        group: Name of the data set and form for reporting its figures. Empty if it is not measured.
    """

    question: str
    answers: tuple[str, ...]
    text: Text
    group: str = ""


@dataclass(frozen=True, slots=True)
class Row(Question):
    """Question of a data set, with 2Wiki's triples of subject, relation and value."""

    evidences: tuple[tuple[str, str, str], ...] | None = None


class Corpus(dict[str, Text]):
    """Passages by id.

    Raises:
        DataError: No passage has the id.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __missing__(self, passage_id: str) -> Text:
        raise DataError(
            f"{self._path} lacks the passage {passage_id}, which a question rests on: fetch questions and corpus again"
        )


def missing(folder: Path, names: Sequence[str]) -> str:
    """Return a message for the first set that a folder lacks; empty if it has all.

    Args:
        folder: Folder with one folder per set.
        names: Sets that are needed.
    """
    lacks = next((name for name in names if not (folder / name).is_dir()), None)
    return f"{folder} has no set {lacks}: name the folder with {', '.join(names)}" if lacks else ""


def rows(path: Path) -> list[Row]:
    """Return the questions of a file.

    Raises:
        DataError: The file is missing or broken.
    """
    return list(read_questions_as(Row, path))


def corpus(path: Path) -> Corpus:
    """Return the passages of a file.

    Raises:
        DataError: The file is missing or broken.
    """
    import msgspec

    decoder = msgspec.json.Decoder(Text)
    texts = Corpus(path)
    for number, line in numbered_lines(path):
        try:
            text = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} line {number} is not a passage ({error}): fetch the file again") from error
        texts[text.id] = text
    return texts


def gold(row: Row, texts: Corpus) -> Text:
    """Return the first passage that a question needs.

    Args:
        row: The question.
        texts: Passages of its set.

    Raises:
        DataError: The question names no passage, or one that is missing.
    """
    if not row.supporting:
        raise DataError(f"the question {row.id} names no supporting passage: fetch the set again")
    return texts[row.supporting[0]]

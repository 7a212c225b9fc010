"""Reading the data sets: folders with `*_questions.jsonl.gz` and `*_corpus.jsonl.gz` in the common layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError
from pyrag.evaluation.datasets.layout import Question, numbered_lines, read_questions_as


@dataclass(frozen=True, slots=True)
class Text:
    """A passage of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its answers and the passage they are in; `group` names the set and form of one to measure on."""

    question: str
    answers: tuple[str, ...]
    text: Text
    group: str = ""


@dataclass(frozen=True, slots=True)
class Row(Question):
    """A question with 2Wiki's triples: subject, relation, value."""

    evidences: tuple[tuple[str, str, str], ...] | None = None


class Corpus(dict[str, Text]):
    """Passages by id. Raises `DataError` for one that is not there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __missing__(self, wanted: str) -> Text:
        raise DataError(
            f"{self._path} lacks the passage {wanted}, which a question rests on: fetch questions and corpus again"
        )


def missing(folder: Path, names: Sequence[str]) -> str:
    """Say in one sentence which set the folder lacks.

    Args:
        folder: Holds one folder per set.
        names: Sets that must be there.

    Returns:
        The sentence, about the first set missing; empty if none is.
    """
    lacks = next((name for name in names if not (folder / name).is_dir()), None)
    return f"{folder} has no set {lacks}: name the folder with {', '.join(names)}" if lacks else ""


def rows(path: Path) -> list[Row]:
    """The questions of a file. Raises `DataError`."""
    return list(read_questions_as(Row, path))


def corpus(path: Path) -> Corpus:
    """The passages of a file. Raises `DataError`."""
    import msgspec

    decoder = msgspec.json.Decoder(Text)
    found = Corpus(path)
    for number, line in numbered_lines(path):
        try:
            text = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} line {number} is no passage ({error}): fetch the file again") from error
        found[text.id] = text
    return found


def gold(row: Row, texts: Corpus) -> Text:
    """Return the first passage that a question rests on.

    Args:
        row: The question.
        texts: Passages of its set.

    Raises:
        DataError: the question names no passage, or one that is not there.
    """
    if not row.supporting:
        raise DataError(f"the question {row.id} names no supporting passage: fetch the set again")
    return texts[row.supporting[0]]

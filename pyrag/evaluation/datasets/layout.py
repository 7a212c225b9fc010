"""Question sets in the common layout: a folder with `questions.jsonl[.gz]` and `corpus.jsonl[.gz]`.

The same reader is used for shared data, bundled sets and users' sets. Unknown fields are ignored.
"""

from __future__ import annotations

import ast
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from pyrag.errors import DataError

Q = TypeVar("Q", bound="Question")
MAX_LINE = 64 << 20  # bytes; a longer line means that the file is of another kind
_BOM = b"\xef\xbb\xbf"
# Other names under which data sets keep the fields that every question needs.
FIELD_NAMES = {
    "id": ("_id", "qid", "uid", "question_id", "questionid"),
    "question": ("query",),
    "answers": ("answer", "golden_answers", "gold_answers"),
}


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """Hop as written by the data set's authors; `#1` in the question refers to the answer of hop 1."""

    question: str = ""
    answer: str | list[str] = ""
    supporting: str = ""

    @property
    def answers(self) -> tuple[str, ...]:
        """All spellings of the answer."""
        return (self.answer,) if isinstance(self.answer, str) else tuple(self.answer)

    @property
    def first_answer(self) -> str:
        """First spelling of the answer; empty if it is unknown."""
        return next(iter(self.answers), "")


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a set.

    Attributes:
        answers: All gold spellings; empty only if `answerable` is False.
        supporting: Ids of the gold passages.
        supporting_titles: Titles of the gold passages, in sets that name them only by title (HoVer).
    """

    id: str
    question: str
    answers: tuple[str, ...]
    type: str = ""
    hops: int = 0
    supporting: tuple[str, ...] = ()
    supporting_alt: dict[str, tuple[str, ...]] = field(default_factory=dict)
    decomposition: tuple[SubQuestion, ...] = ()
    answerable: bool = True
    supporting_titles: tuple[str, ...] = ()


def find_file(folder: Path, stem: str) -> Path | None:
    """Return `stem.jsonl` or `stem.jsonl.gz` in a folder, or None.

    Args:
        folder: Folder of the set.
        stem: Name without suffix, such as "questions".
    """
    return next((path for path in (folder / f"{stem}.jsonl", folder / f"{stem}.jsonl.gz") if path.is_file()), None)


def read_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of a file; `completed_fields` lists the alternative names of fields.

    Raises:
        DataError: A line is malformed; the message names file, line and remedy.
    """
    return read_questions_as(Question, path)


def read_questions_as(kind: type[Q], path: Path) -> Iterator[Q]:
    """Yield questions as a subclass of `Question` with more fields.

    Args:
        kind: The subclass.
        path: Path of the file.

    Raises:
        DataError: A line is malformed; the message names file, line and remedy.
    """
    import msgspec

    decoder = msgspec.json.Decoder(kind)
    seen: dict[str, int] = {}
    for number, line in numbered_lines(path):
        where = f"{path} line {number}"
        try:
            question = _decoded(line, decoder, kind)
        except UnicodeDecodeError as error:
            raise not_utf8(where) from error
        except msgspec.DecodeError as error:
            if "utf-8" in str(error).lower():
                raise not_utf8(where) from error
            raise DataError(f"{where} is not a question ({error}): fix or remove the line") from error
        if fault := _fault(question):
            raise DataError(f"{where} {fault}")
        if question.id in seen:
            raise DataError(f"{where} repeats the id {question.id!r} of line {seen[question.id]}: remove one of them")
        seen[question.id] = number
        yield question


def _decoded(line: bytes, decoder: Any, kind: type[Q]) -> Q:
    """Decode the question in a line. Raises `UnicodeDecodeError` or `msgspec.DecodeError` if it cannot."""
    import msgspec

    try:
        question: Q = decoder.decode(line)
        return question
    except msgspec.ValidationError:
        fields = msgspec.json.decode(line)
        if not isinstance(fields, dict):
            raise
        return msgspec.convert(completed_fields(fields), kind)


def completed_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a question under the names of the common layout, with an id.

    Other common names of `id`, `question` and `answers` are accepted in any case, and a single answer becomes a list. A
    question without an id gets a digest of its words, so that its id does not change if lines move.

    Args:
        fields: Fields of one record. Unknown fields are kept.
    """
    lower = {key.strip().lower(): value for key, value in fields.items() if not is_missing(value)}
    completed = dict(fields)
    for name, others in FIELD_NAMES.items():
        value = next((lower[other] for other in (name, *others) if lower.get(other) not in (None, "")), None)
        if value is not None:
            completed[name] = value
    if "answers" in completed:
        completed["answers"] = _answers(completed["answers"])
    if isinstance(question := completed.get("question"), str) and completed.get("id") is None:
        completed["id"] = f"q-{sha256(question.encode()).hexdigest()[:12]}"
    completed["id"] = as_text(completed.get("id"))
    return completed


def _answers(value: Any) -> Any:
    """Return gold answers as a list of texts; a value of another form is returned unchanged.

    Releases write them as a list or a single value, as JSON or Python text, as `{"text": [...]}` (SQuAD), or as
    `{"value": ..., "aliases": [...]}` (TriviaQA).
    """
    value = structured(value)
    if isinstance(value, dict):
        lower = {str(key).lower(): inner for key, inner in value.items()}
        if not {"text", "value", "aliases"} & lower.keys():
            return value
        value = lower["text"] if "text" in lower else [lower.get("value"), *_as_list(lower.get("aliases"))]
    values = _as_list(value)
    texts = [as_text(item.get("text") if isinstance(item, dict) else item) for item in values if not is_missing(item)]
    return list(dict.fromkeys(texts)) if all(isinstance(text, str) for text in texts) else texts


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def structured(value: Any) -> Any:
    """Parse a list or object that is stored as JSON or Python text; return any other value unchanged."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            return read(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return value


def is_missing(value: Any) -> bool:
    """Return True for null and for NaN, by which tables mark a missing value."""
    return value is None or value != value


def as_text(value: Any) -> Any:
    """Convert a number to text, and a boolean to yes or no, as in benchmarks. A whole number has no decimal point.

    Args:
        value: Any value. Other values are returned unchanged.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float) else value


def question_of(where: str, fields: dict[str, Any]) -> Question:
    """Create a validated question from plain values.

    Args:
        where: Place of the record, for errors.
        fields: Fields of the record.

    Raises:
        DataError: A field is missing or wrong.
    """
    import msgspec

    try:
        question = msgspec.convert(fields, Question)
    except msgspec.ValidationError as error:
        raise DataError(f"{where} is not a question ({error}): fix or remove the record") from error
    if fault := _fault(question):
        raise DataError(f"{where} {fault}")
    return question


def _fault(question: Question) -> str:
    """Return the fault of a well-formed question; empty if there is none."""
    if not question.id.strip():
        return "has an empty id: give the question one of its own"
    if not question.question.strip():
        return "has an empty question: fill it in or remove the line"
    if question.answerable and not any(answer.strip() for answer in question.answers):
        return 'has no gold answer: add one to "answers", or set "answerable" to false if there is none'
    return ""


def not_utf8(where: str) -> DataError:
    """Return the error for text that is not UTF-8."""
    return DataError(f"{where} is not UTF-8 text: convert the file, as in iconv -f LATIN1 -t UTF-8 OLD > NEW")


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers. Raises `DataError` for a line longer than `MAX_LINE`."""
    number = 0
    with _open(path) as file:
        while True:
            try:
                line = file.readline(MAX_LINE + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"{path} is damaged after line {number} ({error}): fetch it again") from error
            if not line:
                return
            number += 1
            if len(line) > MAX_LINE:
                megabytes = MAX_LINE >> 20
                raise DataError(f"{path} line {number} is longer than {megabytes} MB: put one question on each line")
            if number == 1:
                if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise DataError(
                        f"{path} line 1 is UTF-16 text: convert it, as in iconv -f UTF-16 -t UTF-8 OLD > NEW"
                    )
                line = line.removeprefix(_BOM)
            if line.strip():
                yield number, line


def _open(path: Path) -> IO[bytes]:
    try:
        if path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error

"""Records of released files, one at a time: JSON arrays, JSON lines, TSV, CSV and Parquet.

Memory use is limited to the largest record. Each record knows its place, so that errors can name file, place and
remedy.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NoReturn

from pyrag.errors import DataError, UsageError, install_extra
from pyrag.evaluation.datasets.layout import MAX_LINE, as_text, is_missing, not_utf8, numbered_lines, structured

_CHUNK = 1 << 20
_BOM = "\ufeff"
_DEPTH = 3  # of objects around the records of a JSON file
_PAIR = ("question", "answer")  # columns of a table without a heading
_QUESTIONS = frozenset({"question", "query", "claim", "prompt"})


@dataclass(frozen=True, slots=True)
class Record:
    """Record and its place ("FILE line 7")."""

    where: str
    fields: dict[str, Any]

    def fail(self, problem: str) -> NoReturn:
        """Raise `DataError` for a problem of this record."""
        raise DataError(f"{self.where} {problem}")

    def has(self, name: str) -> bool:
        """Return True if a field is present and not empty."""
        value = self.fields.get(name)
        return not is_missing(value) and value != ""

    def text(self, *names: str) -> str:
        """Return the first of these fields that is present, as text. Raises `DataError` if it is empty."""
        value = next((self.fields[name] for name in names if self.has(name)), None)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = as_text(value)
        if not isinstance(value, str) or not value.strip():
            self.fail(f"has no text in the field {names[0]!r}: fill it in, or check that the file is of this data set")
        return " ".join(value.split())

    def items(self, name: str) -> list[Any]:
        value = self.value(name)
        if not isinstance(value, list | tuple):
            self.fail(f"has no list in the field {name!r}: fill it in, or check that the file is of this data set")
        return list(value)

    def value(self, name: str) -> Any:
        """Return a field. A list or object that is stored as JSON or Python text is parsed."""
        return structured(self.fields.get(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts without duplicates and missing ones. A number becomes a text, a single text a list.

        Raises `DataError` for anything else in the list.
        """
        value = self.value(name)
        values = [value] if isinstance(value, str | int | float) else self.items(name)
        texts = [as_text(item) for item in values if not is_missing(item)]
        if other := next((item for item in texts if not isinstance(item, str)), None):
            self.fail(f"has {other!r} in the field {name!r}, which is neither a text nor a number: replace it")
        return tuple(dict.fromkeys(text for text in (" ".join(text.split()) for text in texts) if text))

    def golds(self, name: str) -> list[str]:
        """Return gold answers from a text, a number, or a list of these. Raises `DataError` without an answer."""
        if isinstance(self.value(name), list | tuple):
            return list(self.texts(name))
        return [self.text(name)]

    def part(self, name: str, value: Any) -> Record:
        """Return an object inside this record.

        Args:
            name: Name of the field, for errors.
            value: Content of the field.

        Raises:
            DataError: The content is not an object.
        """
        value = structured(value)
        if not isinstance(value, dict):
            self.fail(f"has something in the field {name!r} that is not an object: write it as the release does")
        return Record(self.where, value)


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, whose type is given by its suffix (`.gz` may follow).

    Raises:
        DataError: The file is damaged.
        UsageError: The suffix is unknown.
    """
    match kind_of(path):
        case ".jsonl" | ".ndjson":
            return _json_lines(path)
        case ".json":
            return _json_array(path) if _first_character(path) == "[" else _json_objects(path)
        case ".tsv":
            return _table(path, "\t,;")
        case ".csv":
            return _table(path, ",;\t")
        case ".parquet":
            return _parquet(path)
        case ".zip" | ".tgz" | ".tar" | ".bz2" | ".xz" | ".zst" | ".7z" | ".rar":
            raise UsageError(f"{path} is an archive: unpack it, and import the file inside")
    raise UsageError(f"{path} has an unknown ending: use a .json, .jsonl, .tsv, .csv or .parquet file")


def kind_of(path: Path) -> str:
    """Return the suffix that gives a file's type, in lower case and without `.gz`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _json_objects(path: Path) -> Iterator[Record]:
    """Yield JSON lines, or the records inside the only object of a file."""
    first, second = (line for _, line in islice(chain(numbered_lines(path), [(0, b""), (0, b"")]), 2))
    is_whole = _decoded_json(first) is not None
    if is_whole == bool(second) or not first.lstrip().startswith(b"{"):
        return _json_lines(path)
    with _open_text(path) as file:
        value = _decoded_json(first if is_whole else _read(file, path, -1).lstrip(_BOM))
    return _json_lines(path) if value is None else _inside(path, value)


def _inside(path: Path, value: Any) -> Iterator[Record]:
    for number, fields in enumerate(_records_in(value), start=1):
        yield _object(f"{path} record {number}", fields)


def _records_in(value: Any) -> Iterator[Any]:
    """Yield the records of a release that is a single JSON object; the object itself if it is a record."""
    for record in _records(value, _DEPTH):
        if isinstance(record, dict) and isinstance(record.get("paragraphs"), list) and "question" not in record:
            yield from _questions_of_article(record)
        else:
            yield record


def _records(value: Any, depth: int) -> list[Any]:
    if not isinstance(value, dict) or depth < 1 or any("question" in str(key).lower() for key in value):
        return [value]
    inside = list(value.values())
    if lists := [item for item in inside if isinstance(item, list) and item and isinstance(item[0], dict)]:
        return [record for item in lists for record in item]
    objects = {key: item for key, item in value.items() if isinstance(item, dict)}
    if not objects or len(objects) < len(inside):
        return [value]
    by_id = [_records(item, depth - 1) for item in objects.values()]
    return [
        {"id": key, **record} if isinstance(record, dict) and len(records) == 1 else record
        for key, records in zip(objects, by_id, strict=True)
        for record in records
    ]


def _questions_of_article(article: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the questions of one of SQuAD's articles, each with its paragraph; values of another form unchanged."""
    for paragraph in article["paragraphs"]:
        questions = (paragraph.get("qas") or ()) if isinstance(paragraph, dict) else [paragraph]
        for question in questions if isinstance(questions, list | tuple) else [questions]:
            yield (
                question
                if not isinstance(paragraph, dict) or not isinstance(question, dict)
                else {
                    "id": question.get("id"),
                    "question": question.get("question"),
                    "answers": question.get("answers"),
                    "answerable": not question.get("is_impossible"),
                    "title": article.get("title", ""),
                    "context": paragraph.get("context", ""),
                }
            )


def _decoded_json(text: str | bytes) -> Any:
    """Return the JSON value of a text; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_lines(path: Path) -> Iterator[Record]:
    for number, line in numbered_lines(path):
        where = f"{path} line {number}"
        try:
            fields = json.loads(line)
        except UnicodeDecodeError as error:
            raise not_utf8(where) from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} is not JSON ({error}): fix or remove the line") from error
        yield _object(where, fields)


def _object(where: str, fields: Any) -> Record:
    if not isinstance(fields, dict):
        raise DataError(f"{where} is not a JSON object but {type(fields).__name__}: fix or remove it")
    return Record(where, fields)


def _json_array(path: Path) -> Iterator[Record]:
    """Yield the objects of one large array, decoded from a window that moves through the file."""
    decoder = json.JSONDecoder()
    with _open_text(path) as file:
        before, _, window = _read(file, path).partition("[")
        line = 1 + before.count("\n")
        while True:
            rest = window.lstrip(" \t\r\n,")
            line += window.count("\n", 0, len(window) - len(rest))
            window = rest
            if window.startswith("]"):
                return
            try:
                fields, end = decoder.raw_decode(window)
            except (ValueError, RecursionError) as error:
                window = _more(file, path, window, line, error)
                continue
            yield _object(f"{path} line {line}", fields)
            line += window.count("\n", 0, end)
            window = window[end:]


def _more(file: IO[str], path: Path, window: str, line: int, error: Exception) -> str:
    """Return a larger window for an object that is cut off. Raises `DataError` if the object is broken."""
    at = getattr(error, "pos", 0)
    cut_off = isinstance(error, json.JSONDecodeError) and (at >= len(window) - 8 or "Unterminated" in error.msg)
    if cut_off and len(window) <= MAX_LINE:
        if added := _read(file, path):
            return window + added
        raise DataError(f"{path} ends in the middle of the record of line {line}: fetch the file again") from error
    what = getattr(error, "msg", "it is nested too deeply")
    line += window.count("\n", 0, at)
    raise DataError(f"{path} line {line} is not JSON ({what}): fix the record there") from error


def _table(path: Path, delimiters: str) -> Iterator[Record]:
    """Yield the rows of a table.

    Args:
        path: The file.
        delimiters: Usual delimiters, the likeliest first.
    """
    with _open_text(path) as file:
        lines = _decoded(file, path)
        first = next(lines, "")
        fitting = (mark for mark in delimiters if _is_pair(first, mark) or _is_heading(_cells(first, mark)))
        delimiter = next(fitting, delimiters[0])
        names = _PAIR if _is_pair(first, delimiter) else None
        rows = csv.DictReader(chain([first], lines), names, delimiter=delimiter, strict=True)
        try:
            for row in rows:
                _check_heading(path, rows.fieldnames or ())
                where = f"{path} line {rows.line_num}"
                if None in row or None in row.values():
                    cells = len([value for value in row.values() if value is not None])
                    columns = len(rows.fieldnames or ())
                    raise DataError(f"{where} has {cells} columns instead of {columns}: quote or complete the row")
                yield Record(where, dict(row))
        except csv.Error as error:
            raise DataError(
                f"{path} line {rows.line_num + 1} is not a table row ({error}): fix or remove it"
            ) from error


def _is_pair(line: str, delimiter: str) -> bool:
    """Return whether the first line of a table is a question with a list of answers, rather than a heading."""
    cells = _cells(line, delimiter)
    return len(cells) == 2 and isinstance(structured(cells[1]), list)


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _is_heading(names: Sequence[str]) -> bool:
    """Return whether one of these columns holds the questions."""
    return bool(_QUESTIONS & {name.strip().lower() for name in names})


def _check_heading(path: Path, names: Sequence[str]) -> None:
    """Raise `DataError` if no column of a table holds the questions."""
    if not _is_heading(names):
        raise DataError(
            f"{path} line 1 is not a heading: write the column names in the first line, such as question and answers"
        )


def _decoded(file: IO[str], path: Path) -> Iterator[str]:
    number = 0
    while True:
        try:
            line = file.readline(MAX_LINE)
        except UnicodeDecodeError as error:
            raise not_utf8(f"{path} line {number + 1}") from error
        except (OSError, EOFError) as error:
            raise DataError(f"{path} is damaged after line {number} ({error}): fetch it again") from error
        if not line:
            return
        number += 1
        yield line.lstrip(_BOM) if number == 1 else line


def _parquet(path: Path) -> Iterator[Record]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise UsageError(f"{path} is a Parquet file, which needs pyarrow: {install_extra('data')}") from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for fields in batch.to_pylist():
                    number += 1
                    yield Record(f"{path} row {number}", fields)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise DataError(f"{path} is damaged after row {number} ({error}): fetch it again") from error


def _open_text(path: Path) -> IO[str]:
    try:
        if path.suffix == ".gz":
            return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8", newline="")
        return path.open(encoding="utf-8", newline="")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _read(file: IO[str], path: Path, size: int = _CHUNK) -> str:
    try:
        return file.read(size)
    except UnicodeDecodeError as error:
        raise not_utf8(str(path)) from error
    except (OSError, EOFError) as error:
        raise DataError(f"{path} is damaged ({error}): fetch it again") from error


def _first_character(path: Path) -> str:
    with _open_text(path) as file:
        return _read(file, path).lstrip(_BOM).lstrip()[:1]

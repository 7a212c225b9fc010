"""Passages out of files that hold records: JSON lines, JSON and tables.

A JSON line holds `text`, and may hold `title` and `id`; or Search-R1's `contents` (first line the quoted title, the
rest the text). A JSON file holds a list of such objects, an object of them by id, an object with such a list in it, or
one. A table has a header. All other fields and columns are metadata (`pyrag.retrieval.filters.metadata`).
All are read in pieces: no more than one record is in memory.

`start` and `end` of a passage are the characters of the record in the file, decoded, without a byte order mark.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import IO, Any

import msgspec

from pyrag.errors import DataError
from pyrag.retrieval.documents.model import MAX_LINE, Columns, Document, Placed, at, digest, split_contents
from pyrag.retrieval.documents.unpack import Opened
from pyrag.retrieval.filters.metadata import MAX_VALUE, encoded, metadata_of, metadata_of_cells
from pyrag.trace.model import Passage

WHOLE = "*"  # as the column of the text: all columns
_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t"}
_SUBJECTS = ("title", "name")  # columns that say what a row is about
_NUMBERS = frozenset("0123456789.,:/%-+ ")
_MAX_FIELD = 1 << 16  # bytes of a further field; more is not read
_MAX_REMARKS = 20
_CONTINUATIONS = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that begin no character


ENCODING_CURE = ", or add --encoding with its name, or --encoding auto"


class _Record(msgspec.Struct):
    id: str | int | None = None
    title: str | None = None
    text: str | None = None
    contents: str | None = None


_OWN = frozenset(_Record.__struct_fields__)
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def json_lines(file: Opened) -> Iterator[Placed]:
    decode = msgspec.json.Decoder(_Record).decode
    for number, start, line in _lines(file, skip_long=True):
        if not line.strip():
            continue
        try:
            placed = _of_line(file, decode, number, start, line)
        except DataError as error:
            file.leave_out(error)
        else:
            yield placed


def _of_line(file: Opened, decode: Callable[[bytes], _Record], number: int, start: int, line: bytes) -> Placed:
    try:
        record = decode(line)
        fields = _fields_of_line(file, line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad_line(at(file.document, number), line, error) from error
    end = start + _length(line.rstrip())
    return _placed(record, file.document, number, (start, end), record_metadata(file, fields))


def _fields_of_line(file: Opened, line: bytes) -> dict[str, object]:
    """Return the further fields of a line; those that are too large stay encoded, and are left out."""
    found: dict[str, object] = {}
    for name, raw in _raw_fields.decode(line).items():
        if name in _OWN:
            continue
        if len(memoryview(raw)) > _MAX_FIELD:
            _leave_out(file, [name])
            continue
        with suppress(msgspec.DecodeError, RecursionError):
            found[name] = msgspec.json.decode(raw)
    return found


def record_metadata(file: Opened, fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the metadata of a record; fields that are left out become a remark on its file.

    Args:
        file: The open document.
        fields: The record's further fields.
    """
    if not fields:
        return {}
    metadata, left_out = metadata_of(fields)
    _leave_out(file, left_out)
    return metadata


def _leave_out(file: Opened, names: Iterable[str]) -> None:
    """Note once a file which fields of it were too large."""
    for name in names:
        remark = f"the field {name!r} is left out where it is too large (above {MAX_VALUE} bytes) or one too many"
        if remark not in file.remarks and len(file.remarks) < _MAX_REMARKS:
            file.remarks.append(remark)


def json_file(file: Opened) -> Iterator[Placed]:
    from pyrag.retrieval.documents.json_stream import NotJSON, elements

    document = file.document
    try:
        for number, (key, value, start, end) in enumerate(elements(file.stream), 1):
            try:
                placed = record_of_value(file, value, f"{document.name} record {number}", (start, end), key)
            except DataError as error:
                file.leave_out(error)
            else:
                yield placed
    except NotJSON as error:
        raise DataError(f"{document.name}: not JSON ({error}): fix it, or write one object a line as .jsonl") from error
    except UnicodeDecodeError as error:
        raise not_utf8(document.name, b"", error) from error


def record_of_value(file: Opened, value: Any, where: str, span: tuple[int, int] | None = None, key: str = "") -> Placed:
    """Return the passage of a record as JSON has it.

    Args:
        file: The open document.
        value: The record.
        where: Its place, for messages.
        span: Its characters in the file, where known.
        key: Its id, if it has none of its own.

    Raises:
        DataError: It is no passage.
    """
    record = _converted(value, where)
    if record.id is None and key:
        record.id = key
    fields = {name: one for name, one in value.items() if name not in _OWN}
    return _placed(record, file.document, 0, span, record_metadata(file, fields), where)


def _converted(value: object, where: str) -> _Record:
    try:
        record = msgspec.convert(value, _Record)
        f"{record.id}{record.title}{record.text}{record.contents}".encode()
    except msgspec.ValidationError as error:
        raise DataError(
            f"{where}: not a passage ({error}): write objects with the strings id, title and text"
        ) from error
    except UnicodeEncodeError:
        raise DataError(f"{where}: holds half of a character (a lone surrogate): replace it") from None
    return record


def table(file: Opened, columns: Columns) -> Iterator[Placed]:
    """Yield the passages of a CSV or TSV file.

    Args:
        file: The open document.
        columns: Columns that hold id, title and text; without a text column, rows may be taken whole.

    Raises:
        DataError: There is no text column, or a row is broken.
    """
    document = file.document
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    rows = _Rows(file)
    header = rows.header(_DELIMITERS[document.kind], columns)
    if rows.whole:
        file.remarks.append("no column 'text', so every row was taken whole")
        yield from _whole_rows(file, rows, header)
        return
    places = {name: header.index(column.lower()) for name, column in _named(columns) if column.lower() in header}
    taken, names = set(places.values()), rows.names
    for number, row, span in rows:
        if not any(row):
            continue
        fields = {name: row[place] for name, place in places.items() if place < len(row)}
        others = ((name, row[place]) for place, name in enumerate(names) if place < len(row) and place not in taken)
        try:
            placed = _placed(_Record(**fields), document, number, span, _cells(file, others))
        except DataError as error:
            file.leave_out(error)
        else:
            yield placed


def _whole_rows(file: Opened, rows: _Rows, header: list[str]) -> Iterator[Placed]:
    document = file.document
    for number, row, span in rows:
        if text := _row_text(header, row):
            record = _Record(title=_row_title(document.title, header, row), text=text)
            cells = _cells(file, zip((name.strip() for name in header), row, strict=False))
            yield _placed(record, document, number, span, cells)


def _cells(file: Opened, cells: Iterable[tuple[str, str]]) -> dict[str, Any]:
    metadata, left_out = metadata_of_cells((name, cell) for name, cell in cells if name)
    _leave_out(file, left_out)
    return metadata


class _Rows:
    """The rows of a table: number of the last line, fields and characters of each."""

    def __init__(self, file: Opened) -> None:
        self._document = file.document
        self._source = _lines(file)
        self._number = self._at = self._end = 0
        self._delimiter = ","
        self.whole = False  # no column is that of the text
        self.names: list[str] = []  # of the columns, as they are written
        self._size = 0  # characters of the row so far

    def header(self, delimiters: str, columns: Columns) -> list[str]:
        """Return the column names, in lower case unless rows are taken whole; determine the delimiter."""
        first = "".join(self._some(1)).strip()
        found = {mark: next(csv.reader([first], delimiter=mark), []) for mark in delimiters}
        for self._delimiter, header in found.items():
            self.names = [name.strip() for name in header]
            names = [name.lower() for name in self.names]
            if columns.text.lower() in names:
                return names
        if first and (columns.text == WHOLE or (columns.are_default and not self._document.given)):
            self.whole = True
            self._delimiter = max(found, key=lambda mark: len(found[mark]))
            return found[self._delimiter]
        has = first[:200] or "nothing"
        raise DataError(
            f"{self._document.name} has no column {columns.text!r} (its first line is {has!r}): "
            "name the columns with --text-column, --title-column and --id-column, or take rows whole with "
            f"--text-column '{WHOLE}'"
        )

    def __iter__(self) -> Iterator[tuple[int, list[str], tuple[int, int]]]:
        start = self._at
        try:
            for row in csv.reader(self._some(), delimiter=self._delimiter):
                yield self._number, row, (start, self._end)
                start, self._size = self._at, 0
        except csv.Error as error:
            raise DataError(f"{at(self._document, self._number)}: not a table ({error}): fix the line") from error

    def _some(self, most: int | None = None) -> Iterator[str]:
        while most is None or most > 0:
            found = next(self._source, None)
            if found is None:
                return
            self._number, start, line = found
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise not_utf8(at(self._document, self._number), line, error, cure=ENCODING_CURE) from error
            self._at = start + len(text)
            self._end = start + len(text.rstrip())
            self._size += len(text)
            if self._size > MAX_LINE:
                raise DataError(
                    f"{at(self._document, self._number)}: the row is longer than {MAX_LINE >> 20} MiB: "
                    "close the quotation mark that was left open"
                )
            most = None if most is None else most - 1
            yield text


def _named(columns: Columns) -> Iterable[tuple[str, str]]:
    return (("id", columns.id), ("title", columns.title), ("text", columns.text))


def _lines(file: Opened, *, skip_long: bool = False) -> Iterator[tuple[int, int, bytes]]:
    """Number, first character and bytes of each line, without a byte order mark."""
    number = start = 0
    stream: IO[bytes] = file.stream
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            error = DataError(
                f"{at(file.document, number)}: longer than {MAX_LINE >> 20} MiB: "
                "split it, or put one object on each line"
            )
            if not skip_long:
                raise error
            file.leave_out(error)
            start += _characters(line) + _skipped_line(stream, line)
            continue
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        yield number, start, line
        start += _length(line)


def _skipped_line(stream: IO[bytes], piece: bytes) -> int:
    """Go past the rest of a line in pieces; return the number of its characters."""
    count = 0
    while piece and not piece.endswith(b"\n"):
        piece = stream.readline(MAX_LINE)
        count += _characters(piece)
    return count


def _characters(piece: bytes) -> int:
    """Return how many characters of UTF-8 begin in some bytes."""
    return len(piece.translate(None, _CONTINUATIONS))


def _length(line: bytes) -> int:
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))


def _placed(
    record: _Record,
    document: Document,
    number: int,
    span: tuple[int, int] | None,
    metadata: dict[str, Any],
    place: str = "",
) -> Placed:
    title, text = _title_and_text(record, place or at(document, number))
    own_id = record.id is not None and record.id != ""
    key = str(record.id) if own_id else f"{document.key}#{digest(title, text, encoded(metadata))}"
    start, end = span or (None, None)
    passage = Passage(key, title, text, source=document.name, start=start, end=end, metadata=metadata)
    return Placed(passage, document, number, own_id)


def _title_and_text(record: _Record, place: str) -> tuple[str, str]:
    title, text = record.title or "", record.text
    if text is None and record.contents is not None:
        title, text = split_contents(record.contents, title)
    if text is None:
        raise DataError(f'{place}: holds neither "text" nor "contents": add the text or remove the line')
    if not text.strip():
        raise DataError(f"{place}: its text is empty: add the text or remove the line")
    return title.strip(), text.strip()


def _bad_line(place: str, line: bytes, error: Exception) -> DataError:
    if isinstance(error, RecursionError):
        return DataError(f"{place}: values nested too deeply: flatten or remove the line")
    if isinstance(error, msgspec.ValidationError):
        return DataError(f"{place}: not a passage ({error}): write an object with the strings id, title and text")
    try:
        line.decode()
    except UnicodeDecodeError as undecodable:
        return not_utf8(place, line, undecodable)
    return DataError(f"{place}: not JSON ({error}): fix or remove the line")


def not_utf8(place: str, line: bytes, error: UnicodeDecodeError, cure: str = "") -> DataError:
    """Return the error for a line that is not UTF-8.

    Args:
        place: File and line.
        line: Bytes of the line.
        error: The decoder's error.
        cure: Advice to append.
    """
    guess = ", it looks like UTF-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""
    bad = f"byte 0x{error.object[error.start]:02x} at column {error.start + 1}"
    return DataError(f"{place}: not UTF-8 ({bad}{guess}): save the file as UTF-8{cure}")


def _row_text(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a row as running text, such as `name: Ann; town: Ystad`, without empty cells."""
    pairs = ((name.strip(), cell.strip()) for name, cell in zip_longest(names, row, fillvalue=""))
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)


def _row_title(table: str, names: Sequence[str], row: Sequence[str]) -> str:
    """Return the table's name with the cell of a title or name, or else the first cell of words."""
    cells = [(name.strip().lower(), cell.strip()) for name, cell in zip(names, row, strict=False) if cell.strip()]
    named = [cell for name, cell in cells if name in _SUBJECTS]
    words = [cell for name, cell in cells if name != "id" and not set(cell) <= _NUMBERS]
    subject = next(iter([*named, *words]), "")
    return f"{table}: {subject}" if subject else table

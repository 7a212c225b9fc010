"""Passages from records in JSON lines and JSON files; `tables` reads CSV and TSV.

A JSON line holds `text`, and may hold `title` and `id`; or it holds Search-R1's `contents`, whose first line is the
quoted title. A JSON file holds a list of such objects, an object of such objects by id, an object with such a list, or
a single object. All other fields are metadata (`pyrag.retrieval.filters.metadata`). A record without a text may hold it
in an object, as in exports of Elasticsearch. No more than one record is in memory.

`start` and `end` of a passage are positions of the record in the decoded file, without a byte order mark.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import IO, Any

import msgspec

from pyrag.errors import DataError
from pyrag.retrieval.documents.controls import without_controls
from pyrag.retrieval.documents.json_stream import has_text, texts_inside
from pyrag.retrieval.documents.model import MAX_LINE, Document, Placed, at, digest, split_contents
from pyrag.retrieval.documents.opened_document import Opened
from pyrag.retrieval.filters.metadata import MAX_VALUE, encoded, metadata_of
from pyrag.trace.model import Passage

_MAX_FIELD = 1 << 16  # bytes of a further field; larger fields are left out
_MAX_REMARKS = 20
_CONTINUATIONS = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that begin no character


class RecordFields(msgspec.Struct):
    """Fields of a record that make the passage; all others are metadata."""

    id: str | int | None = None
    title: str | None = None
    text: str | None = None
    contents: str | None = None


_OWN = frozenset(RecordFields.__struct_fields__)
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def json_lines(file: Opened) -> Iterator[Placed]:
    decode = msgspec.json.Decoder(RecordFields).decode
    for number, start, line in lines_of(file, skip_long=True):
        if not line.strip():
            continue
        try:
            item = _of_line(file, decode, number, start, line)
        except DataError as error:
            file.leave_out(error)
        else:
            yield item


def _of_line(file: Opened, decode: Callable[[bytes], RecordFields], number: int, start: int, line: bytes) -> Placed:
    try:
        record = decode(line)
        fields = _fields_of_line(file, line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        value = _with_constants(line)
        if value is None:
            raise _bad_line(at(file.document, number), line, error) from error
        note_constants(file)
        span = (start, start + _length(line.rstrip()))
        return replace(record_of_value(file, value, at(file.document, number), span), line=number)
    span = (start, start + _length(line.rstrip()))
    if (record.text is None and record.contents is None) or (record.id is None and "_id" in fields):
        value = msgspec.structs.asdict(record) | fields
        return replace(record_of_value(file, value, at(file.document, number), span), line=number)
    return placed_record(record, file.document, number, span, record_metadata(file, fields))


def _with_constants(line: bytes) -> dict[str, Any] | None:
    """Return the object on a line that is JSON except for NaN and Infinity, which become null; None for other lines."""
    if b"NaN" not in line and b"Infinity" not in line:
        return None
    try:
        value = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def note_constants(file: Opened) -> None:
    """Add a remark to a file, only once, that NaN and Infinity count as missing values."""
    remark = "NaN and Infinity, which JSON does not have, count as no value"
    if remark not in file.remarks:
        file.remarks.append(remark)


def _fields_of_line(file: Opened, line: bytes) -> dict[str, object]:
    """Return the additional fields of a line, except for fields that are too large, which are not decoded."""
    fields: dict[str, object] = {}
    for name, raw in _raw_fields.decode(line).items():
        if name in _OWN:
            continue
        if len(memoryview(raw)) > _MAX_FIELD:
            note_fields(file, [name])
            continue
        with suppress(msgspec.DecodeError, RecursionError):
            fields[name] = msgspec.json.decode(raw)
    return fields


def record_metadata(file: Opened, fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the metadata of a record, and add a remark to the file on omitted fields.

    Args:
        file: The open document.
        fields: Additional fields of the record.
    """
    if not fields:
        return {}
    metadata, left_out = metadata_of(fields)
    note_fields(file, left_out)
    return metadata


def note_fields(file: Opened, names: Iterable[str]) -> None:
    """Add a remark to a file that these fields are omitted, once for each field.

    Args:
        file: The open document.
        names: Names of the fields.
    """
    for name in names:
        remark = f"the field {name!r} is left out where it is too large (above {MAX_VALUE} bytes) or one too many"
        if remark not in file.remarks and len(file.remarks) < _MAX_REMARKS:
            file.remarks.append(remark)


def json_file(file: Opened) -> Iterator[Placed]:
    from pyrag.retrieval.documents.json_stream import NotJSON, elements

    document = file.document
    try:
        for number, (key, value, start, end) in enumerate(elements(file.stream, lambda: note_constants(file)), 1):
            try:
                item = record_of_value(file, value, f"{document.name} record {number}", (start, end), key)
            except DataError as error:
                file.leave_out(error)
            else:
                yield item
    except NotJSON as error:
        raise DataError(
            f"{document.name}: not JSON ({error}): fix it, or write an object per line as .jsonl"
        ) from error
    except UnicodeDecodeError as error:
        raise not_utf8(document.name, b"", error) from error


def record_of_value(file: Opened, value: Any, where: str, span: tuple[int, int] | None = None, key: str = "") -> Placed:
    """Return the passage of a decoded JSON record.

    Args:
        file: The open document.
        value: The record.
        where: Place of the record, for messages.
        span: Start and end of the record in the file, in characters. None if unknown.
        key: Id of the passage if the record has no id.

    Raises:
        DataError: The record is not a passage.
    """
    value = _unwrapped(value)
    record = _converted(value, where)
    if record.id is None and key:
        record.id = key
    fields = {name: item for name, item in value.items() if name not in _OWN}
    return placed_record(record, file.document, 0, span, record_metadata(file, fields), where)


def _unwrapped(value: Any) -> Any:
    """Return a record with the fields of the only object inside it that has a text, and with `_id` as its id."""
    if not isinstance(value, dict):
        return value
    if not has_text(value) and len(names := texts_inside(value)) == 1:
        inner = value[names[0]]
        value = {name: item for name, item in value.items() if name != names[0] and item is not None} | inner
    if isinstance(value.get("_id"), str | int) and value.get("id") is None:
        return {name: item for name, item in value.items() if name != "_id"} | {"id": value["_id"]}
    return value


def _converted(value: object, where: str) -> RecordFields:
    try:
        record = msgspec.convert(value, RecordFields)
        f"{record.id}{record.title}{record.text}{record.contents}".encode()
    except msgspec.ValidationError as error:
        raise DataError(
            f"{where}: not a passage ({error}): write objects with the strings id, title and text"
        ) from error
    except UnicodeEncodeError:
        raise DataError(f"{where}: holds half of a character (a lone surrogate): replace it") from None
    return record


def lines_of(file: Opened, *, skip_long: bool = False) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, position of the first character, and bytes of each line, without a byte order mark.

    Args:
        file: The open document.
        skip_long: Whether to skip lines that are too long instead of raising an error.

    Raises:
        DataError: A line is too long.
    """
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
    """Skip the rest of a line in pieces, and return its number of characters."""
    count = 0
    while piece and not piece.endswith(b"\n"):
        piece = stream.readline(MAX_LINE)
        count += _characters(piece)
    return count


def _characters(piece: bytes) -> int:
    """Return how many UTF-8 characters begin in some bytes."""
    return len(piece.translate(None, _CONTINUATIONS))


def _length(line: bytes) -> int:
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))


def placed_record(
    record: RecordFields,
    document: Document,
    number: int,
    span: tuple[int, int] | None,
    metadata: dict[str, Any],
    place: str = "",
) -> Placed:
    """Return the passage of a record.

    Args:
        record: Fields of the record that make the passage.
        document: The document.
        number: Line number of the record. 0 if it does not have its own line.
        span: Start and end of the record in the file, in characters. None if unknown.
        metadata: Metadata of the passage.
        place: Place of the record, for messages. If empty, document and line are named.

    Raises:
        DataError: The record has no text.
    """
    try:
        title, text = _title_and_text(record)
    except ValueError as error:
        raise DataError(f"{place or at(document, number)}: {error}: add the text or remove the line") from None
    title, text = without_controls(title), without_controls(text)
    own_id = record.id is not None and record.id != ""
    key = str(record.id) if own_id else f"{document.key}#{digest(title, text, encoded(metadata))}"
    start, end = span or (None, None)
    passage = Passage(key, title, text, source=document.name, start=start, end=end, metadata=metadata)
    return Placed(passage, document, number, own_id)


def _title_and_text(record: RecordFields) -> tuple[str, str]:
    """Return title and text of a record.

    Raises:
        ValueError: The record has no text.
    """
    title, text = record.title or "", record.text
    if text is None and record.contents is not None:
        title, text = split_contents(record.contents, title)
    if text is None:
        raise ValueError('holds neither "text" nor "contents"')
    if not text.strip():
        raise ValueError("its text is empty")
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

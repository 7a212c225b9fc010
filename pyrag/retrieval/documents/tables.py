"""Passages from CSV and TSV files: `clevercsv` detects the delimiter, the standard library reads the rows.

A table has a heading. Lines above it, such as titles, are skipped with a remark; a line such as `sep=;` sets the
delimiter. All other columns are metadata. In tables with decimal commas, figures such as `1.750` stay texts, because
their meaning is ambiguous.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, zip_longest
from typing import Any

from pyrag.errors import DataError
from pyrag.retrieval.documents.json_records import RecordFields, lines_of, not_utf8, note_fields, placed_record
from pyrag.retrieval.documents.model import MAX_LINE, ZERO_BYTE, Columns, Placed, at
from pyrag.retrieval.documents.opened_document import Opened
from pyrag.retrieval.filters.metadata import metadata_of, value_of_text
from pyrag_helpers.columns import is_single_column

WHOLE = "*"  # name of the text column that means all columns
_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t"}
_SUBJECTS = ("title", "name")  # columns that say what a row is about
_NUMBERS = frozenset("0123456789.,:/%-+ ")
_SAMPLE = 1 << 16  # bytes of the first lines, by which delimiter and heading are chosen
_SAMPLE_LINES = 60
_SNIFFED = 1 << 12  # characters that the slow detection of the delimiter looks at
_HEADING_LINES = 12
_SEPARATOR = re.compile(r"\ufeff?sep=(.)", re.IGNORECASE)
_ENDED = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMA = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+")


def table(file: Opened, columns: Columns) -> Iterator[Placed]:
    """Yield the passages of a CSV or TSV file.

    Args:
        file: The open document.
        columns: Columns that hold id, title and text. Without a text column, whole rows may be used.

    Raises:
        DataError: There is no text column, or a row is broken.
    """
    document = file.document
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    rows = _Rows(file)
    header = rows.header(_DELIMITERS[document.kind], columns)
    if any(rows.above):
        file.remarks.append(
            f"{len(rows.above)} lines above the heading ({rows.names[0]}, …) are not rows, and were left out"
        )
    if rows.whole:
        file.remarks.append("no column 'text', so every row was taken whole")
        yield from _whole_rows(file, rows, header)
        return
    places = {name: header.index(column.lower()) for name, column in _named(columns) if column.lower() in header}
    places_used, names = set(places.values()), rows.names
    for number, row, span in rows:
        if not any(row):
            continue
        fields = {name: row[place] for name, place in places.items() if place < len(row)}
        others = (
            (name, row[place]) for place, name in enumerate(names) if place < len(row) and place not in places_used
        )
        try:
            item = placed_record(RecordFields(**fields), document, number, span, _cells(file, others, rows))
        except DataError as error:
            file.leave_out(error)
        else:
            yield item


def _whole_rows(file: Opened, rows: _Rows, header: list[str]) -> Iterator[Placed]:
    document = file.document
    title = document.title
    for number, row, span in rows:
        if text := _row_text(header, row):
            record = RecordFields(title=_row_title(title, header, row), text=text)
            cells = _cells(file, zip((name.strip() for name in header), row, strict=False), rows)
            yield placed_record(record, document, number, span, cells)


def _cells(file: Opened, cells: Iterable[tuple[str, str]], rows: _Rows) -> dict[str, Any]:
    texts = {name: cell.strip() for name, cell in cells if name}
    values = {
        name: cell if rows.has_commas and _THOUSANDS.fullmatch(cell) else value_of_text(cell)
        for name, cell in texts.items()
    }
    metadata, left_out = metadata_of(values)
    note_fields(file, left_out)
    return metadata


class _Rows:
    """Rows of a table. Iterating yields the number of each row's last line, its fields and its characters."""

    def __init__(self, file: Opened) -> None:
        self._document = file.document
        self._cure = file.encoding_cure
        self._source: Iterator[tuple[int, int, bytes]] = _lines(file)
        self._number = self._at = self._end = 0
        self._delimiter = ","
        self.whole = False  # True if each row as a whole is a text
        self.names: list[str] = []  # names of the columns, as written
        self.above: list[str] = []  # lines above the heading
        self.has_commas = False  # whether numbers have decimal commas, so that points may separate thousands
        self._size = 0  # characters of the row so far

    def header(self, delimiters: str, columns: Columns) -> list[str]:
        """Read up to the heading; return its names, in lower case unless whole rows are used."""
        sample = self._sample()
        declaration = _SEPARATOR.fullmatch(sample[0].strip()) if sample else None
        first = "".join(sample[:1]).strip()
        if declaration:
            next(self._some())
            del sample[0]
            delimiters = declaration[1]
        place = self._text_heading(sample, delimiters, columns.text.lower())
        self.whole = place is None
        if place is None:
            if not first or not (columns.text == WHOLE or (columns.are_default and not self._document.is_named)):
                raise self._no_column(columns.text, first)
            self._delimiter = _delimiter("".join(sample), delimiters)
            place = _heading_row(list(csv.reader(sample, delimiter=self._delimiter)))
        self.above = [" ".join(filter(None, row)) for row in self._rows(place)]
        header = next(self._rows(1), [])
        self._size = 0
        self.names = [" ".join(name.split()) for name in header]
        self.has_commas = _has_commas(csv.reader(sample, delimiter=self._delimiter))
        return self.names if self.whole else [name.lower() for name in self.names]

    def _text_heading(self, sample: Sequence[str], delimiters: str, text: str) -> int | None:
        """Set the delimiter and return the number of the row that names the text column; None if no row does."""
        for self._delimiter in delimiters:
            rows = csv.reader(sample[:_HEADING_LINES], delimiter=self._delimiter)
            width = 0
            with suppress(csv.Error):
                for number, row in enumerate(rows):
                    if len(row) > width and text in (name.strip().lower() for name in row):
                        return number
                    width = max(width, len(list(filter(None, row))))
        return None

    def _no_column(self, name: str, first: str) -> DataError:
        return DataError(
            f"{self._document.name} has no column {name!r} (its first line is {first[:200] or 'nothing'!r}): "
            "name the columns with --text-column, --title-column and --id-column, or take rows whole with "
            f"--text-column '{WHOLE}'"
        )

    def _sample(self) -> list[str]:
        """Return the first lines without consuming them."""
        lines: list[tuple[int, int, bytes]] = []
        size = 0
        for line in self._source:
            lines.append(line)
            size += len(line[2])
            if size > _SAMPLE or len(lines) >= _SAMPLE_LINES:
                break
        self._source = chain(lines, self._source)
        if number := next((number for number, _, line in lines if b"\0" in line), 0):
            raise DataError(f"{at(self._document, number)}: {ZERO_BYTE}{self._cure}")
        return [line.decode("utf-8", "replace") for _, _, line in lines]

    def _rows(self, count: int) -> Iterator[list[str]]:
        try:
            yield from islice(csv.reader(self._some(), delimiter=self._delimiter), count)
        except csv.Error as error:
            raise self._broken(error) from error

    def _broken(self, error: csv.Error) -> DataError:
        return DataError(f"{at(self._document, self._number)}: not a table ({error}): fix the line")

    def __iter__(self) -> Iterator[tuple[int, list[str], tuple[int, int]]]:
        start = self._at
        try:
            for row in csv.reader(self._some(), delimiter=self._delimiter):
                yield self._number, row, (start, self._end)
                start, self._size = self._at, 0
        except csv.Error as error:
            raise self._broken(error) from error

    def _some(self) -> Iterator[str]:
        for number, start, line in self._source:
            self._number = number
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise not_utf8(at(self._document, self._number), line, error, self._cure) from error
            self._at = start + len(text)
            self._end = start + len(text.rstrip())
            self._size += len(text)
            if self._size > MAX_LINE:
                raise DataError(
                    f"{at(self._document, self._number)}: the row is longer than {MAX_LINE >> 20} MiB: "
                    "close the quotation mark that was left open"
                )
            yield text


def _lines(file: Opened) -> Iterator[tuple[int, int, bytes]]:
    """Yield the lines of a file, as `lines_of` does. They may end with a carriage return only."""
    for number, start, line in lines_of(file):
        if b"\r" not in line.removesuffix(b"\r\n"):
            yield number, start, line
            continue
        for piece in _ENDED.findall(line):
            yield number, start, piece
            start += len(piece.decode("utf-8", "replace"))


def _delimiter(sample: str, delimiters: str) -> str:
    """Detect the delimiter of a table from its first lines."""
    if len(delimiters) == 1:
        return delimiters
    if is_single_column(sample.splitlines()):
        return "\t"
    from clevercsv import Sniffer
    from clevercsv.exceptions import Error

    try:
        dialect = Sniffer().sniff(sample[:_SNIFFED], delimiters=delimiters)
    except (Error, ValueError, RecursionError):
        dialect = None
    candidate = dialect.delimiter if dialect else ""
    return candidate if candidate and candidate in delimiters else max(delimiters, key=sample.partition("\n")[0].count)


def _heading_row(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of the first row that has about as many column names as most rows have cells."""
    sizes = [sum(1 for cell in row if cell.strip()) for row in rows]
    widths = Counter(len(row) for row, size in zip(rows, sizes, strict=True) if size)
    width = max(widths, key=lambda width: (widths[width], width), default=0)
    if width < 2:
        return next((number for number, size in enumerate(sizes) if size), 0)
    enough = max(2, width // 2)
    return next((number for number, size in enumerate(sizes[:_HEADING_LINES]) if size >= enough), 0)


def _has_commas(rows: Iterable[Sequence[str]]) -> bool:
    """Return whether a table has decimal commas, so that `1.750` may mean 1750."""
    with suppress(csv.Error):
        return any(_COMMA.fullmatch(cell.strip()) for row in rows for cell in row)
    return False


def _named(columns: Columns) -> Iterable[tuple[str, str]]:
    return (("id", columns.id), ("title", columns.title), ("text", columns.text))


def _row_text(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a row as running text, such as `name: Ann; town: Ystad`, without empty cells."""
    pairs = ((name.strip(), cell.strip()) for name, cell in zip_longest(names, row, fillvalue=""))
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)


def _row_title(table: str, names: Sequence[str], row: Sequence[str]) -> str:
    """Return the table's name, plus the cell of a title or name or else the first cell that is not a number."""
    cells = [(name.strip().lower(), cell.strip()) for name, cell in zip(names, row, strict=False) if cell.strip()]
    subjects = [cell for name, cell in cells if name in _SUBJECTS]
    words = [cell for name, cell in cells if name != "id" and not set(cell) <= _NUMBERS]
    subject = next(iter([*subjects, *words]), "")
    return f"{table}: {subject}" if subject else table

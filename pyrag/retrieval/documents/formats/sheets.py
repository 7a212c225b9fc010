"""Spreadsheets with their cells as the sheet shows them, before a converter reads them.

Cells with a number format become cells with text inside a packed file. `expat` finds them, and everything else stays as
it is, byte for byte. Of an old `.xls` file, which the converter reads without formats, `xlrd` reads the cells and
`olefile` the properties.
"""

from __future__ import annotations

import codecs
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from io import BytesIO, StringIO
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from pyrag.retrieval.documents.formats.number_formats import BUILT_IN, shown
from pyrag.retrieval.documents.formats.properties import Properties, properties_of

_MAX_PART = 16 << 20  # bytes of the part of a workbook that holds its formats
_OPEN_KINDS = frozenset(("float", "percentage", "currency", "date", "time", "boolean"))
_OPEN_VALUES = frozenset(("value-type", "value", "date-value", "time-value", "boolean-value", "currency"))
_EXPONENT = re.compile(r"\dE[+-]?\d")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_CODEPAGES = {65001: "utf-8", 10000: "mac-roman", 1200: "utf-16-le"}
_XLS_NAMES = {"comments": "description", "create_time": "created"}
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_START_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*+>""")

_Attributes = dict[str, str]
_Change = Callable[[_Attributes, list[str]], tuple[_Attributes, str | None] | None]
"""Return new attributes and text of a cell for its attributes and texts; no text to keep its content."""


class _CellForm(NamedTuple):
    """Cells of a kind of sheet: names of their elements and of the elements of their texts, and how cells change."""

    cell: str
    text: str
    change: _Change


class _CellEditor:
    """Sheet whose cells are changed while it is parsed. From a fault on, it stays unchanged."""

    def __init__(self, sheet: bytes, form: _CellForm) -> None:
        self._sheet = sheet
        self._form = form
        self._pieces: list[bytes] = []
        self._end = 0  # of the bytes that the pieces stand for
        self._cell: tuple[int, _Attributes] | None = None  # start and attributes of the open cell
        self._texts: list[list[str]] = []  # texts of the open cell, in pieces
        self._holder = ""  # full name of their elements
        self._parser = expat.ParserCreate()
        self._parser.XmlDeclHandler = self._declare
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close

    def edited(self) -> bytes:
        """Return the changed sheet."""
        if not self._sheet.startswith((b"\xfe\xff", b"\xff\xfe")):  # UTF-16
            with suppress(expat.ExpatError):
                self._parser.Parse(self._sheet, True)
        return b"".join([*self._pieces, self._sheet[self._end :]])

    def _declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "us-ascii"):
            self._refuse()

    def _refuse(self, *_: object) -> None:
        raise expat.ExpatError("spreadsheet programs do not write this")

    def _open(self, name: str, attributes: _Attributes) -> None:
        local = name.rpartition(":")[2]
        if local == self._form.cell:
            self._cell, self._texts = (self._parser.CurrentByteIndex, attributes), []
        elif local == self._form.text and self._cell:
            self._holder = name
            self._texts.append([])
            self._parser.CharacterDataHandler = self._texts[-1].append

    def _close(self, name: str) -> None:
        local = name.rpartition(":")[2]
        if local == self._form.text:
            self._parser.CharacterDataHandler = None
        elif local == self._form.cell and self._cell:
            start, attributes = self._cell
            self._cell = None
            if self._texts and (changed := self._form.change(attributes, list(map("".join, self._texts)))):
                self._replace(start, name, *changed)

    def _replace(self, start: int, name: str, attributes: _Attributes, text: str | None) -> None:
        """Replace the cell that ends here."""
        tag, stop = _START_TAG.match(self._sheet, start), self._parser.CurrentByteIndex
        inner = self._sheet[tag.end() if tag else start : stop]
        if text is not None:
            inner = f"<{self._holder}>{escape(text)}</{self._holder}>".encode()
        head = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
        self._pieces += [self._sheet[self._end : start], f"<{name}{head}>".encode(), inner]
        self._end = stop


def with_shown_cells(data: bytes) -> bytes:
    """Return a packed spreadsheet in which formatted cells are texts; any other file unchanged.

    Raises:
        ValueError: The formats are too large.
        zipfile.BadZipFile: The file is broken.
    """
    if not data.startswith(b"PK"):
        return data
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if "content.xml" in archive.NameToInfo:
            return _rewritten(archive, {"content.xml"}, _CellForm("table-cell", "p", _open_cell))
        formats = _formats(archive)
        if not formats:
            return data
        workbook = _part(archive, "xl/workbook.xml")
        about = () if workbook is None else (item.get("date1904") for item in workbook if _name(item) == "workbookPr")
        form = _CellForm("c", "v", _excel_cell(formats, since_1904=any(value in ("1", "true") for value in about)))
        return _rewritten(archive, {name for name in archive.NameToInfo if _SHEET.fullmatch(name)}, form)


def _rewritten(archive: zipfile.ZipFile, sheets: set[str], form: _CellForm) -> bytes:
    """Return an archive in which the cells of some members are changed."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name in archive.NameToInfo:
            content = archive.read(name)
            packed.writestr(name, _CellEditor(content, form).edited() if name in sheets else content)
    return buffer.getvalue()


def _part(archive: zipfile.ZipFile, name: str) -> ET.Element | None:
    """Return the root of a part; None if the part is missing or is not XML."""
    if name not in archive.NameToInfo:
        return None
    with archive.open(name) as file:
        content = file.read(_MAX_PART + 1)
    if len(content) > _MAX_PART:
        raise ValueError(f"its part {name} is larger than {_MAX_PART >> 20} MiB")
    try:
        return ET.fromstring(content)  # noqa: S314 (expat limits the expansion of entities)
    except ET.ParseError:
        return None


def _name(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _formats(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the number formats of a workbook by the number of a style, without general ones."""
    styles = _part(archive, "xl/styles.xml")
    if styles is None:
        return {}
    holders = {_name(element): element for element in reversed(styles)}
    own = {element.get("numFmtId"): element.get("formatCode", "") for element in holders.get("numFmts", ())}
    formats = {}
    for style, element in enumerate(holders.get("cellXfs", ())):
        number = element.get("numFmtId", "0")
        code = own.get(number) or (BUILT_IN.get(int(number), "") if number.isdecimal() else "")
        if code and code.lower() != "general" and code != "@":
            formats[str(style)] = code
    return formats


def _excel_cell(formats: dict[str, str], *, since_1904: bool) -> _Change:
    """Return the function that turns a formatted cell into text."""

    def changed(attributes: _Attributes, texts: list[str]) -> tuple[_Attributes, str | None] | None:
        code = formats.get(attributes.get("s", ""))
        if code is None or attributes.get("t", "n") != "n" or len(texts) != 1:
            return None
        try:
            text = shown(float(texts[0]), code, since_1904=since_1904)
        except ValueError:
            return None
        return None if text is None else ({**attributes, "t": "str"}, text)

    return changed


def _open_cell(attributes: _Attributes, lines: list[str]) -> tuple[_Attributes, str | None] | None:
    """Return a cell of an OpenDocument sheet as text, with dates in figures in ISO format."""
    own = {name.rpartition(":")[2]: value for name, value in attributes.items()}
    value, date = own.get("value", ""), own.get("date-value")
    if own.get("value-type") not in _OPEN_KINDS or not any(lines) or (value and _EXPONENT.search("".join(lines))):
        return None
    text = None
    if date and not _LETTERS.search(" ".join(lines)):
        text = date.replace("T", " ", 1).strip()
    elif value.startswith("-") and not {"-", "\u2212"} & set("".join(lines)):
        text = f"-{re.sub('[()]', '', ' '.join(lines))}"
    others = {name: value for name, value in attributes.items() if name.rpartition(":")[2] not in _OPEN_VALUES}
    kind = next(name for name in attributes if name.endswith("value-type"))
    return {**others, kind: "string"}, text


def xls_markdown(data: bytes) -> tuple[str, Properties]:
    """Return an old Excel file as Markdown, with its properties.

    Raises:
        Exception: The file is broken or needs a password; the libraries have classes of their own.
    """
    import xlrd

    book = xlrd.open_workbook(
        file_contents=data, formatting_info=True, logfile=StringIO(), on_demand=True, ragged_rows=True
    )
    parts: list[str] = []
    for name in book.sheet_names():
        sheet = book.sheet_by_name(name)
        rows = [row for cells in sheet.get_rows() if any(row := [_xls_cell(book, cell) for cell in cells])]
        book.unload_sheet(name)
        if rows:
            first, *others = [f"| {' | '.join(row)} |" for row in _without_empty_columns(rows)]
            heading = f"## {name} (hidden)\n" if sheet.visibility else f"## {name}\n"
            parts.append("\n".join([heading, first, f"|{' --- |' * first.count(' |')}", *others]))
    return "\n\n".join(parts), _xls_properties(data)


def _without_empty_columns(rows: list[list[str]]) -> list[list[str]]:
    width = max(map(len, rows))
    padded = [row + [""] * (width - len(row)) for row in rows]
    places = [place for place in range(width) if any(row[place] for row in padded)]
    return [[row[place] for place in range(places[0], places[-1] + 1)] for row in padded]


def _xls_cell(book: Any, cell: Any) -> str:
    import xlrd

    if cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        code = book.format_map[book.xf_list[cell.xf_index].format_key].format_str
        text = shown(cell.value, code, since_1904=bool(book.datemode))
        return text if text is not None else f"{cell.value:.15g}"
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return "TRUE" if cell.value else "FALSE"
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, ""))
    return " ".join(str(cell.value).split()).replace("|", "\\|")


def _xls_properties(data: bytes) -> Properties:
    import olefile

    with olefile.OleFileIO(data) as packed:
        stated = packed.get_metadata()
        codepage = stated.codepage or 1252
    encoding = _encoding_of(codepage % 65536)
    names = ("title", "subject", "author", "keywords", "comments", "category", "create_time")
    pairs = ((_XLS_NAMES.get(name, name), getattr(stated, name)) for name in names)
    return properties_of((name, _stated_text(value, encoding)) for name, value in pairs)


def _encoding_of(codepage: int) -> str:
    """Return Python's name of a code page of Windows; unknown ones are read as Western European."""
    name = _CODEPAGES.get(codepage, f"cp{codepage}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def _stated_text(value: Any, encoding: str) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode(encoding, "replace") if isinstance(value, bytes) else str(value or "")

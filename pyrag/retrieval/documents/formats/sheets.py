"""Spreadsheets with their cells as the sheet shows them, before a converter reads them.

Cells with a number format become cells with text inside a packed file. Of an old `.xls` file, which the converter reads
without formats, `xlrd` reads the cells and `olefile` the properties.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from html import escape, unescape
from io import BytesIO, StringIO
from typing import Any
from xml.etree import ElementTree as ET

from pyrag.retrieval.documents.formats.number_formats import BUILT_IN, shown
from pyrag.retrieval.documents.formats.properties import Properties, properties_of

_EXCEL_CELL = (  # up to the next cell at most, also in a broken file
    rb'<((?:\w+:)?)c(?=[^<>]*\ss="(?:%s)")(\s[^<>]*)(?<!/)>'
    rb"(?:[^<]*+<(?!/?\1[cv]\b))*+[^<]*+<\1v>([^<]+)</\1v>\s*+</\1c>"
)
_TYPE = re.compile(rb'\bt="(\w+)"')
_STYLE = re.compile(rb'\bs="(\d+)"')
_OPEN_CELL = re.compile(
    rb"<table:table-cell\b(?=[^<>]*office:value-type=\"(?:float|percentage|currency|date|time|boolean)\")([^<>]*)(?<!/)>"
    rb"((?:[^<]*+<(?!/?table:table-cell\b))*+[^<]*+)</table:table-cell>"
)
_OPEN_VALUE = re.compile(rb'\s(?:office|calcext):(?:value-type|(?:date-|time-|boolean-)?value|currency)="([^"]*)"')
_OPEN_DATE = re.compile(rb'office:date-value="([^"]*)"')
_OPEN_NUMBER = re.compile(rb'office:value="([^"]*)"')
_EXPONENT = re.compile(rb"\dE[+-]?\d")
_OPEN_TEXT = re.compile(rb"<text:p\b[^<>]*>((?:[^<]*+<(?!/?text:p\b))*+[^<]*+)</text:p>")
_TAG = re.compile(rb"<[^<>]*>")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_SINCE_1904 = re.compile(rb"<(?:\w+:)?workbookPr\b[^<>]*\sdate1904=\"(?:1|true)\"")
_XLS_NAMES = {"comments": "description", "create_time": "created"}
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")


def with_shown_cells(data: bytes) -> bytes:
    """Return a packed spreadsheet in which formatted cells are texts; any other file unchanged.

    Args:
        data: Content of the file.

    Raises:
        zipfile.BadZipFile: The file is broken.
    """
    if not data.startswith(b"PK"):
        return data
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if "content.xml" in archive.NameToInfo:
            return _rewritten(archive, {"content.xml": _open_cells})
        formats = _formats(archive)
        if not formats:
            return data
        since_1904 = bool(_SINCE_1904.search(archive.read("xl/workbook.xml")))
        cells = re.compile(_EXCEL_CELL % b"|".join(str(style).encode() for style in formats))

        def sheet(text: bytes) -> bytes:
            return cells.sub(lambda cell: _excel_cell(cell, formats, since_1904), text)

        return _rewritten(archive, {name: sheet for name in archive.NameToInfo if _SHEET.fullmatch(name)})


def _rewritten(archive: zipfile.ZipFile, changes: dict[str, Callable[[bytes], bytes]]) -> bytes:
    """Return an archive with some members changed."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name in archive.NameToInfo:
            content = archive.read(name)
            packed.writestr(name, changes[name](content) if name in changes else content)
    return buffer.getvalue()


def _formats(archive: zipfile.ZipFile) -> dict[int, str]:
    """Return the number formats of a workbook by the number of a style, without general ones."""
    if "xl/styles.xml" not in archive.NameToInfo or "xl/workbook.xml" not in archive.NameToInfo:
        return {}
    try:
        root = ET.fromstring(archive.read("xl/styles.xml"))  # noqa: S314 (expat limits the expansion of entities)
    except ET.ParseError:
        return {}
    own = {element.get("numFmtId"): element.get("formatCode", "") for element in _elements(root, "numFmts")}
    formats = {}
    for style, element in enumerate(_elements(root, "cellXfs")):
        number = element.get("numFmtId", "0")
        code = own.get(number) or (BUILT_IN.get(int(number), "") if number.isdecimal() else "")
        if code and code.lower() != "general" and code != "@":
            formats[style] = code
    return formats


def _elements(root: ET.Element, name: str) -> list[ET.Element]:
    holder = next((element for element in root if str(element.tag).endswith(f"}}{name}")), None)
    return [] if holder is None else list(holder)


def _excel_cell(cell: re.Match[bytes], formats: dict[int, str], since_1904: bool) -> bytes:
    prefix, attributes, number = cell.groups()
    kind, style = _TYPE.search(attributes), _STYLE.search(attributes)
    if style is None or (kind is not None and kind[1] != b"n"):
        return cell[0]
    try:
        text = shown(float(number), formats[int(style[1])], since_1904=since_1904)
    except ValueError:
        return cell[0]
    if text is None:
        return cell[0]
    value = escape(text, quote=False).encode()
    return b'<%sc%s t="str"><%sv>%s</%sv></%sc>' % (prefix, _TYPE.sub(b"", attributes), prefix, value, prefix, prefix)


def _open_cells(text: bytes) -> bytes:
    return _OPEN_CELL.sub(_open_cell, text)


def _open_cell(cell: re.Match[bytes]) -> bytes:
    """Return a cell of an OpenDocument sheet as text, with dates in figures in ISO format."""
    attributes, content = cell.groups()
    lines = [_TAG.sub(b"", line) for line in _OPEN_TEXT.findall(content)]
    date = _OPEN_DATE.search(attributes)
    value = _OPEN_NUMBER.search(attributes)
    if not any(lines) or (value and _EXPONENT.search(b"".join(lines))):
        return cell[0]
    if date and not _LETTERS.search(unescape(b" ".join(lines).decode("utf-8", "replace"))):
        day, _, clock = date[1].decode("utf-8", "replace").partition("T")
        content = b"<text:p>%s</text:p>" % f"{day} {clock}".strip().encode()
    elif value and value[1].startswith(b"-") and b"-" not in content and "\u2212".encode() not in content:
        content = b"<text:p>-%s</text:p>" % b" ".join(lines).translate(None, b"()")
    return b'<table:table-cell%s office:value-type="string">%s</table:table-cell>' % (
        _OPEN_VALUE.sub(b"", attributes),
        content,
    )


def xls_markdown(data: bytes) -> tuple[str, Properties]:
    """Return an old Excel file as Markdown, with its properties.

    Args:
        data: Content of the file.

    Raises:
        Exception: The file is broken or needs a password; the libraries have classes of their own.
    """
    import xlrd

    book = xlrd.open_workbook(file_contents=data, formatting_info=True, logfile=StringIO(), on_demand=True)
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
    names = ("title", "subject", "author", "keywords", "comments", "category", "create_time")
    values = ((name, getattr(stated, name)) for name in names)
    encoding = "utf-8" if codepage in (65001, -535) else f"cp{codepage % 65536}"
    texts = (
        (name, value.decode(encoding, "replace") if isinstance(value, bytes) else value and value.isoformat())
        for name, value in values
    )
    return properties_of((_XLS_NAMES.get(name, name), text) for name, text in texts)

"""Presentations, spreadsheets, books and other office formats as Markdown, converted by `xberg`."""

from __future__ import annotations

import asyncio
import io
import re
import struct
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from pyrag.errors import DataError, install_extra
from pyrag.retrieval.documents.formats.headings import with_headings
from pyrag.retrieval.documents.formats.properties import Properties, converted_properties, packed_properties
from pyrag.retrieval.documents.formats.sheets import with_shown_cells, xls_markdown
from pyrag.retrieval.documents.model import OFFICE
from pyrag.retrieval.documents.opened_document import Opened, check_package

_DROPPED = {
    "ppt/notesSlides/": "speaker notes",
    "ppt/comments/": "comments",
    "xl/comments": "comments",
    "xl/charts/": "charts",
}
_OLE = b"\xd0\xcf\x11\xe0"  # of an Excel file before 2007; a newer one has it if it needs a password
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_NEW_KINDS = {".xls": ".xlsx", ".doc": ".docx", ".ppt": ".pptx", ".pps": ".pptx"}  # of renamed files
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_OLD_SLIDES = (".ppt", ".pps")
_SHEETS = (".xlsx", ".xlsm", ".xltx", ".xls", ".ods")
_FORMULA = re.compile(rb"<c\b[^<>]*>\s*+<f\b[^<>]*(?:/>|>[^<]*</f>)\s*+(?:(?:<v\s*+/>|<v>\s*+</v>)\s*+)?</c>")
_OPEN_PARTS = (  # of OpenDocument files
    ("content.xml", re.compile(rb"<text:deletion\b"), "text that was deleted with changes tracked"),
    (
        "styles.xml",
        re.compile(
            rb"<style:(?:header|footer)\b[^<>]*>(?:[^<]*+<(?!/?style:(?:header|footer)[\s>]))*?text:p\b[^<>]*>[^<]"
        ),
        "page headers and footers",
    ),
)
_RTF_PARTS = {b"\\shptxt": "text boxes", b"{\\*\\footnote": "footnotes", b"\\annotation": "comments"}
_RTF_REMARKS = {
    b"\\nestcell": "tables within tables were joined, so cells may stand in other columns: save it as .docx",
    b"\\deleted": "text that was deleted with changes tracked may be included: accept the changes",
}
_NOTE = re.compile(r"\[\^([^\]\s]+)\](:)?")
_ESCAPED = re.compile(r"\\([!.()\[\]{}&%$@\"'])")
_WORD_HEADER = 0x70  # bytes of a Word document up to the lengths of its parts
_WORD, _OLD_WORD = 0xA5EC, 193  # first number of a Word document, and the version of Word 97
_LOCKED = 0x100
_LOCKED_SLIDES = b"\xdf\xc4\xd1\xf3"
_OLD_PARTS = {0x54: "page headers and footers", 0x60: "endnotes"}  # lengths of parts that the converter leaves out
_SLIDE = re.compile(r"^-----$", re.MULTILINE)
_JOINED = re.compile(r"^#{1,6} (.*\S)  +(\S.*)$", re.MULTILINE)
_WORD_TABLES = (
    "tables were read as lines, in which an empty cell leaves no gap: to keep their cells apart, save it as .docx"
)
_SLIDE_TABLES = "tables, if any, were read as one cell a line, and charts are left out: save it as .pptx"
_MAX_CELLS = 5_000_000  # of all sheets; the converter's own limit of 100,000 refuses workbooks that people have


def office_markdown(file: Opened) -> tuple[str, Properties]:
    """Return an office document as Markdown with its properties, and add remarks on omitted parts to the file.

    Raises:
        DataError: The converter is missing or cannot read the document.
    """
    document = file.document
    data = file.whole()
    if find_spec("xberg") is None:
        missing = f"{document.name} needs a converter that is not installed: {install_extra('office')}"
        raise DataError(missing)
    check_password(data, document.name)
    omissions = left_out(file, data)
    kind = _true_kind(data, document.kind)
    if kind in (".doc", *_OLD_SLIDES):
        old, remarks = _old_omissions(data, kind, document.name)
        omissions |= old
        file.remarks += remarks
    try:
        text, properties = xls_markdown(data) if _is_old_sheet(data, kind) else _converted(data, kind)
    except Exception as error:  # the library raises classes of its own
        raise DataError(f"{document.name} cannot be read ({error}): open it and save it again") from error
    if not text.strip():
        raise DataError(f"{document.name} holds no text that can be read: save it as .txt, .docx or .csv")
    marks = list(_NOTE.finditer(text))
    if {mark[1] for mark in marks if not mark[2]} - {mark[1] for mark in marks if mark[2]}:
        omissions.add("footnotes")
    if omissions:
        file.remarks.append(f"left out: {', '.join(sorted(omissions))}")
    if kind in _SHEETS:
        return with_headings(text), properties
    text = _unescaped(text)
    if kind == ".doc":
        return _with_rows(text), properties
    return with_slides(text) if kind in _OLD_SLIDES else text, properties


def _true_kind(data: bytes, kind: str) -> str:
    """Return the suffix that fits a document whose name has the suffix of another format."""
    if data.startswith(b"{\\rtf"):
        return ".rtf"
    return _NEW_KINDS.get(kind, kind) if data.startswith(b"PK") else kind


def _is_old_sheet(data: bytes, kind: str) -> bool:
    return data.startswith(_OLE) and kind in _SHEETS


def check_password(data: bytes, name: str) -> None:
    """Raise `DataError` if an Office file needs a password.

    Args:
        data: Content of the file.
        name: Name of the file in messages.
    """
    if data.startswith(_OLE) and _ENCRYPTED in data:
        raise DataError(f"{name} needs a password: save it without one")


def _converted(data: bytes, kind: str) -> tuple[str, Properties]:
    """Return the text of a document, and its properties, as the converter and its own parts report them."""
    is_packed = data.startswith(b"PK")
    content = with_shown_cells(data) if kind in _SHEETS else data
    (result,) = converted(content, kind, OFFICE.get(kind, _DOCX)).results
    return result.content, packed_properties(data) if is_packed else converted_properties(result.metadata)


def converted(data: bytes, kind: str, mime_type: str, **options: Any) -> Any:
    """Return the result of the converter `xberg` for a document.

    Args:
        data: Content of the document.
        kind: Suffix of its name.
        mime_type: Its MIME type.
        **options: Other fields of the converter's configuration.

    Raises:
        Exception: The document cannot be read; the library has classes of its own.
    """
    import xberg

    source = xberg.ExtractInput(kind="bytes", bytes=data, filename=f"document{kind}", mime_type=mime_type)
    limits = xberg.SecurityLimits(max_table_cells=_MAX_CELLS)
    config = xberg.ExtractionConfig(output_format="markdown", security_limits=limits, **options)

    async def extract() -> Any:
        return await xberg.extract(source, config)

    with ThreadPoolExecutor(1) as pool:  # the caller's thread may have a loop of its own
        return pool.submit(lambda: asyncio.run(extract())).result()


def _unescaped(text: str) -> str:
    """Remove the backslashes that the converter writes before marks which need none, outside of code."""
    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if place % 2 else _ESCAPED.sub(r"\1", part) for place, part in enumerate(parts))


def left_out(file: Opened, data: bytes) -> set[str]:
    """Return the parts of a document that are left out.

    Args:
        file: The open document.
        data: Its content.

    Raises:
        DataError: The document is broken, or unpacks to too much.
    """
    if data.startswith(b"{\\rtf"):
        file.remarks += [remark for mark, remark in _RTF_REMARKS.items() if mark in data]
        return {words for mark, words in _RTF_PARTS.items() if mark in data}
    if not data.startswith(b"PK"):
        return set()
    name = file.document.name
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise DataError(f"{name} is broken ({error}): copy or save it again") from error
    check_package(archive, len(data), name)
    omissions = {words for member in members for start, words in _DROPPED.items() if member.filename.startswith(start)}
    try:
        return omissions | _inner_omissions(archive, {member.filename for member in members})
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise DataError(f"{name} is broken ({error}): copy or save it again") from error


def _inner_omissions(archive: zipfile.ZipFile, names: set[str]) -> set[str]:
    """Return what is left out of the parts of a packed document."""
    omissions = {words for part, pattern, words in _OPEN_PARTS if part in names and pattern.search(archive.read(part))}
    sheets = (name for name in names if name.startswith("xl/worksheets/") and name.endswith(".xml"))
    drawings = (name for name in names if name.startswith("xl/drawings/drawing"))
    if any(b"<a:t>" in archive.read(drawing) for drawing in drawings):
        omissions.add("text boxes")
    if formulas := sum(len(_FORMULA.findall(archive.read(sheet))) for sheet in sheets):
        omissions.add(f"{formulas} formulas without a stored result (open and save it in a spreadsheet program)")
    return omissions


def _old_omissions(data: bytes, kind: str, name: str) -> tuple[set[str], list[str]]:
    """Return the parts that the converter leaves out of a document, and remarks on it.

    Raises:
        DataError: The document needs a password, or is older than Word 97.
    """
    if kind != ".doc":
        if _LOCKED_SLIDES in _stream(data, "Current User", name)[:64]:
            raise _locked(name)
        return set(), [_SLIDE_TABLES]
    word = _stream(data, "WordDocument", name)
    if len(word) < _WORD_HEADER:
        raise DataError(f"{name} is broken (it is cut off): copy or save it again")
    first, version, flags = (*struct.unpack_from("<HH", word, 0), struct.unpack_from("<H", word, 10)[0])
    if first != _WORD or version < _OLD_WORD:
        raise DataError(f"{name} is older than Word 97: open it in a word processor and save it as .docx")
    if flags & _LOCKED:
        raise _locked(name)
    omissions = {words for place, words in _OLD_PARTS.items() if struct.unpack_from("<I", word, place)[0] > 1}
    return omissions, [_WORD_TABLES] if b"\x07" in word or b"\x07\0" in word else []


def _locked(name: str) -> DataError:
    return DataError(f"{name} needs a password: save it without one")


def _stream(data: bytes, stream: str, name: str) -> bytes:
    """Return a stream of a compound file; empty if it is missing."""
    try:
        import olefile
    except ImportError:
        raise DataError(f"{name} needs a converter that is not installed: {install_extra('office')}") from None
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as file:
            return bytes(file.openstream(stream).read()) if file.exists(stream) else b""
    except Exception as error:  # of hostile files
        raise DataError(f"{name} is broken ({error}): copy or save it again") from error


def _with_rows(text: str) -> str:
    """Return a converted Word document, in which the rows of a table before a heading are not part of the heading."""
    return _JOINED.sub(lambda match: f"{re.sub('  +', chr(10), match[1])}\n\n## {match[2]}", text)


def with_slides(text: str) -> str:
    """Return a converted presentation, in which each slide has a heading in place of the line before it."""
    slides = [slide.strip() for slide in _SLIDE.split(text)]
    numbered = enumerate(slides[1:] if not slides[0] else slides, 1)
    return "\n\n".join(
        slide if slide.startswith("#") else f"## Slide {number}\n\n{slide}" for number, slide in numbered
    )

"""Presentations, spreadsheets, books and other office formats as Markdown, converted by `xberg`."""

from __future__ import annotations

import asyncio
import io
import re
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
_MAX_CELLS = 5_000_000  # of all sheets; the converter's own limit of 100,000 refuses workbooks that people have


def office_markdown(file: Opened) -> tuple[str, Properties]:
    """Return an office document as Markdown with its properties, and add remarks on omitted parts to the file.

    Args:
        file: The open document.

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
    try:
        text, properties = xls_markdown(data) if data.startswith(_OLE) else _converted(data, document.kind)
    except Exception as error:  # the library raises classes of its own
        raise DataError(f"{document.name} cannot be read ({error}): open it and save it again") from error
    if not text.strip():
        raise DataError(f"{document.name} holds no text that can be read: save it as .txt, .docx or .csv")
    marks = list(_NOTE.finditer(text))
    if {mark[1] for mark in marks if not mark[2]} - {mark[1] for mark in marks if mark[2]}:
        omissions.add("footnotes")
    if omissions:
        file.remarks.append(f"left out: {', '.join(sorted(omissions))}")
    return with_headings(text) if document.kind in _SHEETS else _unescaped(text), properties


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
    if kind == ".xls" and is_packed:  # renamed
        kind = ".xlsx"
    content = with_shown_cells(data) if kind in _SHEETS else data
    (result,) = converted(content, kind, OFFICE[kind]).results
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

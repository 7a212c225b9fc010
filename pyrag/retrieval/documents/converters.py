"""Converters of other formats to text: HTML by trafilatura, PDF by pypdfium2, Word by the standard library.

Left out of Word documents: headers, footers, notes, comments, text that was deleted with changes tracked, pictures.
"""

from __future__ import annotations

import io
import logging
import re
import zipfile
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree as ET

from pyrag.errors import DataError, install_extra
from pyrag.retrieval.documents.unpack import Opened, Unpacked

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BODY = "word/document.xml"
_LEVEL = re.compile(r"(?:heading|berschrift|titre|t[ií]tulo)\s?([1-6])$", re.IGNORECASE)
_PIECES = {f"{_WORD}t": None, f"{_WORD}tab": "\t", f"{_WORD}br": " ", f"{_WORD}cr": " ", f"{_WORD}noBreakHyphen": "-"}
_HYPHEN = re.compile("[\ufffe\x02]\r?\n?")  # pdfium's mark for a word that goes on in the next line
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def html_markdown(data: bytes, name: str) -> tuple[str, str]:
    """Convert a page to Markdown, without its menus and footers.

    Args:
        data: The page, or a fragment of one.
        name: Name of the file in messages.

    Returns:
        Its title, which may be empty, and its text.

    Raises:
        DataError: trafilatura is missing or cannot read the page.
    """
    try:
        import trafilatura
    except ImportError:
        raise _missing(name) from None
    logging.getLogger("trafilatura").addHandler(logging.NullHandler())  # what it complains of is said below
    if b"<html" not in data[:4096].lower():
        data = b"<html><body>" + data + b"</body></html>"  # it takes no fragments
    try:
        tree = trafilatura.load_html(data)
        if tree is None:
            raise DataError(f"{name} is no HTML that can be read: open it in a browser and save it again")
        title = tree.findtext(".//title") or ""
        text = trafilatura.extract(
            data, output_format="markdown", include_comments=False, include_formatting=True, favor_recall=True
        )
        return " ".join(title.split()), text or trafilatura.html2txt(data) or ""
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:  # of hostile pages
        raise DataError(f"{name} cannot be converted ({error}): save it as text") from error


def docx_markdown(data: bytes, name: str) -> Iterator[str]:
    """Yield the lines of a Word document as Markdown: headings, paragraphs, tables.

    Args:
        data: The file.
        name: Name of the file in messages.

    Raises:
        DataError: The document is broken, or not what its name says.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(_BODY) as body:
            packed = archive.getinfo(_BODY).compress_size
            yield from _docx_lines(io.BufferedReader(Unpacked(body, name, lambda: packed)))
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError) as error:
        raise DataError(f"{name} is no Word document that can be read ({error}): save it again as .docx") from error
    except ET.ParseError as error:
        raise DataError(f"{name} is a broken Word document ({error}): save it again as .docx") from error


def _docx_lines(stream: IO[bytes]) -> Iterator[str]:
    cells: list[str] = []  # of the open table row
    depth = 0
    # expat refuses entities that grow out of bounds and fetches none.
    for event, element in ET.iterparse(stream, events=("start", "end")):  # noqa: S314
        tag = element.tag
        if tag == f"{_WORD}tbl":
            depth += 1 if event == "start" else -1
        if event == "start":
            continue
        if tag == f"{_WORD}p":
            text = _docx_text(element)
            if depth:
                cells.append(text)
            elif text:
                yield f"{_docx_heading(element)}{text}\n\n"
            element.clear()
        elif tag == f"{_WORD}tr":
            row = " | ".join(filter(None, cells))
            cells = []
            if row:
                yield f"| {row} |\n"
            element.clear()
        elif tag == f"{_WORD}tbl" and not depth:
            yield "\n"
            element.clear()


def _docx_text(paragraph: ET.Element) -> str:
    parts = (_PIECES[element.tag] or element.text or "" for element in paragraph.iter() if element.tag in _PIECES)
    return " ".join("".join(parts).split())


def _docx_heading(paragraph: ET.Element) -> str:
    style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
    name = "" if style is None else style.get(f"{_WORD}val", "")
    if name.lower() == "title":
        return "# "
    level = _LEVEL.search(name)
    return f"{'#' * int(level[1])} " if level else ""


def pdf_pages(file: Opened) -> Iterator[str]:
    """Yield the text of each page; scanned pages have none. Raises `DataError` if the file is broken or locked."""
    try:
        import pypdfium2
    except ImportError:
        raise _missing(file.document.name) from None
    document = file.document
    direct = not document.member and not document.compression
    try:
        pdf = pypdfium2.PdfDocument(document.path if direct else file.whole())
    except pypdfium2.PdfiumError as error:
        cure = "remove its password" if "password" in str(error).lower() else "copy or save it again"
        raise DataError(f"{document.name} is a PDF that cannot be opened ({error}): {cure}") from error
    try:
        for number in range(len(pdf)):
            yield _page_text(pdf, number)
    except pypdfium2.PdfiumError as error:
        raise DataError(f"{document.name} is a broken PDF ({error}): copy or save it again") from error
    finally:
        pdf.close()


def _page_text(pdf: object, number: int) -> str:
    page = pdf[number]  # type: ignore[index]
    words = page.get_textpage()
    try:
        text: str = words.get_text_range()
    finally:
        words.close()
        page.close()
    return _UNREADABLE.sub("", _HYPHEN.sub("", text)).replace("\r\n", "\n").replace("\r", "\n")


def _missing(name: str) -> DataError:
    return DataError(f"{name} needs a converter that is not installed: {install_extra('docs')}")

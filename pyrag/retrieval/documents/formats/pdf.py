"""Text of PDF files, extracted with pypdfium2: text of pages, form fields, and notes.

Annotations of a page are read through the raw interface of pypdfium2.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import Any

from pyrag.errors import DataError, install_extra
from pyrag.retrieval.documents.formats.pdf_tables import Rows, TablePlacer, ruled_tables
from pyrag.retrieval.documents.formats.properties import properties_of
from pyrag.retrieval.documents.model import MAX_WHOLE
from pyrag.retrieval.documents.opened_document import Opened

_HYPHEN = re.compile("[\ufffe\x02]\r?\n?")  # pdfium's mark for a word that continues on the next line
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_STATED = ("Title", "Author", "Subject", "Keywords", "CreationDate")  # properties that are not of programs
_TABLE_LINES = 4  # drawn on a page with a table, at least
_MAX_ANNOTATIONS = 2000  # of a page
_MAX_TEXT = 1 << 16  # bytes of one value


class PdfText:
    """Open PDF file: its properties, and the text of its pages."""

    def __init__(self, pdf: Any, file: Opened, data: bytes | None) -> None:
        self._pdf = pdf
        self._file = file
        self._data = data
        self._tables: Mapping[int, Sequence[Rows]] | None = None  # until a page has lines
        self._placer = TablePlacer()
        self.properties = properties_of((name, _stated(pdf, name)) for name in _STATED)

    def pages(self) -> Iterator[str]:
        """Yield the text of each page, which is empty for scanned pages.

        Raises:
            DataError: The file is broken.
        """
        import pypdfium2

        try:
            if self._pdf.get_formtype():
                self._pdf.init_forms()
            for number in range(len(self._pdf)):
                yield self._page(number)
        except pypdfium2.PdfiumError as error:
            name = self._file.document.name
            raise DataError(f"{name} is a broken PDF ({error}): copy or save it again") from error

    def note_tables(self) -> None:
        """Add a remark to the file on tables that stay lines of text."""
        if count := self._placer.unplaced:
            self._file.remarks.append(f"areas of the PDF that may be tables, read as lines of text: {count}")

    def _page(self, number: int) -> str:
        page = self._pdf[number]
        words = page.get_textpage()
        try:
            text = _clean(words.get_text_range())
            if self._tables is None and _has_lines(page):
                self._tables = self._ruled_tables()
            text = self._placer.placed(text, (self._tables or {}).get(number + 1, ()))
            return "\n\n".join(filter(None, [text, *_annotations(self._pdf, page, self._file.remarks)]))
        finally:
            words.close()
            page.close()

    def _ruled_tables(self) -> Mapping[int, Sequence[Rows]]:
        """Return the tables by page; an empty mapping, with a remark, if they cannot be recognised."""
        size = self._file.document.stamp.size
        tables = ruled_tables(self._content()) if size <= MAX_WHOLE else None
        if tables is None:
            cure = f"to keep their cells apart, {install_extra('office')}" if find_spec("xberg") is None else "split it"
            self._file.remarks.append(f"tables of the PDF, if any, were read as lines: {cure}")
            self._file.lacks_reader = True
        return tables or {}

    def _content(self) -> bytes:
        document = self._file.document
        return document.path.read_bytes() if self._data is None else self._data


def _has_lines(page: Any) -> bool:
    """Return whether a page has enough lines for a table."""
    from pypdfium2 import raw

    paths = page.get_objects(filter=(raw.FPDF_PAGEOBJ_PATH,))
    return len(list(islice(paths, _TABLE_LINES))) == _TABLE_LINES


@contextmanager
def opened_pdf(file: Opened) -> Iterator[PdfText]:
    """Open a PDF file.

    Raises:
        DataError: The file is broken or needs a password, or the converter is not installed.
    """
    document = file.document
    try:
        import pypdfium2
    except ImportError:
        missing = f"{document.name} needs a converter that is not installed: {install_extra('docs')}"
        raise DataError(missing) from None
    direct = not document.member and not document.compression
    data = None if direct else file.whole()
    try:
        pdf = pypdfium2.PdfDocument(document.path if data is None else data)
    except pypdfium2.PdfiumError as error:
        cure = "remove its password" if "password" in str(error).lower() else "copy or save it again"
        raise DataError(f"{document.name} is a PDF that cannot be opened ({error}): {cure}") from error
    try:
        text = PdfText(pdf, file, data)
        yield text
        text.note_tables()
    finally:
        pdf.close()


def _clean(text: str) -> str:
    return _UNREADABLE.sub("", _HYPHEN.sub("", text)).replace("\r\n", "\n").replace("\r", "\n")


def _annotations(pdf: Any, page: Any, remarks: list[str]) -> list[str]:
    """Return the fields of a page's form, one per line, and the page's notes."""
    from pypdfium2 import raw

    fields: list[str] = []
    notes: list[str] = []
    count = raw.FPDFPage_GetAnnotCount(page)
    if count > _MAX_ANNOTATIONS:
        remarks.append(f"only the first {_MAX_ANNOTATIONS} notes and fields of a page were read")
    for number in range(min(count, _MAX_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            if kind == raw.FPDF_ANNOT_WIDGET:
                fields.append(_field(pdf.formenv, annotation))
            elif kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP):
                note = _text(lambda *rest, of=annotation: raw.FPDFAnnot_GetStringValue(of, b"Contents", *rest))
                notes.append(f"Note: {note}" if note else "")
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return ["\n".join(filter(None, dict.fromkeys(fields))), *filter(None, notes)]


def _field(form: Any, annotation: Any) -> str:
    """Return a form field as `name: value`; empty for a field without a value."""
    from pypdfium2 import raw

    if form is None:
        return ""
    name = _text(lambda *rest: raw.FPDFAnnot_GetFormFieldAlternateName(form, annotation, *rest))
    name = name or _text(lambda *rest: raw.FPDFAnnot_GetFormFieldName(form, annotation, *rest))
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        is_checked = raw.FPDFAnnot_IsChecked(form, annotation)
        choice = _text(lambda *rest: raw.FPDFAnnot_GetFormFieldExportValue(form, annotation, *rest))
        return f"{name}: {'☒' if is_checked else '☐'} {choice}".rstrip()
    if kind == raw.FPDF_FORMFIELD_PUSHBUTTON:
        return ""
    value = _text(lambda *rest: raw.FPDFAnnot_GetFormFieldValue(form, annotation, *rest))
    return f"{name}: {' '.join(value.split())}" if value.strip() else ""


def _stated(pdf: Any, name: str) -> str:
    """Return a property; pypdfium2 itself fails for a text that is not valid UTF-16."""
    from pypdfium2 import raw

    return _text(lambda *rest: raw.FPDF_GetMetaText(pdf, name.encode(), *rest)).replace("\ufffd", "")


def _text(read: Callable[..., int]) -> str:
    """Return a text that pdfium writes as UTF-16 into a buffer, whose size it reports first."""
    from pypdfium2 import raw

    size = min(read(None, 0), _MAX_TEXT)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return _clean(buffer.raw.decode("utf-16-le", "replace").partition("\0")[0]).strip()

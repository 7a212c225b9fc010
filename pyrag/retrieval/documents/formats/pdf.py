"""Text of PDF files, extracted with pypdfium2: text of pages, form fields, and notes.

Annotations of a page are read through the raw interface of pypdfium2.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

from pyrag.errors import DataError, install_extra
from pyrag.retrieval.documents.opened_document import Opened

_HYPHEN = re.compile("[\ufffe\x02]\r?\n?")  # pdfium's mark for a word that continues on the next line
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MAX_ANNOTATIONS = 2000  # of a page
_MAX_TEXT = 1 << 16  # bytes of one value


def pdf_pages(file: Opened) -> Iterator[str]:
    """Yield the text of each page, which is empty for scanned pages.

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
    try:
        pdf = pypdfium2.PdfDocument(document.path if direct else file.whole())
    except pypdfium2.PdfiumError as error:
        cure = "remove its password" if "password" in str(error).lower() else "copy or save it again"
        raise DataError(f"{document.name} is a PDF that cannot be opened ({error}): {cure}") from error
    try:
        if pdf.get_formtype():
            pdf.init_forms()
        for number in range(len(pdf)):
            yield _page_text(pdf, number, file.remarks)
    except pypdfium2.PdfiumError as error:
        raise DataError(f"{document.name} is a broken PDF ({error}): copy or save it again") from error
    finally:
        pdf.close()


def _page_text(pdf: Any, number: int, remarks: list[str]) -> str:
    page = pdf[number]
    words = page.get_textpage()
    try:
        parts = [_clean(words.get_text_range()), *_annotations(pdf, page, remarks)]
    finally:
        words.close()
        page.close()
    return "\n\n".join(filter(None, parts))


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


def _text(read: Callable[..., int]) -> str:
    """Return a text that pdfium writes as UTF-16 into a buffer, whose size it reports first."""
    from pypdfium2 import raw

    size = min(read(None, 0), _MAX_TEXT)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return _clean(buffer.raw.decode("utf-16-le", "replace").partition("\0")[0]).strip()

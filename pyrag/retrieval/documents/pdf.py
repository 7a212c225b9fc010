"""The text of PDF files page by page, by pypdfium2 (`pyrag-runtime[docs]`). Scanned pages have none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrag.errors import DataError
from pyrag.retrieval.documents.unpack import Opened

_HYPHEN = re.compile("[\ufffe\x02]\r?\n?")  # pdfium's mark for a word that goes on in the next line
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def pages(file: Opened) -> Iterator[str]:
    """Raises `DataError` where the file is broken or locked."""
    try:
        import pypdfium2
    except ImportError:
        name = file.document.name
        raise DataError(
            f"{name} needs a converter that is not installed: run pip install 'pyrag-runtime[docs]'"
        ) from None
    document = file.document
    direct = not document.member and not document.compression
    try:
        pdf = pypdfium2.PdfDocument(document.path if direct else file.whole())
    except pypdfium2.PdfiumError as error:
        cure = "remove its password" if "password" in str(error).lower() else "copy or save it again"
        raise DataError(f"{document.name} is a PDF that cannot be opened ({error}): {cure}") from error
    try:
        for number in range(len(pdf)):
            yield _text(pdf, number)
    except pypdfium2.PdfiumError as error:
        raise DataError(f"{document.name} is a broken PDF ({error}): copy or save it again") from error
    finally:
        pdf.close()


def _text(pdf: object, number: int) -> str:
    page = pdf[number]  # type: ignore[index]
    words = page.get_textpage()
    try:
        text: str = words.get_text_range()
    finally:
        words.close()
        page.close()
    return _UNREADABLE.sub("", _HYPHEN.sub("", text)).replace("\r\n", "\n").replace("\r", "\n")

"""Presentations, spreadsheets, e-mails, books and other office formats as Markdown, by `xberg`."""

from __future__ import annotations

import asyncio
import io
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyrag.errors import DataError, install_extra
from pyrag.retrieval.documents.model import OFFICE
from pyrag.retrieval.documents.unpack import Opened

_DROPPED = {
    "ppt/notesSlides/": "speaker notes",
    "ppt/comments/": "comments",
    "xl/comments": "comments",
    "xl/charts/": "charts",
}
_MAX_MEMBERS = 10_000
_MAX_UNPACKED = 512 << 20  # bytes of all parts of a packed document


def office_markdown(file: Opened) -> str:
    """Return an office document as Markdown, and append remarks to the file on what was left out.

    Args:
        file: The open document.

    Raises:
        DataError: The converter is missing or cannot read the document.
    """
    document = file.document
    data = file.whole()
    try:
        import xberg
    except ImportError:
        missing = f"{document.name} needs a converter that is not installed: {install_extra('office')}"
        raise DataError(missing) from None
    _check_parts(file, data)
    source = xberg.ExtractInput(
        kind="bytes", bytes=data, filename=f"document{document.kind}", mime_type=OFFICE[document.kind]
    )
    config = xberg.ExtractionConfig(output_format="markdown")

    async def extract() -> Any:
        return await xberg.extract(source, config)

    try:
        with ThreadPoolExecutor(1) as pool:  # the caller's thread may have a loop of its own
            results = pool.submit(lambda: asyncio.run(extract())).result().results
        text = "\n\n".join(result.content for result in results)
    except Exception as error:  # the library raises classes of its own
        raise DataError(f"{document.name} cannot be read ({error}): open it and save it again") from error
    if not text.strip():
        raise DataError(f"{document.name} holds no text that can be read: save it as .txt, .docx or .csv")
    return text


def _check_parts(file: Opened, data: bytes) -> None:
    """Refuse a packed document that unpacks to too much; add a remark on parts that are left out."""
    if not data.startswith(b"PK"):
        return
    name = file.document.name
    try:
        members = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise DataError(f"{name} is broken ({error}): copy or save it again") from error
    if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > _MAX_UNPACKED:
        raise DataError(f"{name} unpacks to more than {_MAX_UNPACKED >> 20} MiB: split it")
    omissions = {words for member in members for start, words in _DROPPED.items() if member.filename.startswith(start)}
    if omissions:
        file.remarks.append(f"left out: {', '.join(sorted(omissions))}")

"""Documents made from passages, and the document that a passage belongs to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.documents.model import COMPRESSED, TABLES
from pyrag.trace.model import Passage

_PAGE = re.compile(r"#page=\d+\Z")
_SECTION = " > "  # between the headings above a passage


@lru_cache(maxsize=4096)
def file_of(source: str) -> str:
    """Return the file or address whose passages are one document; empty if each passage is a document of its own.

    Passages without a source, and records of JSON, CSV and TSV files, are documents of their own. The pages of a PDF
    are one file.
    """
    name = _PAGE.sub("", source) if "#page=" in source else source
    plain = name.lower()
    for suffix in COMPRESSED:
        plain = plain.removesuffix(suffix)
    return "" if plain.endswith(TABLES) else name


def common_folder(files: Iterable[str]) -> str:
    """Return the common folder of all absolute paths, with a slash at its end, or an empty text."""
    folders = {posixpath.dirname(file) for file in files if "://" not in file}
    absolute = {folder for folder in folders if folder.startswith("/")}
    if not absolute:
        return ""
    shared = posixpath.commonpath(absolute)
    if absolute != folders:  # the last folder's name keeps the ids apart from those of relative paths
        shared = posixpath.dirname(shared)
    return shared if shared.endswith("/") else f"{shared}/"


def document_of(passages: Sequence[Passage], folder: str = "") -> CatalogueDocument:
    """Return the document that consists of these passages.

    Args:
        passages: All passages of one document.
        folder: Result of `common_folder`, which is removed from the id and the source.
    """
    first = min(passages, key=reading_order)
    file = file_of(first.source)
    if not file:
        return records_of([first], first.source)[0]
    name = file.removeprefix(folder)
    return CatalogueDocument(name, first.title.partition(_SECTION)[0] or name, name, first.metadata, len(passages))


def records_of(passages: Iterable[Passage], source: str) -> list[CatalogueDocument]:
    """Return the documents for passages that are documents of their own.

    Args:
        passages: Records of one file, or passages without a source.
        source: The file; empty for none.
    """
    shown = shown_source(source)
    return [CatalogueDocument(passage.id, passage.title, shown, passage.metadata) for passage in passages]


def shown_source(source: str) -> str:
    """Return the source of a record without the folders of this machine."""
    return posixpath.basename(source) if source.startswith(("/", "~")) else source


def reading_order(passage: Passage) -> tuple[int, str]:
    """Return a key for sorting the passages of a document, or the records of a file."""
    return (passage.start or 0, passage.id)

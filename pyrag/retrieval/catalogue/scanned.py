"""Catalogue for passages in memory or in a vector store, which have no list of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from pyrag.retrieval.catalogue.grouping import common_folder, document_of, file_of, reading_order
from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import Passage

DocumentKey = tuple[str, str]
"""The file that passages belong to and an empty id, or an empty file and the id of a passage."""

Scan = Callable[[Filter | None], Iterable[Passage]]
Lookup = Callable[[Sequence[DocumentKey], Filter | None], Iterable[Passage]]


class ScannedCatalogue:
    """Documents of passages that are scanned for each request. It is synchronous, and safe to use from several threads.

    Args:
        scan: Function that returns the passages that a filter passes. Any others are dropped here.
        look_up: Function that returns such passages of some documents. Any others are dropped here.
    """

    def __init__(self, scan: Scan, look_up: Lookup) -> None:
        self._scan = scan
        self._look_up = look_up
        self._folder: str | None = None

    def count(self, where: Filter | None) -> int:
        """Return the number of documents."""
        return len({document_key(passage) for passage in _passing(self._scan(where), where)})

    def page(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents: files by name, then records in the order of their files.

        Args:
            where: Filter of passages.
            offset: Number of documents to skip.
            limit: Maximum number of documents in the page.
        """
        folder, groups = self._root(), by_document(_passing(self._scan(where), where))
        ordered = sorted(groups, key=lambda key: (key[0] or groups[key][0].source, reading_order(groups[key][0])))
        return [document_of(groups[key], folder) for key in islice(ordered, offset, offset + limit)]

    def passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document in reading order.

        Args:
            document: Id of the document.
            where: Filter of passages.
        """
        keys = tuple(dict.fromkeys((("", document), (f"{self._root()}{document}", ""), (document, ""))))
        passages = _passing(self._look_up(keys, where), where)
        return sorted((passage for passage in passages if document_key(passage) in keys), key=reading_order)

    def _root(self) -> str:
        """Return the common folder of all files, regardless of filters, so that ids do not depend on them."""
        if self._folder is None:
            self._folder = common_folder({file for passage in self._scan(None) if (file := document_key(passage)[0])})
        return self._folder


def held_in_memory(passages: Iterable[Passage]) -> ScannedCatalogue:
    """Return a catalogue of passages that do not change.

    Args:
        passages: All passages.
    """
    everything = list(passages)
    groups: Mapping[DocumentKey, list[Passage]] = by_document(everything)
    return ScannedCatalogue(lambda _: everything, lambda keys, _: [p for key in keys for p in groups.get(key, ())])


def by_document(passages: Iterable[Passage]) -> dict[DocumentKey, list[Passage]]:
    """Group passages by their document.

    Args:
        passages: Passages of any documents.
    """
    groups: dict[DocumentKey, list[Passage]] = {}
    for passage in passages:
        groups.setdefault(document_key(passage), []).append(passage)
    return groups


def document_key(passage: Passage) -> DocumentKey:
    """Return the key of the document that a passage belongs to.

    Args:
        passage: Any passage.
    """
    file = file_of(passage.source)
    return (file, "") if file else ("", passage.id)


def _passing(passages: Iterable[Passage], where: Filter | None) -> Iterable[Passage]:
    return (passage for passage in passages if where is None or where.matches(passage.metadata))

"""Catalogue of passages that can only be read one after the other: in memory, or in a store of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from pyrag.retrieval.catalogue.grouping import common_folder, document_of, file_of, reading_order
from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import Passage

Scan = Callable[[Filter | None], Iterable[Passage]]


class ScannedCatalogue:
    """Documents of passages that are read for each request. Synchronous; safe in several threads.

    Args:
        scan: Returns the passages that a filter passes; more are dropped here.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._folder: str | None = None

    def count(self, where: Filter | None) -> int:
        """Return the number of documents."""
        return len({_key(passage) for passage in self._passing(where)})

    def page(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents: files by name, then records in the order of their files.

        Args:
            where: Filter of passages.
            offset: Number of documents before the page.
            limit: Maximum number of documents in the page.
        """
        folder, groups = self._root(), dict[tuple[str, str], list[Passage]]()
        for passage in self._passing(where):
            groups.setdefault(_key(passage), []).append(passage)
        ordered = sorted(groups, key=lambda key: (key[0] or groups[key][0].source, reading_order(groups[key][0])))
        return [document_of(groups[key], folder) for key in islice(ordered, offset, offset + limit)]

    def passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document in reading order.

        Args:
            document: Id of the document.
            where: Filter of passages.
        """
        file = f"{self._root()}{document}"
        names = {("", document), (file, ""), (document, "")}
        return sorted((passage for passage in self._passing(where) if _key(passage) in names), key=reading_order)

    def _passing(self, where: Filter | None) -> Iterable[Passage]:
        return (passage for passage in self._scan(where) if where is None or where.matches(passage.metadata))

    def _root(self) -> str:
        """Return the folder of all files, whatever a filter passes, so that ids do not depend on filters."""
        if self._folder is None:
            self._folder = common_folder({file for passage in self._scan(None) if (file := _key(passage)[0])})
        return self._folder


def _key(passage: Passage) -> tuple[str, str]:
    """Return the file that a passage belongs to, or else its id."""
    file = file_of(passage.source)
    return (file, "") if file else ("", passage.id)

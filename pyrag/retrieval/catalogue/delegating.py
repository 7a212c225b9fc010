"""Bases of retrievers over an index, with its documents, and of retrievers around others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pyrag._io.threads import Stop, in_stoppable_thread, never
from pyrag.errors import ServiceError
from pyrag.retrieval.catalogue.protocol import (
    CatalogueDocument,
    count_documents,
    document_passages,
    has_catalogue,
    list_documents,
)
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import FilterVerdict
from pyrag.retrieval.protocol import OwnRetriever, fetch_passages, filter_verdict, name_of
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.catalogue.index_catalogue import IndexCatalogue

T = TypeVar("T")


class IndexDocuments:
    """Documents of a retriever over an index. `catalogue` is None if the retriever does not know the whole index."""

    @property
    def catalogue(self) -> IndexCatalogue | None:
        """The documents of the index."""
        raise NotImplementedError

    @property
    def has_catalogue(self) -> bool:
        return self.catalogue is not None

    async def count_documents(self, where: Filter | None) -> int:
        """Return the number of documents. Raises `ServiceError` if a file of the index is damaged."""
        return await self._read(lambda catalogue, stop: catalogue.count(where, stop))

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents.

        Args:
            where: Filter that documents must pass; None for all.
            offset: Number of documents to skip.
            limit: Maximum number of documents.
        """
        return await self._read(lambda catalogue, stop: catalogue.page(where, offset, limit, stop))

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document.

        Args:
            document: Id of the document.
            where: Filter that passages must pass; None for all.
        """
        catalogue = self.catalogue
        if catalogue is not None and catalogue.is_quick:
            await catalogue.prepare(where)
            return self._guarded(lambda: catalogue.passages(document, where, never))
        return await self._read(lambda catalogue, stop: catalogue.passages(document, where, stop))

    async def _read(self, work: Callable[[IndexCatalogue, Stop], T]) -> T:
        catalogue = self.catalogue
        assert catalogue is not None, "asked without a catalogue"
        return await in_stoppable_thread(lambda stop: self._guarded(lambda: work(catalogue, stop)))

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (ValueError, OSError) as error:
            name = name_of(self)
            message = f"index {name} cannot be read ({error}): build it again with pyrag index and --rebuild"
            raise ServiceError(message, service=name) from error


class WrappingRetriever:
    """Base of retrievers around others, which are in `wrapped`.

    The first of them is asked, and for documents the first with a catalogue.
    """

    wrapped: Any
    _checks = False  # whether passages of pyrag's own retrievers are checked again, against a filter

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Judge a filter before a search; see `FilterJudge.judge_filter`.

        Args:
            where: The filter.
            within: Filter of the passages that the caller may know of. None for all.
        """
        async with self.use() as inner:
            return await filter_verdict(inner, where, within)

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages with these ids that exist; None if ids cannot be looked up."""
        async with self.use() as inner:
            return await fetch_passages(inner, ids)

    async def aclose(self) -> None:
        for inner in self.wrapped:
            await inner.aclose()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Any]:
        """Keep the retriever that is asked open."""
        yield self.wrapped[0]

    @property
    def has_catalogue(self) -> bool:
        return self._documents_of() is not None

    async def count_documents(self, where: Filter | None) -> int:
        """Return the number of documents."""
        async with self._catalogued() as inner:
            return await count_documents(inner, self._bound(where))

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents.

        Args:
            where: Filter that documents must pass; None for all.
            offset: Number of documents to skip.
            limit: Maximum number of documents.
        """
        async with self._catalogued() as inner:
            return await list_documents(inner, self._bound(where), offset, limit)

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document.

        Args:
            document: Id of the document.
            where: Filter that passages must pass; None for all.
        """
        async with self._catalogued() as inner:
            if isinstance(inner, OwnRetriever) or self._checks:
                return await document_passages(inner, document, self._bound(where))
            passages: list[Passage] = await inner.document_passages(document, where)
            return passages

    def _documents_of(self) -> Any:
        return next((inner for inner in self.wrapped if has_catalogue(inner)), None)

    @asynccontextmanager
    async def _catalogued(self) -> AsyncIterator[Any]:
        yield self._documents_of()

    def _bound(self, where: Filter | None) -> Filter | None:
        """Return the filter to pass to the inner retriever."""
        return where

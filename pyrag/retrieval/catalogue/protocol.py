"""Optional `Catalogue` part of a retriever, and functions that use it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pyrag.errors import MalformedReplyError, PyRAGError, ServiceError
from pyrag.retrieval.checked import checked
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import OwnRetriever, Retriever, described, name_of
from pyrag.trace.model import Passage

T = TypeVar("T")

PAGE = 1_000
"""Documents that are requested from a catalogue at once."""


@dataclass(frozen=True, slots=True)
class CatalogueDocument:
    """Document of a catalogue, without its text.

    A file of running text is a document of one or more passages. A line of JSON, a row of a table and a passage without
    a source are documents of their own.

    Attributes:
        id: Id, which is unique among all documents of the retriever.
        title: Title, which is the heading of the first passage.
        source: File or address that it comes from; empty if unknown.
        metadata: Metadata of the first passage.
        passages: Number of the document's passages that the filter passes.
    """

    id: str
    title: str
    source: str = ""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    passages: int = 1


class Catalogue(Protocol):
    """Optional part of a retriever: its documents. It enables `documents`, `count`, `open_document` and `each`.

    Each method takes a filter (`pyrag.retrieval.filters.tree`), whose `matches(passage.metadata)` decides for each
    passage: a document exists if at least one of its passages passes, and nothing about the other passages may show,
    neither in counts nor in titles. None passes everything.
    """

    async def count_documents(self, where: Filter | None) -> int:
        """Return the exact number of documents."""
        ...

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents, in an order that only changes if the documents change.

        Args:
            where: Filter of passages.
            offset: Number of documents to skip.
            limit: Maximum number of documents in the page.
        """
        ...

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return a document's passages that the filter passes, in reading order; empty for an unknown document.

        Args:
            document: Id of the document. It comes from a program, so it may be any text.
            where: Filter of passages.
        """
        ...


class NoCatalogueError(PyRAGError):
    """Error for a retriever that cannot list its documents."""


_METHODS = ("count_documents", "list_documents", "document_passages")


def has_catalogue(retriever: object) -> bool:
    """Return True if a retriever, and every retriever that it wraps, has a catalogue."""
    if isinstance(retriever, OwnRetriever):
        retriever = retriever.inner
    try:
        if not all(callable(getattr(retriever, name, None)) for name in _METHODS):
            return False
        test = getattr(retriever, "has_catalogue", True)
    except Exception:  # a retriever from another package may raise anything
        return False
    return bool(test)


async def count_documents(retriever: Retriever, where: Filter | None = None) -> int:
    """Return the exact number of documents of a retriever.

    Args:
        retriever: Any retriever.
        where: Filter of passages.

    Raises:
        NoCatalogueError: The retriever has no catalogue.
        ServiceError: The retriever failed.
    """
    total = await _asked(retriever, lambda catalogue: catalogue.count_documents(where))
    if isinstance(total, bool) or not isinstance(total, int) or total < 0:
        raise _malformed(retriever, "count_documents", "a number of documents")
    return total


async def list_documents(
    retriever: Retriever, where: Filter | None = None, offset: int = 0, limit: int = PAGE
) -> list[CatalogueDocument]:
    """Return a page of the documents of a retriever; documents that the filter excludes are dropped.

    Args:
        retriever: Any retriever.
        where: Filter of passages.
        offset: Number of documents to skip.
        limit: Maximum number of documents in the page.

    Raises:
        NoCatalogueError: The retriever has no catalogue.
        ServiceError: The retriever failed.
    """
    page = await _asked(retriever, lambda catalogue: catalogue.list_documents(where, offset, limit))
    if not isinstance(page, list) or not all(isinstance(item, CatalogueDocument) for item in page):
        raise _malformed(retriever, "list_documents", "a list of pyrag.extend.CatalogueDocument")
    return page[:limit] if where is None else [item for item in page[:limit] if where.matches(item.metadata)]


async def document_passages(retriever: Retriever, document: str, where: Filter | None = None) -> list[Passage]:
    """Return the passages of a document in reading order; passages that the filter excludes are dropped.

    Args:
        retriever: Any retriever.
        document: Id of the document.
        where: Filter of passages.

    Raises:
        NoCatalogueError: The retriever has no catalogue.
        ServiceError: The retriever failed.
    """
    passages = await _asked(retriever, lambda catalogue: catalogue.document_passages(document, where))
    if not isinstance(passages, list):
        raise _malformed(retriever, "document_passages", "a list of pyrag.Passage")
    usable = checked(passages, len(passages))
    return list(usable) if where is None else [passage for passage in usable if where.matches(passage.metadata)]


async def _asked(retriever: Retriever, ask: Callable[[Any], Awaitable[T]]) -> T:
    """Request something from a catalogue, and turn any exception of a user-defined one into a service error."""
    name = name_of(retriever)
    if not has_catalogue(retriever):
        raise NoCatalogueError(
            f"the retriever {name} cannot list its documents: search with retrieve(), or use an index folder, "
            "pgvector, Qdrant or a retriever with the methods of pyrag.extend.Catalogue"
        )
    try:
        reply = ask(retriever.inner if isinstance(retriever, OwnRetriever) else retriever)
        return await reply if inspect.isawaitable(reply) else reply
    except PyRAGError:
        raise
    except Exception as error:
        message = f"the catalogue of {name} failed ({described(error)}): look into its code"
        raise ServiceError(message, service=name) from error


def _malformed(retriever: Retriever, method: str, wanted: str) -> MalformedReplyError:
    name = name_of(retriever)
    return MalformedReplyError(f"{method}() of {name} must return {wanted}", service=name)

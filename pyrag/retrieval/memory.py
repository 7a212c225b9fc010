"""Retriever over a few passages in memory, for tests of code that uses pyrag. Use `pyrag index` for real corpora."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.catalogue.scanned import held_in_memory
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import Passage

_WORD = re.compile(r"\w+")


class InMemoryRetriever:
    """Retriever that ranks passages by the share of the query's words in them. Ties keep the order of the passages.

    With a mapping from queries to passages, it returns the passages of exactly this query, and none for others.
    `queries` records the calls.
    """

    def __init__(self, passages: Iterable[Passage] | Mapping[str, Sequence[Passage]], name: str = "memory") -> None:
        self._script = dict(passages) if isinstance(passages, Mapping) else None
        self._passages = [] if isinstance(passages, Mapping) else [(p, _words(f"{p.title} {p.text}")) for p in passages]
        self._name = name
        scripted = [passage for some in (self._script or {}).values() for passage in some]
        distinct = {passage.id: passage for passage in (*scripted, *(passage for passage, _ in self._passages))}
        self._catalogue = held_in_memory(distinct.values())
        self.queries: list[tuple[str, int]] = []

    @property
    def name(self) -> str:
        """Name of the retriever in traces."""
        return self._name

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the scripted passages, or the passages that share words with the query.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.
        """
        self.queries.append((query, topk))
        if self._script is not None:
            scripted = self._script.get(query, ())
            return [p for p in scripted if where is None or where.matches(p.metadata)][: max(topk, 0)]
        query_words = _words(query)
        candidates = [item for item in self._passages if where is None or where.matches(item[0].metadata)]
        scored = [
            replace(p, score=len(query_words & words) / len(query_words))
            for p, words in candidates
            if query_words & words
        ]
        return sorted(scored, key=lambda passage: -passage.score)[: max(topk, 0)]

    async def count_documents(self, where: Filter | None) -> int:
        """Return the number of documents."""
        return self._catalogue.count(where)

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents.

        Args:
            where: Filter that documents must pass; None for all.
            offset: Number of documents to skip.
            limit: Maximum number of documents.
        """
        return self._catalogue.page(where, offset, limit)

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document.

        Args:
            document: Id of the document.
            where: Filter that passages must pass; None for all.
        """
        return self._catalogue.passages(document, where)

    async def aclose(self) -> None:
        """Do nothing, since nothing is open."""


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))

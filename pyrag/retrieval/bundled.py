"""Bundled corpus, indexed in memory on first use (some 350 passages, 30 ms)."""

from __future__ import annotations

import hashlib
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

from pyrag.retrieval.catalogue.delegating import WrappingRetriever
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import BUNDLED_CORPUS, Passage, SearchedIndex

if TYPE_CHECKING:
    from pyrag.retrieval.bm25 import Bm25Retriever

NAME = f"bm25:{BUNDLED_CORPUS}"


def bundled_passages() -> list[Passage]:
    """Return the passages of the bundled corpus."""
    import msgspec

    return [msgspec.json.decode(line, type=Passage) for line in _corpus().splitlines()]


def _corpus() -> bytes:
    return (files("pyrag") / "data" / "corpus.jsonl").read_bytes()


class BundledRetriever(WrappingRetriever):
    """Retriever over the bundled corpus."""

    name = NAME

    @cached_property
    def _retriever(self) -> Bm25Retriever:
        from pyrag.retrieval.bm25 import Bm25Retriever, index_of

        return Bm25Retriever(index_of(bundled_passages()), NAME)

    @property
    def wrapped(self) -> tuple[Bm25Retriever]:
        return (self._retriever,)

    @cached_property
    def searched(self) -> SearchedIndex:
        corpus = _corpus()
        fingerprint = hashlib.blake2b(corpus, digest_size=8).hexdigest()
        return SearchedIndex(NAME, "bm25", fingerprint=fingerprint, passages=len(corpus.splitlines()))

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the best passages of the bundled corpus.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.
        """
        return await self._retriever.retrieve(query, topk, where)

    async def aclose(self) -> None:
        """Do nothing."""

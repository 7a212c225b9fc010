"""The corpus that comes with the package, indexed in memory at its first use (some 350 passages, 30 ms)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.bm25 import Bm25Retriever

NAME = "bm25:bundled corpus"


def bundled_passages() -> list[Passage]:
    import msgspec

    lines = (files("pyrag") / "data" / "corpus.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Passage) for line in lines]


class BundledRetriever:
    """A `Retriever` over the bundled corpus."""

    name = NAME

    @cached_property
    def _retriever(self) -> Bm25Retriever:
        from pyrag.retrieval.bm25 import Bm25Retriever, index_of

        return Bm25Retriever(index_of(bundled_passages()), NAME)

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        """Return the best passages of the bundled corpus.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
        """
        return await self._retriever.retrieve(query, topk)

    async def fetch(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages of those ids that exist."""
        return await self._retriever.fetch(ids)

    async def aclose(self) -> None:
        """Nothing to close."""

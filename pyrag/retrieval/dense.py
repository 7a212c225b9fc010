"""The dense retriever: a query becomes a vector, the nearest passages' ids become passages.

The vectors hold ids only. What they name is looked up by `passages`, such as `Bm25Index.passages` of the same folder or
the `get` of a dictionary in a test. An id that has no passage any more is passed over.

Queries that come at the same time are searched together, in shares that the cores divide among them: a hop to a thread
costs what a query costs. While that goes on, the next ones gather. A query finds the same in any company, to the bit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyrag.errors import ServiceError
from pyrag.retrieval.batching import Batcher
from pyrag.retrieval.threads import cores, in_thread
from pyrag.trace import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedding import Embedder
    from pyrag.retrieval.faiss_index import Hit, VectorIndex

Lookup = Callable[[Sequence[str]], Iterable[Passage]]
PART = "dense"
_SHARE = 16
"""Queries in one call of FAISS, which multiplies matrices from 20 on: then rounding depends on the company."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Equal where query and `topk` are."""

    query: str
    topk: int
    vector: Any = field(compare=False)


class DenseRetriever:
    """A `Retriever` over opened vectors. The first query checks that the embedder is the index's own."""

    def __init__(self, index: VectorIndex, embedder: Embedder, passages: Lookup, name: str = "dense") -> None:
        self._index = index
        self._embedder = embedder
        self._passages = passages
        self._name = name
        self._checked = False
        self._searches = Batcher(self._search, window=0, max_batch=_SHARE * cores(), cached=0)

    @property
    def name(self) -> str:
        return self._name

    async def check(self) -> None:
        """Raises `ConfigError` where the embedder is not the one that the index was built with."""
        if not self._checked:
            self._index.check(await self._embedder.fingerprint())
            self._checked = True

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        if not query.strip() or topk < 1 or not len(self._index):
            return []
        (vector,) = await self._embedder.embed_queries([query])
        await self.check()
        (passages,) = await self._searches.get_all([Asked(query, topk, vector)])
        return passages

    async def _search(self, asked: Sequence[Asked]) -> list[list[Passage]]:
        shares = _shares(asked)
        try:
            found = await asyncio.gather(*(in_thread(self._found, [asked[at] for at in share]) for share in shares))
        except (ValueError, OSError, RuntimeError) as error:
            message = f"index {self._name} cannot be searched ({error}): build it again with pyrag index"
            raise ServiceError(message, service=self._name) from error
        placed = {
            at: passages
            for share, some in zip(shares, found, strict=True)
            for at, passages in zip(share, some, strict=True)
        }
        return [placed[at] for at in range(len(asked))]

    def _found(self, asked: Sequence[Asked]) -> list[list[Passage]]:
        import numpy as np

        hits = self._index.search(np.stack([one.vector for one in asked]), asked[0].topk)
        known = {passage.id: passage for passage in self._passages(list({one for some in hits for one, _ in some}))}
        return [_passages(some, known) for some in hits]

    async def aclose(self) -> None:
        await self._embedder.aclose()


def _shares(asked: Sequence[Asked]) -> list[list[int]]:
    """Places in `asked` of the same `topk`, on which depends how deep an approximate index looks."""
    size = min(-(-len(asked) // cores()), _SHARE)
    alike: dict[int, list[int]] = {}
    for at, one in enumerate(asked):
        alike.setdefault(one.topk, []).append(at)
    return [some[start : start + size] for some in alike.values() for start in range(0, len(some), size)]


def _passages(hits: list[Hit], known: dict[str, Passage]) -> list[Passage]:
    ordered = sorted(hits, key=lambda hit: (-hit[1], hit[0]))
    return [_scored(known[one], score) for one, score in ordered if one in known]


def _scored(one: Passage, score: float) -> Passage:
    """What `dataclasses.replace` would give in three times the time: ten of these come with each query."""
    return Passage(one.id, one.title, one.text, score, one.source, {PART: score}, one.start, one.end)

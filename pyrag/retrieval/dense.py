"""The dense retriever: a query becomes a vector, the nearest passages' ids become passages.

The vectors hold ids only. What they name is looked up by `passages`, such as `Bm25Index.passages` of the same folder or
the `get` of a dictionary in a test. An id that has no passage any more is passed over.

Queries that come at the same time are divided among the cores: a hop to a thread costs what a query costs. While all
cores are busy, the next queries gather. A query finds the same in any company, to the bit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pyrag._io.threads import Stop, cores, in_stoppable_thread, in_thread
from pyrag.errors import FilterError, ServiceError
from pyrag.retrieval.catalogue.delegating import IndexDocuments
from pyrag.retrieval.embedders.batching import Batcher
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import NOTHING_TO_SAY, FilterVerdict
from pyrag.trace.model import Passage, SearchedIndex

if TYPE_CHECKING:
    from pyrag.retrieval.catalogue.folder import IndexCatalogue
    from pyrag.retrieval.embedders.protocol import Embedder
    from pyrag.retrieval.filters.selection import SelectedPassages
    from pyrag.retrieval.vectors.faiss_index import Hit, VectorIndex

Lookup = Callable[[Sequence[str]], Iterable[Passage]]
PART = "dense"
_SHARE = 16
"""Queries in one call of FAISS, which multiplies matrices from 20 on: then rounding depends on the company."""


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """Equal where query, `topk` and the text of the filter are."""

    query: str
    topk: int
    vector: Any = field(compare=False)
    where: str = ""
    filter: Filter | None = field(default=None, compare=False)
    selection: SelectedPassages | None = field(default=None, compare=False)

    @classmethod
    def filtered(
        cls, query: str, topk: int, vector: Any, where: Filter | None, selection: SelectedPassages | None = None
    ) -> DenseQuery:
        """Return a query with a filter.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            vector: The text's vector.
            where: Filter that passages must pass; None for none.
            selection: The passages that pass it, if they are known.
        """
        return cls(query, topk, vector, "" if where is None else str(where), where, selection)


class DenseRetriever(IndexDocuments):
    """A `Retriever` over opened vectors. The first query checks that the embedder is the index's own.

    `select` says which passages a filter selects, and `judge` what can be said of it, such as `selected` and `judged`
    of the `Bm25Index.selector` of the same folder. `catalogue` has its documents.
    """

    def __init__(
        self,
        index: VectorIndex,
        embedder: Embedder,
        passages: Lookup,
        name: str = "dense",
        searched: SearchedIndex | None = None,
        select: Callable[[Filter, Stop], SelectedPassages] | None = None,
        judge: Callable[[Filter, Filter | None], Awaitable[FilterVerdict]] | None = None,
        catalogue: IndexCatalogue | None = None,
    ) -> None:
        self.index = index
        self._embedder = embedder
        self.passages = passages
        self._select = select
        self._judge = judge
        self._catalogue = catalogue
        self._name = name
        self.searched = searched or SearchedIndex(name, "dense")
        self._checked = False
        self._searches = Batcher(self._search, window=0, max_batch=_SHARE, cached=0, width=cores())

    @property
    def name(self) -> str:
        return self._name

    @property
    def catalogue(self) -> IndexCatalogue | None:
        """The documents of the index; None for vectors of unknown passages."""
        return self._catalogue

    async def check(self) -> None:
        """Raise `ConfigError` unless the index was built with this embedder."""
        self.index.check(await self._embedder.fingerprint())
        self._checked = True

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the passages nearest to a query.

        Args: those of `Retriever.retrieve`.

        Raises:
            FilterError: There is a filter, and the metadata of these vectors is not known.
            ConfigError: The embedder is not the one of the index.
            ServiceError: A file of the index is damaged.
        """
        selection = None if where is None else await self._selected(where)
        if not query.strip() or topk < 1 or not len(self.index):
            return []
        (vector,) = await self._embedder.embed_queries([query])
        if not self._checked:
            await self.check()
        return await self._searches.get(DenseQuery.filtered(query, topk, vector, where, selection))

    async def _selected(self, where: Filter) -> SelectedPassages:
        """Return the selection of a filter, which is evaluated in a thread; that ends if the caller is cancelled."""
        if (select := self._select) is None:
            raise FilterError(f"the metadata of {self._name} is not known: ask without a filter")
        return await in_stoppable_thread(lambda stop: select(where, stop))

    async def _search(self, asked: Sequence[DenseQuery]) -> list[list[Passage]]:
        return await in_thread(self._found, asked)

    def _found(self, asked: Sequence[DenseQuery]) -> list[list[Passage]]:
        try:
            hits = self._hits(asked)
            known = {one.id: one for one in self.passages(list({name for some in hits for name, _ in some}))}
        except (ValueError, OSError, RuntimeError) as error:
            message = f"index {self._name} cannot be searched ({error}): build it again with pyrag index and --rebuild"
            raise ServiceError(message, service=self._name) from error
        return [_passages(some, known, one.filter) for one, some in zip(asked, hits, strict=True)]

    def _hits(self, asked: Sequence[DenseQuery]) -> list[list[Hit]]:
        """Search queries of the same `topk` and filter together: on `topk` depends how deep an approximate index
        looks."""
        import numpy as np

        found: dict[int, list[Hit]] = {}
        for (topk, where), selection in {(one.topk, one.where): one.selection for one in asked}.items():
            places = [at for at, one in enumerate(asked) if (one.topk, one.where) == (topk, where)]
            hits = self.index.search(np.stack([asked[at].vector for at in places]), topk, selection)
            found.update(zip(places, hits, strict=True))
        return [found[at] for at in range(len(asked))]

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Return what can be said of a filter before a search. Args: those of `FilterJudge.judge_filter`."""
        return NOTHING_TO_SAY if self._judge is None else await self._judge(where, within)

    async def fetch(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages of those ids that exist."""
        return await in_thread(list, self.passages(ids))

    async def aclose(self) -> None:
        await self._embedder.aclose()


def _passages(hits: list[Hit], known: dict[str, Passage], where: Filter | None) -> list[Passage]:
    ordered = sorted(hits, key=lambda hit: (-hit[1], hit[0]))
    found = [_scored(known[one], score) for one, score in ordered if one in known]
    return found if where is None else [one for one in found if where.matches(one.metadata)]


_PUT = tuple(getattr(Passage, one.name).__set__ for one in fields(Passage))
_ID, _TITLE, _TEXT, _SCORE, _SOURCE, _PARTS, _START, _END, _METADATA = _PUT


def _scored(one: Passage, score: float) -> Passage:
    """Copy a passage with a score, five times faster than `dataclasses.replace`: ten of these come with each query."""
    made = object.__new__(Passage)
    _ID(made, one.id)
    _TITLE(made, one.title)
    _TEXT(made, one.text)
    _SCORE(made, score)
    _SOURCE(made, one.source)
    _PARTS(made, {PART: score})
    _START(made, one.start)
    _END(made, one.end)
    _METADATA(made, one.metadata)
    return made

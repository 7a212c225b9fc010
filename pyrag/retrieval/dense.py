"""Dense retriever: a query becomes a vector, and the ids of the nearest vectors become passages.

The vector index holds only ids, whose passages are looked up by `passages`, such as `Bm25Index.passages` of the same
folder. An id without a passage is skipped.

Concurrent queries are divided among the cores in batches, since using a thread costs as much as a query. While all
cores are busy, additional queries wait for the next batch. A query's result does not depend on its batch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyrag._io.threads import Stop, cores, in_stoppable_thread, in_thread
from pyrag.errors import FilterError, ServiceError
from pyrag.retrieval.catalogue.delegating import IndexDocuments
from pyrag.retrieval.embedders.batching import Batcher
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import NOTHING_TO_SAY, FilterVerdict
from pyrag.trace.model import Passage, SearchedIndex

if TYPE_CHECKING:
    from pyrag.retrieval.catalogue.index_catalogue import IndexCatalogue
    from pyrag.retrieval.embedders.protocol import Embedder
    from pyrag.retrieval.filters.selection import SelectedPassages
    from pyrag.retrieval.vectors.faiss_index import Hit, VectorIndex

Lookup = Callable[[Sequence[str]], Iterable[Passage]]
PART = "dense"
_SHARE = 16
"""Maximum queries per call of FAISS. From 20 queries on, FAISS multiplies matrices, whose rounding depends on the
batch."""


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """Query of the vector index. Queries are equal if their texts, `topk` and filters' texts are equal."""

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
            vector: Vector of the text.
            where: Filter that passages must pass. None for no filter.
            selection: Passages that pass the filter, if they are known.
        """
        return cls(query, topk, vector, "" if where is None else str(where), where, selection)


class DenseRetriever(IndexDocuments):
    """Retriever over an open vector index. The first query checks that the embedder is the index's own.

    `select` returns the passages that a filter selects, and `judge` returns a verdict on the filter; examples are
    `selected` and `judged` of the same folder's `Bm25Index.selector`. `catalogue` has the documents.
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

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Raises:
            FilterError: A filter is set, but the metadata of these vectors is unknown.
            ConfigError: The embedder differs from the index's embedder.
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
        """Evaluate a filter in a thread, which stops if the caller is cancelled."""
        if (select := self._select) is None:
            raise FilterError(f"the metadata of {self._name} is not known: ask without a filter")
        return await in_stoppable_thread(lambda stop: select(where, stop))

    async def _search(self, queries: Sequence[DenseQuery]) -> list[list[Passage]]:
        return await in_thread(self._passages_of, queries)

    def _passages_of(self, queries: Sequence[DenseQuery]) -> list[list[Passage]]:
        try:
            hits = self._hits(queries)
            known = {
                passage.id: passage for passage in self.passages(list({name for some in hits for name, _ in some}))
            }
        except (ValueError, OSError, RuntimeError) as error:
            message = f"index {self._name} cannot be searched ({error}): build it again with pyrag index and --rebuild"
            raise ServiceError(message, service=self._name) from error
        return [_passages(some, known, query.filter) for query, some in zip(queries, hits, strict=True)]

    def _hits(self, queries: Sequence[DenseQuery]) -> list[list[Hit]]:
        """Search queries with the same `topk` and filter together, since `topk` changes approximate results."""
        import numpy as np

        hits_by_place: dict[int, list[Hit]] = {}
        for (topk, where), selection in {(query.topk, query.where): query.selection for query in queries}.items():
            places = [at for at, query in enumerate(queries) if (query.topk, query.where) == (topk, where)]
            hits = self.index.search(np.stack([queries[at].vector for at in places]), topk, selection)
            hits_by_place.update(zip(places, hits, strict=True))
        return [hits_by_place[at] for at in range(len(queries))]

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Judge a filter before a search; see `FilterJudge.judge_filter`.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see. None for all.
        """
        return NOTHING_TO_SAY if self._judge is None else await self._judge(where, within)

    async def fetch(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids that exist."""
        return await in_thread(list, self.passages(ids))

    async def aclose(self) -> None:
        await self._embedder.aclose()


def _passages(hits: list[Hit], known: dict[str, Passage], where: Filter | None) -> list[Passage]:
    ranked = sorted(hits, key=lambda hit: (-hit[1], hit[0]))
    passages = [replace(known[key], score=score, parts={PART: score}) for key, score in ranked if key in known]
    return passages if where is None else [passage for passage in passages if where.matches(passage.metadata)]

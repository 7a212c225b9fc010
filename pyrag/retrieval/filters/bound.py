"""A retriever with a filter that nobody who asks it can widen."""

from __future__ import annotations

from collections.abc import Sequence

from pyrag.retrieval.catalogue.delegating import WrappedDocuments
from pyrag.retrieval.filters.tree import Conjunction, Filter, all_of
from pyrag.retrieval.filters.verdict import NOTHING_TO_SAY, FilterVerdict
from pyrag.retrieval.protocol import (
    Retriever,
    check_filters,
    fetch_passages,
    filter_verdict,
    name_of,
    passages_of,
    searched_index,
)
from pyrag.trace.model import Passage, SearchedIndex


class BoundRetriever(WrappedDocuments):
    """A `Retriever` that finds what another one finds and a filter passes. Raises `FilterError` if that takes none.

    Args:
        inner: The other retriever.
        where: The filter.
        own: Whether the filter is the caller's own, who may be told what is wrong with it. Of a filter that is a
            permission the caller is told nothing, and of other filters no more than the passages show that it passes.
    """

    def __init__(self, inner: Retriever, where: Filter, *, own: bool = False) -> None:
        check_filters(inner)
        self._inner = inner
        self._checks = True
        self.wrapped = (inner,)
        self._where = where
        self._own = own

    @property
    def name(self) -> str:
        return name_of(self._inner)

    @property
    def searched(self) -> SearchedIndex:
        return searched_index(self._inner)

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the best passages that pass both filters.

        Args: those of `Retriever.retrieve`.

        Raises:
            FilterError: The retriever takes no filter.
            ServiceError: The retriever failed.
        """
        return await passages_of(self._inner, query, topk, where=all_of(self._where, where))

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Return what can be said of a filter before a search. Args: those of `FilterJudge.judge_filter`."""
        if self._own:
            return await filter_verdict(self._inner, where, within)
        permissions = set(map(str, _parts(self._where)))
        rest = all_of(*(part for part in _parts(where) if str(part) not in permissions))
        if rest is None:
            return NOTHING_TO_SAY
        return await filter_verdict(self._inner, rest, all_of(self._where, within))

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages of those ids that exist and pass the filter."""
        return await fetch_passages(self._inner, ids, self._where)

    def _bound(self, where: Filter | None) -> Filter | None:
        return all_of(self._where, where)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _parts(where: Filter) -> tuple[Filter, ...]:
    return where.parts if isinstance(where, Conjunction) else (where,)

"""Retriever with a fixed filter, which its callers cannot widen."""

from __future__ import annotations

from collections.abc import Sequence

from pyrag.retrieval.catalogue.delegating import WrappingRetriever
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


class BoundRetriever(WrappingRetriever):
    """Retriever that returns only passages of another retriever that pass a filter.

    Args:
        inner: The other retriever.
        where: The filter.
        own: True if the filter is the caller's own, whose faults may be reported. A filter that expresses permissions
            is never reported, and reports about other filters use only passages that pass it.

    Raises:
        FilterError: The other retriever does not support filters.
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

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Additional filter that passages must pass. None for no additional filter.

        Raises:
            FilterError: The retriever does not support filters.
            ServiceError: The retriever failed.
        """
        return await passages_of(self._inner, query, topk, where=all_of(self._where, where))

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Judge a filter before a search; see `FilterJudge.judge_filter`.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see. None for all.
        """
        if self._own:
            return await filter_verdict(self._inner, where, within)
        permissions = set(map(str, _parts(self._where)))
        rest = all_of(*(part for part in _parts(where) if str(part) not in permissions))
        if rest is None:
            return NOTHING_TO_SAY
        return await filter_verdict(self._inner, rest, all_of(self._where, within))

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages with these ids that exist and pass the filter."""
        return await fetch_passages(self._inner, ids, self._where)

    def _bound(self, where: Filter | None) -> Filter | None:
        return all_of(self._where, where)


def _parts(where: Filter) -> tuple[Filter, ...]:
    return where.parts if isinstance(where, Conjunction) else (where,)

"""A retriever with a filter that nobody who asks it can widen."""

from __future__ import annotations

from collections.abc import Sequence

from pyrag.retrieval.filters.tree import Filter, all_of
from pyrag.retrieval.protocol import Retriever, check_filters, fetch_passages, name_of, passages_of, searched_index
from pyrag.trace.model import Passage, SearchedIndex


class BoundRetriever:
    """A `Retriever` that finds what another one finds and a filter passes. Raises `FilterError` if that takes none."""

    def __init__(self, inner: Retriever, where: Filter) -> None:
        check_filters(inner)
        self._inner = inner
        self._where = where

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

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages of those ids that exist and pass the filter."""
        return await fetch_passages(self._inner, ids, self._where)

    async def aclose(self) -> None:
        await self._inner.aclose()

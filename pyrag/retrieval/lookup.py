"""Passages by their ids, from retrievers that can look them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import Passage


@runtime_checkable
class PassageLookup(Protocol):
    """Optional part of a retriever: a lookup of passages."""

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages of those ids that exist, in any order; None where nothing can be looked up."""
        ...


async def fetch_passages(retriever: object, ids: Sequence[str], where: Filter | None = None) -> list[Passage] | None:
    """Return passages by their ids.

    Args:
        retriever: any retriever.
        ids: of the passages.
        where: filter that passages must pass.

    Returns:
        Those that exist and pass, in any order; None if the retriever looks up no ids, as those behind a search API.

    Raises:
        ServiceError: the index cannot be read.
    """
    found = await retriever.fetch(ids) if isinstance(retriever, PassageLookup) else None
    if found is None or where is None:
        return found
    return [passage for passage in found if where.matches(passage.metadata)]

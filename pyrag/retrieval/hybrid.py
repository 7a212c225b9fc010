"""Hybrid retriever: several retrievers are searched at the same time, and their lists are fused by reciprocal rank.

A passage's score is the sum over the lists of weight / (k + rank), with ranks from 1 (Cormack et al., 2009). We use k =
10 and lists of 100, since recall is higher than with the customary k = 60. `Passage.parts` holds the score of each
part, such as `{"bm25": 12.3, "dense": 0.61}`. If scores are equal, passages keep the order of the first list (words
before vectors).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyrag.errors import ConfigError
from pyrag.retrieval.catalogue.delegating import WrappingRetriever
from pyrag.retrieval.catalogue.protocol import has_catalogue
from pyrag.retrieval.checked import Passages
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import NOTHING_TO_SAY, FilterVerdict
from pyrag.retrieval.protocol import Retriever, fetch_passages, filter_verdict, search
from pyrag.trace.model import Passage, SearchedIndex

K = 10
DEPTH = 100


@dataclass(frozen=True, slots=True)
class WeightedRetriever:
    """Retriever of a hybrid, with its weight. A retriever with weight 0 is not used."""

    retriever: Retriever
    weight: float = 1.0


class HybridRetriever(WrappingRetriever):
    """Retriever over named parts. If a part fails, the query fails, so that results are never incomplete."""

    def __init__(
        self,
        parts: Mapping[str, WeightedRetriever],
        name: str = "hybrid",
        *,
        depth: int = DEPTH,
        searched: SearchedIndex | None = None,
    ) -> None:
        self._parts = {key: part for key, part in parts.items() if part.weight > 0}
        if not self._parts or depth < 1:
            raise ConfigError("a hybrid retriever needs a part of a weight above 0 and depth >= 1")
        self._all = [part.retriever for part in parts.values()]
        self.wrapped = tuple(part.retriever for part in self._parts.values())
        self._name = name
        self.searched = searched or SearchedIndex(name, "hybrid")
        self._depth = depth

    @property
    def name(self) -> str:
        return self._name

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Search all parts at the same time and fuse their lists.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Raises:
            ServiceError: A part failed.
        """
        if topk < 1:
            return []
        depth = max(self._depth, topk)
        async with asyncio.TaskGroup() as group:
            tasks = {key: group.create_task(_tried(part, query, depth, where)) for key, part in self._parts.items()}
        lists = {key: _raised(task.result()) for key, task in tasks.items()}
        fused_passages = fuse(lists, {key: part.weight for key, part in self._parts.items()})[:topk]
        notes = dict.fromkeys(note for passages in lists.values() for note in getattr(passages, "notes", ()))
        return Passages(fused_passages, notes) if notes else fused_passages

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Judge a filter before a search; see `FilterJudge.judge_filter`.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see. None for all.
        """
        verdicts = [await filter_verdict(retriever, where, within) for retriever in self._all]
        return next((verdict for verdict in verdicts if verdict.sentences), NOTHING_TO_SAY)

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages with these ids that exist, from the first part that can look up ids."""
        for retriever in self._all:
            if (passages := await fetch_passages(retriever, ids)) is not None:
                return passages
        return None

    def _documents_of(self) -> Retriever | None:
        """Return the first part that has a catalogue, regardless of its weight."""
        return next((retriever for retriever in self._all if has_catalogue(retriever)), None)

    async def aclose(self) -> None:
        for retriever in self._all:
            await retriever.aclose()


async def _tried(part: WeightedRetriever, query: str, depth: int, where: Filter | None) -> list[Passage] | Exception:
    """Search a part and return its passages or its error. (A task group would wrap the error.)"""
    try:
        return await search(part.retriever, query, depth, where)
    except Exception as error:
        return error


def _raised(result: list[Passage] | Exception) -> list[Passage]:
    if isinstance(result, Exception):
        raise result
    return result


def fuse(lists: Mapping[str, Sequence[Passage]], weights: Mapping[str, float], k: int = K) -> list[Passage]:
    """Combine lists of passages by reciprocal rank.

    Args:
        lists: Passages of each part, best first.
        weights: Weight of each part.
        k: Constant added to ranks.

    Returns:
        All passages, best first, each once, with the content from the first list that contains it. Passages with equal
        scores keep the order of the lists.
    """
    scores: dict[str, float] = {}
    parts: dict[str, dict[str, float]] = {}
    passages: dict[str, Passage] = {}
    for key, ranked in lists.items():
        unique = {
            passage.id: passage for passage in reversed(ranked)
        }  # the better rank of a passage that is there twice
        for rank, passage in enumerate((p for p in ranked if unique[p.id] is p), start=1):
            scores[passage.id] = scores.get(passage.id, 0.0) + weights[key] / (k + rank)
            parts.setdefault(passage.id, {})[key] = passage.score
            passages.setdefault(passage.id, passage)
    order = sorted(scores, key=lambda key: -scores[key])
    return [replace(passages[key], score=scores[key], parts=parts[key]) for key in order]

"""Fusion against a naive reading of its formula; what each part thought is kept; reranking."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import ConfigError, PermanentServiceError, ServiceError
from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever, fuse
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.rerank import RerankingRetriever
from pyrag.trace.model import Passage


def listed(*ids: str) -> list[Passage]:
    return [Passage(one, "t", "x", score=10.0 - n) for n, one in enumerate(ids)]


IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(IDS, IDS, st.integers(0, 100), st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_fusion_is_the_sum_of_reciprocal_ranks(one: list[str], two: list[str], k: int, weight: float) -> None:
    expected = {
        name: sum(
            Fraction(w) / (k + found.index(name) + 1) for found, w in ((one, 1.0), (two, weight)) if name in found
        )
        for name in {*one, *two}
    }
    fused = fuse({"x": listed(*one), "y": listed(*two)}, {"x": 1.0, "y": weight}, k)
    assert {passage.id: passage.score for passage in fused} == pytest.approx({a: float(b) for a, b in expected.items()})
    assert [passage.score for passage in fused] == sorted((passage.score for passage in fused), reverse=True)
    listed_first = list(dict.fromkeys([*one, *two]))
    assert [p.id for p in fused] == [p.id for p in sorted(fused, key=lambda p: (-p.score, listed_first.index(p.id)))]
    for passage in fused:
        parts = {key: 10.0 - found.index(passage.id) for key, found in (("x", one), ("y", two)) if passage.id in found}
        assert passage.parts == parts


def test_a_passage_listed_twice_counts_at_its_better_place() -> None:
    fused = fuse({"x": listed("a", "b", "a", "c")}, {"x": 1.0}, 10)
    assert [(one.id, one.score) for one in fused] == [("a", 1 / 11), ("b", 1 / 12), ("c", 1 / 13)]


async def test_parts_are_asked_concurrently_at_the_same_depth() -> None:
    here = asyncio.Barrier(2)

    class Waiting(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            await here.wait()  # would wait for ever if one came after the other
            return await super().retrieve(query, topk)

    parts = [Waiting({"q": listed("a", "b")}), Waiting({"q": listed("b", "c")})]
    hybrid = HybridRetriever({"x": WeightedRetriever(parts[0]), "y": WeightedRetriever(parts[1])}, depth=7)
    async with asyncio.timeout(120):
        found = await hybrid.retrieve("q", 2)
    assert [one.id for one in found] == ["b", "a"]
    assert found[0].parts == {"x": 9.0, "y": 10.0}
    assert [part.queries for part in parts] == [[("q", 7)]] * 2


async def test_a_weight_of_nothing_leaves_a_part_out() -> None:
    silent, asked = InMemoryRetriever({"q": listed("a")}), InMemoryRetriever({"q": listed("b")})
    hybrid = HybridRetriever({"x": WeightedRetriever(silent, 0), "y": WeightedRetriever(asked)})
    assert [one.id for one in await hybrid.retrieve("q", 5)] == ["b"]
    assert not silent.queries
    with pytest.raises(ConfigError, match="needs a part"):
        HybridRetriever({"x": WeightedRetriever(silent, 0)})


async def test_a_failing_part_fails_the_query_with_its_own_error() -> None:
    class Broken(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            raise PermanentServiceError("gone", service="y")

    hybrid = HybridRetriever({"x": WeightedRetriever(InMemoryRetriever({})), "y": WeightedRetriever(Broken({}))})
    with pytest.raises(PermanentServiceError, match="gone"):
        await hybrid.retrieve("q", 5)


async def test_reranking_orders_by_the_scorer_and_keeps_the_scores_before() -> None:
    inner = InMemoryRetriever({"q": listed("a", "b", "c")}, name="inner")

    def liking_c(query: str, passages: Sequence[Passage]) -> list[float]:
        return [float(one.id == "c") for one in passages]

    async def later(query: str, passages: Sequence[Passage]) -> list[float]:
        return liking_c(query, passages)

    for scorer in (liking_c, later):
        retriever = RerankingRetriever(inner, scorer, depth=9)
        found = await retriever.retrieve("q", 2)
        assert [one.id for one in found] == ["c", "a"]
        assert found[0].parts == {"first": 8.0, "rerank": 1.0}
        assert found[0].score == 1.0
        assert retriever.name == "rerank(inner)"
    assert inner.queries == [("q", 9)] * 2
    assert await RerankingRetriever(inner, liking_c).retrieve("unknown", 2) == []


@pytest.mark.parametrize(
    ("scorer", "says"),
    [
        (lambda query, found: [1.0], "gave 1 scores for 2 passages: it must give one for each"),
        (lambda query, found: 1 / 0, r"reranking with rerank failed \(ZeroDivisionError"),
    ],
)
async def test_a_broken_scorer_is_a_service_error(scorer: Any, says: str) -> None:
    retriever = RerankingRetriever(InMemoryRetriever({"q": listed("a", "b")}), scorer)
    with pytest.raises(ServiceError, match=says):
        await retriever.retrieve("q", 2)

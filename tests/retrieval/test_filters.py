"""One contract of all retrievers: with a filter, they find the best among the passages that pass it, exactly."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrag.errors import FilterError, MalformedReplyError
from pyrag.retrieval import open_retriever
from pyrag.retrieval.bm25 import Bm25Retriever, index_of
from pyrag.retrieval.dense import DenseRetriever
from pyrag.retrieval.embedders.protocol import passage_text
from pyrag.retrieval.filters.bound import BoundRetriever
from pyrag.retrieval.filters.language import filter_of, parsed
from pyrag.retrieval.filters.selection import SelectedPassages, key_of
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.http import HttpRetriever
from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever
from pyrag.retrieval.index import update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.open import Options
from pyrag.retrieval.protocol import OwnRetriever, Retriever, fetch_passages, filter_verdict, passages_of
from pyrag.retrieval.rerank import RerankingRetriever
from pyrag.retrieval.search_protocol import read_request, search_all
from pyrag.retrieval.stores.qdrant import QdrantStore
from pyrag.retrieval.stores.store import StoreRetriever
from pyrag.retrieval.vectors.faiss_index import open_vectors
from pyrag.retrieval.vectors.folder import VectorFolder
from pyrag.trace.model import Passage

from .conftest import Server
from .embedders import words_embedder
from .postgres import needs_postgres, pgvector_of

WORDS = ["mill", "otter", "river", "stone"]
values = st.sampled_from([0, 1, 2.5, "ops", "hr", "2024-05-02", "2024-05-02T10:00:00+02:00 late", True, False])
metadata = st.dictionaries(st.sampled_from(["team", "a.b c", "day"]), values | st.lists(values, max_size=2), max_size=2)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
corpora = st.lists(st.tuples(texts, metadata), min_size=1, max_size=12)
ordered = st.sampled_from([0, 1, 2.5, "hr", "ops", "2024-05-02", "2024-05-02T10:00:00+02:00 late!"])
operations = (
    st.tuples(st.sampled_from(["=", "!="]), values)
    | st.tuples(st.sampled_from(["<", "<=", ">", ">="]), ordered)
    | st.tuples(st.sampled_from(["in", "not in"]), st.just(["ops", "hr"]) | st.just([0, 1]))
    | st.tuples(st.just("contains"), values)
    | st.tuples(st.just("exists"), st.booleans())
)
fields = st.sampled_from(["team", "a.b c", "day", "none"])
comparisons = st.builds(lambda name, one: {name: {one[0]: one[1]}}, fields, operations)
filters = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(lambda key, some: {key: some}, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1))
        | st.builds(lambda one: {"not": one}, inner)
    ),
    max_leaves=4,
).map(filter_of)

Make = Callable[[list[Passage], Path], Coroutine[Any, Any, Retriever]]


async def bm25(passages: list[Passage], folder: Path) -> Retriever:
    return Bm25Retriever(index_of(passages))


async def dense(passages: list[Passage], folder: Path) -> Retriever:
    embedder, bm25_index = words_embedder(), index_of(passages)
    shutil.rmtree(folder / "vectors", ignore_errors=True)
    vectors = VectorFolder.create(folder / "vectors", await embedder.fingerprint())
    for half in (passages[::2], passages[1::2]):  # two segments
        with vectors.writer() as writer:
            texts = [passage_text(one.title, one.text) for one in half]
            if half:
                writer.add([one.id for one in half], await embedder.embed_passages(texts))
            writer.commit()
    select = bm25_index.selector.selected
    catalogue = bm25_index.catalogue
    index = open_vectors(folder / "vectors")
    return DenseRetriever(index, embedder, bm25_index.passages, select=select, catalogue=catalogue)


async def hybrid(passages: list[Passage], folder: Path) -> Retriever:
    parts = {"bm25": await bm25(passages, folder), "dense": await dense(passages, folder)}
    return HybridRetriever({name: WeightedRetriever(part) for name, part in parts.items()})


async def reranked(passages: list[Passage], folder: Path) -> Retriever:
    inner = await bm25(passages, folder)
    return RerankingRetriever(inner, lambda query, found: [-float(len(one.text)) for one in found])


async def in_memory(passages: list[Passage], folder: Path) -> Retriever:
    return InMemoryRetriever(passages)


async def own(passages: list[Passage], folder: Path) -> Retriever:
    return OwnRetriever(InMemoryRetriever(passages))


async def qdrant(passages: list[Passage], place: str, weight: float) -> Retriever:
    embedder, store = words_embedder(), QdrantStore(f"qdrant:words@{place}")
    store.create(await embedder.fingerprint())
    await store.add_passages(passages, embedder)
    return StoreRetriever(store, embedder, dense_weight=weight)


async def qdrant_memory(passages: list[Passage], folder: Path) -> Retriever:
    return await qdrant(passages, ":memory:", 1.0)


async def qdrant_words(passages: list[Passage], folder: Path) -> Retriever:
    return await qdrant(passages, ":memory:", 0.0)


async def qdrant_folder(passages: list[Passage], folder: Path) -> Retriever:
    shutil.rmtree(folder / "qdrant", ignore_errors=True)
    return await qdrant(passages, str(folder / "qdrant"), 1.0)


async def pgvector(passages: list[Passage], folder: Path) -> Retriever:
    return await pgvector_of(passages, 1.0)


async def pgvector_words(passages: list[Passage], folder: Path) -> Retriever:
    return await pgvector_of(passages, 0.0)


ENGINES = {
    "bm25": bm25, "dense": dense, "hybrid": hybrid, "rerank": reranked, "memory": in_memory, "own": own,
    "qdrant memory": qdrant_memory, "qdrant words": qdrant_words, "qdrant folder": qdrant_folder,
    "pgvector": pgvector, "pgvector words": pgvector_words,
}  # fmt: skip
POSTGRES = [name for name in ENGINES if name.startswith("pgvector")]


@pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=needs_postgres if name in POSTGRES else ()) for name in ENGINES]
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=corpora, where=filters, query=texts, topk=st.integers(1, 6))
def test_the_best_of_those_that_pass(
    tmp_path: Path, engine: str, corpus: Any, where: Filter, query: str, topk: int
) -> None:
    passages = [Passage(f"p{n}", "", text, metadata=held) for n, (text, held) in enumerate(corpus)]

    async def check() -> None:
        retriever = await ENGINES[engine](passages, tmp_path)
        every = await retriever.retrieve(query, 100)
        found = await passages_of(retriever, query, topk, where=where)
        await retriever.aclose()
        passing = [one for one in every if where.matches(one.metadata)]
        assert all(one.metadata == passages[int(one.id[1:])].metadata for one in every)
        if engine != "hybrid":  # whose scores are of ranks among those that pass
            expected = [one.score for one in passing][:topk]
            assert [one.score for one in found] == pytest.approx(expected, abs=1e-5)
        assert {one.id for one in found} <= {one.id for one in passing}
        assert len(found) == min(topk, len(passing))

    asyncio.run(check())


def vectors_of(rows: int, kind: str, folder: Path) -> tuple[Any, Any]:
    from pyrag.retrieval.embedders.fingerprint import Fingerprint

    vectors = np.random.default_rng(0).normal(size=(rows, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
    writing = VectorFolder.create(folder, Fingerprint(model="m", dimension=16), type=kind)
    with writing.writer() as writer:
        writer.add([f"p{row}" for row in range(rows)], vectors)
        writer.commit()
    writing.delete([f"p{row}" for row in range(0, rows, 10)])
    return vectors, open_vectors(folder)


@pytest.mark.parametrize("kind", ["Flat", "HNSW16", "SQ8"])
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5])
def test_vectors_under_selective_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, share: float
) -> None:
    monkeypatch.setattr("pyrag.retrieval.vectors.faiss_index.SCANNED", 300)  # both ways of searching
    vectors, index = vectors_of(4000, kind, tmp_path / "v")
    rows = np.random.default_rng(1).permutation(4000)[: int(4000 * share)]
    keys = np.sort(np.array([key_of(f"p{row}") for row in rows], np.int64).view(np.uint64))
    left = np.array([row for row in rows if row % 10])
    for query in np.random.default_rng(2).normal(size=(3, 16)).astype(np.float32):
        (found,) = index.search(query[None], 5, SelectedPassages([], keys))
        best = left[np.argsort(-(vectors[left] @ query), kind="stable")[:5]]
        assert len(found) == len(best)
        right = {name for name, _ in found} & {f"p{row}" for row in best}
        assert len(right) >= (len(best) if kind == "Flat" or len(rows) <= 300 else len(best) - 1)


PASSAGES = [
    Passage("1", "", "mill otter", metadata={"team": "ops", "year": 2020}),
    Passage("2", "", "mill", metadata={"team": "hr"}),
    Passage("3", "", "mill stone"),
]
OPS = parsed('team = "ops"')


async def test_a_server_gets_the_filter_and_says_so(server: Server) -> None:
    searched, slots = Bm25Retriever(index_of(PASSAGES)), asyncio.Semaphore(4)

    async def handler(request: web.Request) -> web.Response:
        wanted = read_request(await request.json())
        return web.json_response(await search_all(searched, wanted, slots))

    server.handler = handler
    client = HttpRetriever(server.url)
    assert [one.id for one in await client.retrieve("mill", 5, OPS)] == ["1"]
    assert (await client.retrieve("mill", 5, OPS))[0].metadata == PASSAGES[0].metadata
    assert len(await client.retrieve("mill", 5)) == 3
    await client.aclose()


async def test_a_server_that_ignores_the_filter_is_an_error(server: Server) -> None:
    async def handler(request: web.Request) -> web.Response:
        hits = [{"document": {"id": one.id, "text": one.text, "metadata": one.metadata}} for one in PASSAGES]
        return web.json_response({"result": [hits]})

    server.handler = handler
    client = HttpRetriever(server.url)
    assert len(await client.retrieve("mill", 5)) == 3
    with pytest.raises(MalformedReplyError, match="did not apply the filter"):
        await client.retrieve("mill", 5, OPS)
    await client.aclose()


class Plain:
    """A user's own retriever, of before there were filters."""

    name = "plain"

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        return PASSAGES[:topk]

    async def fetch(self, ids: list[str]) -> list[Passage]:
        return [one for one in PASSAGES if one.id in ids]

    async def aclose(self) -> None:
        """Nothing to close."""


class Ignoring(Plain):
    """One that takes a filter and does not heed it."""

    async def retrieve(self, query: str, topk: int, where: object = None) -> list[Passage]:
        return PASSAGES[:topk]


async def test_retrievers_without_filters_refuse_them() -> None:
    assert len(await passages_of(Plain(), "mill", 5)) == 3
    for retriever in (Plain(), OwnRetriever(Plain()), RerankingRetriever(Plain(), lambda query, found: [])):
        with pytest.raises(FilterError, match="the retriever plain takes no filter: give its retrieve"):
            await passages_of(retriever, "mill", 5, where=OPS)
    parts = {"a": WeightedRetriever(InMemoryRetriever(PASSAGES)), "b": WeightedRetriever(Plain())}
    with pytest.raises(FilterError, match="plain takes no filter"):
        await HybridRetriever(parts).retrieve("mill", 5, OPS)
    with pytest.raises(FilterError, match="plain takes no filter"):
        BoundRetriever(Plain(), OPS)
    vectors: Any = []
    blind = DenseRetriever(vectors, words_embedder(), list)
    with pytest.raises(FilterError, match="the metadata of dense is not known"):
        await blind.retrieve("mill", 5, OPS)


async def test_what_a_filter_excludes_is_dropped_whoever_returns_it() -> None:
    found = await passages_of(Ignoring(), "mill", 5, where=OPS)
    assert [one.id for one in found] == ["1"]
    assert found.notes == ("2 passages were dropped that the filter excludes",)
    assert [one.id for one in await fetch_passages(Plain(), ["1", "2", "3"], OPS) or []] == ["1"]


async def test_a_bound_retriever_can_be_narrowed_only() -> None:
    bound = open_retriever(InMemoryRetriever(PASSAGES), options=Options(where=parsed("exists team")))
    assert {one.id for one in await bound.retrieve("mill", 5)} == {"1", "2"}
    assert {one.id for one in await bound.retrieve("mill", 5, parsed("not exists team"))} == set()
    assert {one.id for one in await bound.retrieve("mill", 5, parsed("not exists team or team = 'hr'"))} == {"2"}


async def test_equal_queries_of_different_filters_are_different(tmp_path: Path) -> None:
    """At the same moment, so that they meet in the batch of a vector search."""
    for make in (dense, qdrant_memory):
        retriever: Any = await make(PASSAGES, tmp_path)
        asked = [None, OPS, parsed("team = 'hr'"), parsed("year = 1"), OPS]
        found = await asyncio.gather(*(retriever.retrieve("mill", 5, where) for where in asked))
        assert [sorted(one.id for one in some) for some in found] == [["1", "2", "3"], ["1"], ["2"], [], ["1"]]
        await retriever.aclose()


async def test_an_index_folder_finds_under_filters(tmp_path: Path) -> None:
    import json

    lines = [{"id": one.id, "text": one.text, **one.metadata} for one in PASSAGES]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    update_index([tmp_path / "a.jsonl"], tmp_path / "ix")
    retriever = open_retriever(tmp_path / "ix", options=Options(where=OPS))
    assert [replace(one, score=0, source="", start=None, end=None) for one in await retriever.retrieve("mill", 5)] == [
        PASSAGES[0]
    ]
    assert await passages_of(retriever, "mill", 5, where=parsed("taem = 'ops'")) == []
    (sentence,) = (await filter_verdict(retriever, parsed("taem = 'ops'"))).sentences
    assert sentence.startswith("the filter names the field 'taem', which no passage has: did you mean 'team'? ")


@pytest.mark.parametrize("make", [qdrant_memory, qdrant_folder, pytest.param(pgvector, marks=needs_postgres)])
async def test_stores_tell_apart_what_floats_do_not(tmp_path: Path, make: Make) -> None:
    large = 1 << 60
    held: list[Any] = [large, large + 1, 5, "x" * 24 + "a", "x" * 24 + "b", True]
    passages = [Passage(f"p{at}", "", "mill", metadata={"v": value}) for at, value in enumerate(held)]
    retriever: Any = await make(passages, tmp_path)
    for text in (
        f"v = {large}", f"v != {large}", f"v > {large}", f"v >= {large + 1}", f"v < {large + 1}", f"v in ({large}, 5)",
        f"v not in ({large}, 5)", f"v not in ({large})", f"v < '{held[4]}'", f"v > '{held[3]}'", f"v <= '{held[3]}'",
        f"v != '{held[3]}'", "v = true", "v != false", "v = 1", "v contains true", "v not contains 5",
    ):  # fmt: skip
        where = parsed(text)
        found = await retriever.retrieve("mill", 10, where)
        assert {one.id for one in found} == {one.id for one in passages if where.matches(one.metadata)}, text
    await retriever.aclose()

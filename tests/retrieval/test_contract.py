"""What every engine promises behind the `Retriever` protocol, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from pyrag.errors import ConfigError, ServiceError
from pyrag.retrieval.bm25 import Bm25Retriever, index_of
from pyrag.retrieval.dense import DenseRetriever
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.embedders.protocol import passage_text
from pyrag.retrieval.http import HttpRetriever
from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever, fuse
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.protocol import Retriever
from pyrag.retrieval.rerank import RerankingRetriever
from pyrag.retrieval.stores.qdrant import QdrantStore
from pyrag.retrieval.stores.sparse import passage_terms, query_terms
from pyrag.retrieval.stores.store import StoreRetriever
from pyrag.retrieval.vectors.faiss_index import open_vectors
from pyrag.retrieval.vectors.folder import VectorFolder
from pyrag.testing import RETRIEVER_CHECKS, RetrieverCase, assert_all
from pyrag.trace.model import Passage

from .conftest import Server
from .embedders import words_embedder
from .postgres import needs_postgres, pgvector_of

PASSAGES = [
    Passage(f"p{n}", f"Title {word}", f"{word} is a word about {other}", source=f"{word}.md")
    for n, (word, other) in enumerate(
        [("zebra", "stripes"), ("lion", "manes"), ("tiger", "stripes"), ("otter", "rivers"), ("heron", "rivers")]
    )
]
PASSAGES.append(Passage("weird id\n é \\", "星河", "Ünïcode 👍 rivers", source="a\\b"))


async def dense(folder: Path) -> DenseRetriever:
    embedder = words_embedder()
    vectors = VectorFolder.create(folder / "vectors", await embedder.fingerprint())
    with vectors.writer() as writer:
        texts = [passage_text(one.title, one.text) for one in PASSAGES]
        writer.add([one.id for one in PASSAGES], await embedder.embed_passages(texts))
        writer.commit()
    return DenseRetriever(open_vectors(folder / "vectors"), embedder, index_of(PASSAGES).passages)


async def qdrant(place: str) -> StoreRetriever:
    embedder, store = words_embedder(), QdrantStore(f"qdrant:words@{place}")
    store.create(await embedder.fingerprint())
    await store.add_passages(PASSAGES, embedder)
    return StoreRetriever(store, embedder)


def serve_bm25(server: Server) -> HttpRetriever:
    index = index_of(PASSAGES)

    async def handler(request: web.Request) -> web.Response:
        body = await request.json()
        hits = [
            {"document": {"id": one.id, "title": one.title, "text": one.text}, "score": one.score}
            for one in index.search(body["queries"][0], body["topk"])
        ]
        return web.json_response({"result": [hits]})

    server.handler = handler
    return HttpRetriever(server.url)


ENGINES = ["bm25", "dense", "hybrid", "rerank", "http", "memory", "qdrant memory", "qdrant folder"]
POSTGRES = pytest.param("pgvector", marks=needs_postgres)


@pytest.fixture(params=[*ENGINES, POSTGRES])
async def engine(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> AsyncIterator[Retriever]:
    made = await make(request.param, tmp_path, server)
    yield made
    await made.aclose()


async def make(kind: str, folder: Path, server: Server) -> Retriever:
    sparse = Bm25Retriever(index_of(PASSAGES))
    if kind == "dense":
        return await dense(folder)
    if kind == "hybrid":
        return HybridRetriever({"bm25": WeightedRetriever(sparse), "dense": WeightedRetriever(await dense(folder))})
    if kind == "rerank":
        return RerankingRetriever(sparse, lambda query, found: [one.score + 1 for one in found])
    if kind == "http":
        return serve_bm25(server)
    if kind == "memory":
        return InMemoryRetriever(PASSAGES)
    if kind == "pgvector":
        return await pgvector_of(PASSAGES, 0.5)
    if kind.startswith("qdrant"):
        return await qdrant(":memory:" if kind.endswith("memory") else str(folder / "qdrant"))
    return sparse


async def test_the_best_comes_first_and_is_the_passage_itself(engine: Retriever) -> None:
    best, *_ = await engine.retrieve("a word about otter", 3)
    known = PASSAGES[3]
    assert (best.id, best.title, best.text) == (known.id, known.title, known.text)
    assert best.score > 0
    assert best.source


async def test_any_id_and_text_comes_back(engine: Retriever) -> None:
    best, *_ = await engine.retrieve("Ünïcode", 1)
    assert (best.id, best.title, best.text) == (PASSAGES[-1].id, PASSAGES[-1].title, PASSAGES[-1].text)


async def test_every_engine_passes_the_shipped_checks(engine: Retriever) -> None:
    await assert_all(RETRIEVER_CHECKS, RetrieverCase(engine, "rivers stripes", finds="p3", others=("otter", "a word")))


@pytest.mark.parametrize("place", [":memory:", "folder"])
async def test_qdrant_replaces_deletes_and_refuses_other_embedders(tmp_path: Path, place: str) -> None:
    retriever = await qdrant(place if place == ":memory:" else str(tmp_path / place))
    store: Any = retriever.store
    embedder = words_embedder()
    await store.add_passages([replace(PASSAGES[0], text="giraffe necks")], embedder)
    assert len(store) == len(PASSAGES)
    assert (await retriever.retrieve("giraffe necks", 1))[0].id == "p0"
    store.delete(["p0", "unknown"])
    assert len(store) == len(PASSAGES) - 1
    other = words_embedder(model="others")
    with pytest.raises(ConfigError, match="embedded with the model words, not others as the embedder has it"):
        store.create(await other.fingerprint())
    with pytest.raises(ConfigError, match="name its own with --embedder"):
        await StoreRetriever(store, other).retrieve("x", 1)
    await retriever.aclose()


@pytest.mark.parametrize("place", [":memory:", "folder"])
async def test_qdrant_fuses_words_and_vectors_in_one_query(tmp_path: Path, place: str) -> None:
    store: Any = (await qdrant(place if place == ":memory:" else str(tmp_path / place))).store
    query = "a word about rivers and otter"
    (vector,) = await words_embedder().embed_queries([query])
    dense = store.search(vector, 20, query, 1.0)
    sparse = store.search(vector, 20, query, 0.0)
    assert {part for one in dense for part in one.parts} == {"dense"}
    assert {part for one in sparse for part in one.parts} == {"sparse"}
    fused = store.search(vector, 20, query)
    ours = fuse({"dense": dense, "sparse": sparse}, {"dense": 1.0, "sparse": 1.0})
    ties = [one.id for one in sparse if [other.score for other in sparse].count(one.score) > 1]
    assert [(one.id, pytest.approx(one.score)) for one in fused if one.id not in ties] == [
        (one.id, one.score) for one in ours if one.id not in ties
    ]
    assert len(fused) == len(PASSAGES) > len(ties) + 1
    store.close()


def test_the_sparse_product_is_bm25() -> None:
    """Against the textbook's formula; the engine multiplies each term's inverse document frequency in."""
    passage, query = passage_terms("Mill", "the mill of the otter"), query_terms("otter mills")
    length, counts = 6, (1, 2)  # of otter and mill; every word of a passage counts
    expected = sum(n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / 100)) for n in counts)
    assert sum(passage.get(term, 0) * weight for term, weight in query.items()) == pytest.approx(expected)
    assert query_terms("") == {}


@pytest.mark.parametrize("place", [":memory:", "folder"])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
async def test_qdrant_finds_in_company_what_it_finds_alone(tmp_path: Path, place: str, weight: float) -> None:
    store: Any = (await qdrant(place if place == ":memory:" else str(tmp_path / place))).store
    retriever = StoreRetriever(store, words_embedder(), dense_weight=weight)
    asked = [(f"{passage.title} rivers {number}", 1 + number % 3) for number, passage in enumerate(PASSAGES * 3)]
    alone = [await retriever.retrieve(*one) for one in asked]
    together = await asyncio.gather(*(retriever.retrieve(*one) for one in asked))
    # Which of equal scores comes into the last place is the engine's whim.
    assert [[one.score for one in some] for some in together] == [[one.score for one in some] for some in alone]
    assert {len(some) for some in alone if some} == {1, 2, 3}
    await retriever.aclose()


async def test_qdrant_in_a_folder_optimises_as_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.retrieval.stores.qdrant_engines.OPTIMISED", 350)
    store, matrix = QdrantStore(f"qdrant:c@{tmp_path}"), np.random.default_rng(0).normal(size=(400, 16_384))
    vectors = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    store.create(Fingerprint(model="m", dimension=16_384))
    store.add([Passage(f"p{row}", "", "") for row in range(400)], vectors)
    told = store._engine._shard.info()  # type: ignore[attr-defined]
    assert told.indexed_vectors_count == 400, "of 32 KB each: from 10 MB on there is a graph"
    assert len(store) == 400
    assert [store.search(vectors[row], 1)[0].id for row in (0, 150, 399)] == ["p0", "p150", "p399"]
    store.close()


async def test_qdrant_in_a_folder_is_there_again(tmp_path: Path) -> None:
    first = await qdrant(str(tmp_path))
    before = await first.retrieve("rivers", 3)
    await first.aclose()
    again = StoreRetriever(QdrantStore(f"qdrant:words@{tmp_path}"), words_embedder())
    assert await again.retrieve("rivers", 3) == before
    await again.aclose()


async def test_qdrant_that_is_not_there_is_one_sentence(dead_url: str) -> None:
    retriever = StoreRetriever(QdrantStore(f"qdrant:c@{dead_url}"), words_embedder())
    with pytest.raises(ServiceError, match=r"qdrant:c@http.* cannot be read \(.*refused\): look whether it runs"):
        await retriever.retrieve("x", 1)
    await retriever.aclose()
    empty = StoreRetriever(QdrantStore("qdrant:c@:memory:"), words_embedder())
    with pytest.raises(ConfigError, match="holds no passages of pyrag: index some"):
        await empty.retrieve("x", 1)
    await empty.aclose()
    for spec in ("qdrant:", "qdrant:c", "qdrant:@x"):
        with pytest.raises(ConfigError, match="names no collection"):
            QdrantStore(spec)


async def test_dense_refuses_queries_of_another_embedder(tmp_path: Path) -> None:
    made = await dense(tmp_path)
    other: Any = DenseRetriever(made.index, words_embedder(prefix="query: "), made.passages)
    with pytest.raises(ConfigError, match="the query prefix '', not 'query: ' as the query embedder has it"):
        await other.retrieve("rivers", 1)


async def test_dense_passes_over_what_has_no_passage_any_more(tmp_path: Path) -> None:
    made = await dense(tmp_path)
    fewer = DenseRetriever(made.index, words_embedder(), index_of(PASSAGES[1:]).passages)
    found = await fewer.retrieve("zebra", 10)
    assert {one.id for one in found} == {one.id for one in PASSAGES[1:]}
    assert all(one.parts == {"dense": one.score} for one in found)

"""From an index folder, a collection and settings to dense and hybrid retrievers; what is embedded and what not."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyrag.config import Settings
from pyrag.engines import open_engines
from pyrag.errors import ConfigError, DataError
from pyrag.retrieval import Options, open_retriever
from pyrag.retrieval import embedding as module
from pyrag.retrieval.documents import read_passages
from pyrag.retrieval.embed_passages import embed_passages
from pyrag.retrieval.embedding import TextEmbedder
from pyrag.retrieval.faiss_index import open_vectors
from pyrag.retrieval.index import build_index, read_info, vectors_folder, with_vectors
from pyrag.retrieval.rerank import RerankingRetriever
from pyrag.retrieval.vector_folder import VectorFolder
from pyrag.trace import Passage

from .embedders import WordsBackend, words_embedder

WORDS = ["zebra", "lion", "tiger", "otter", "heron"]


@pytest.fixture(autouse=True)
def backends(monkeypatch: pytest.MonkeyPatch) -> list[WordsBackend]:
    """`onnx:NAME` is an embedder of that name over words, for this file."""
    made: list[WordsBackend] = []

    def backend(kind: str, rest: str, timeout: float) -> WordsBackend:
        made.append(WordsBackend(model=rest))
        return made[-1]

    monkeypatch.setattr(module, "_backend", backend)
    return made


def write(path: Path, words: list[str]) -> Path:
    path.write_text("".join(json.dumps({"id": word, "title": word, "text": f"a {word} here"}) + "\n" for word in words))
    return path


def build(folder: Path, kind: str = "hybrid") -> Path:
    source, index = write(folder / "c.jsonl", WORDS), folder / "ix"
    build_index([source], index)
    embedder = TextEmbedder(WordsBackend(model="words"), "onnx:words")

    async def embed() -> None:
        vectors = VectorFolder.create(vectors_folder(index, read_info(index)), await embedder.fingerprint())
        await embed_passages(vectors, read_passages([source]), embedder)

    asyncio.run(embed())
    with_vectors(index, embedder.name, kind)
    return index


@pytest.fixture(params=["hybrid"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return build(tmp_path, request.param)


async def ids(retriever: Any, query: str = "heron", topk: int = 2) -> list[str]:
    found = [passage.id for passage in await retriever.retrieve(query, topk)]
    await retriever.aclose()
    return found


@pytest.mark.parametrize("index", ["dense", "hybrid"], indirect=True)
async def test_a_folder_opens_as_what_it_is(index: Path) -> None:
    retriever = open_retriever(index)
    kind = read_info(index).kind
    assert retriever.name == f"{kind}:{index}"
    best = (await retriever.retrieve("heron", 1))[0]
    assert (best.id, best.text, best.source) == ("heron", "a heron here", str(index.parent / "c.jsonl"))
    assert set(best.parts) == ({"dense"} if kind == "dense" else {"bm25", "dense"})
    before = await ids(open_retriever(index), topk=5)
    shutil.copytree(index, index.with_name("elsewhere"))
    assert await ids(open_retriever(index.with_name("elsewhere")), topk=5) == before


@pytest.mark.parametrize(("weight", "part"), [(0.0, "bm25"), (1.0, "dense")])
async def test_a_weight_leaves_out_a_half(index: Path, weight: float, part: str) -> None:
    retriever = open_retriever(index, options=Options(dense_weight=weight))
    assert {key for one in await retriever.retrieve("heron", 1) for key in one.parts} == {part}
    await retriever.aclose()


async def test_settings_reach_the_retriever(index: Path) -> None:
    engines = open_engines(Settings(index=str(index), embedder="onnx:other", rerank="some/cross-encoder"))
    assert isinstance(engines.retriever, RerankingRetriever)
    assert engines.retriever.name == f"rerank:some/cross-encoder(hybrid:{index})"
    await engines.aclose()
    with pytest.raises(ConfigError, match="dense_weight must be between 0 and 1"):
        Settings(dense_weight=2)
    wrong = open_retriever(index, options=Options(embedder="onnx:other"))
    with pytest.raises(
        ConfigError, match="the model words, not other as the query embedder has it: name the index's own"
    ):
        await wrong.retrieve("heron", 1)
    await wrong.aclose()


def test_a_folder_whose_vectors_are_gone_says_so(index: Path) -> None:
    shutil.rmtree(vectors_folder(index, read_info(index)))
    with pytest.raises(DataError, match="holds no vectors: build the index with an embedder"):
        open_retriever(index)


def test_building_again_without_an_embedder_drops_the_vectors(index: Path) -> None:
    build_index([index.parent / "c.jsonl"], index)
    assert open_retriever(index).name == f"bm25:{index}"
    assert not list(index.rglob("vectors.json"))


async def test_a_collection_needs_the_name_of_its_embedder(tmp_path: Path) -> None:
    spec = f"qdrant:c@{tmp_path}"
    with pytest.raises(ConfigError, match="needs the embedder of its vectors: name it with --embedder"):
        open_retriever(spec)
    retriever = open_retriever(spec, options=Options(embedder="onnx:words"))
    assert retriever.name == spec
    await retriever.aclose()


async def test_what_is_there_is_not_embedded_again(tmp_path: Path) -> None:
    backend = WordsBackend()
    embedder = TextEmbedder(backend, "words")
    passages = [Passage(f"p{n}", "", f"word{n}") for n in range(600)]
    folder = VectorFolder.create(tmp_path / "v", await embedder.fingerprint())
    seen: list[int] = []

    def stop(count: int) -> None:
        seen.append(count)
        if count > 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await embed_passages(folder, passages, embedder, progress=stop)
    assert seen == [256, 512]
    assert len(open_vectors(tmp_path / "v")) == 0
    backend.batches.clear()
    await embed_passages(folder, passages, embedder, progress=seen.append)
    assert seen[2:] == [256, 512, 600]
    assert [text for batch in backend.batches for text in batch] == [one.text for one in passages[512:]]
    await embed_passages(folder, [Passage("p1", "", "zebra")], words_embedder(), delete=["p2"])
    index = open_vectors(tmp_path / "v")
    assert sorted(index.ids()) == sorted({one.id for one in passages} - {"p2"})
    assert index.search(await embedder.embed_queries(["zebra"]), 1)[0][0][0] == "p1"


def test_importing_loads_nothing_heavy() -> None:
    names = ["open", "embedding", "batching", "families", "threads", "onnx", "dense", "hybrid", "rerank"]
    code = f"import sys, {', '.join('pyrag.retrieval.' + name for name in names)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "faiss", "onnxruntime", "tokenizers", "torch", "qdrant_client", "aiohttp", "tantivy", "msgspec"}
    assert not heavy & set(loaded)

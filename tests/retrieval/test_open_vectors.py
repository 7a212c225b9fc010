"""From an index folder, a collection and settings to dense and hybrid retrievers; what is embedded and what not."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError, DataError
from pyrag.retrieval import Options, open_retriever
from pyrag.retrieval.embedders import embedding as module
from pyrag.retrieval.embedders.embedding import TextEmbedder
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.index import read_info, update_index, vectors_folder
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.dense_part import DensePart
from pyrag.retrieval.indexing.verify import verify_index
from pyrag.retrieval.rerank import RerankingRetriever
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings

from .embedders import WordsBackend

WORDS = ["zebra", "lion", "tiger", "otter", "heron"]


@pytest.fixture(autouse=True)
def backends(monkeypatch: pytest.MonkeyPatch) -> list[WordsBackend]:
    """`onnx:NAME` is an embedder of that name over words, for this file."""
    made: list[WordsBackend] = []

    def backend(kind: str, rest: str, timeout: float, *_: object) -> WordsBackend:
        made.append(WordsBackend(model=rest))
        return made[-1]

    monkeypatch.setattr(module, "open_backend", backend)
    return made


def write(path: Path, words: list[str]) -> Path:
    path.write_text("".join(json.dumps({"id": word, "title": word, "text": f"a {word} here"}) + "\n" for word in words))
    return path


def build(folder: Path) -> Path:
    source, index = write(folder / "c.jsonl", WORDS), folder / "ix"
    dense = DensePart(TextEmbedder(WordsBackend(model="words"), "onnx:words"))
    update_index([source], index, parts=(Bm25Part(), dense))
    dense.close()
    return index


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return build(tmp_path)


async def ids(retriever: Any, query: str = "heron", topk: int = 2) -> list[str]:
    found = [passage.id for passage in await retriever.retrieve(query, topk)]
    await retriever.aclose()
    return found


async def test_a_folder_opens_as_what_it_is(index: Path) -> None:
    retriever = open_retriever(index)
    assert retriever.name == f"{read_info(index).kind}:{index}" == f"hybrid:{index}"
    best = (await retriever.retrieve("heron", 1))[0]
    assert (best.id, best.text, best.source) == ("heron", "a heron here", str(index.parent / "c.jsonl"))
    assert set(best.parts) == {"bm25", "dense"}
    before = await ids(open_retriever(index), topk=5)
    shutil.copytree(index, index.with_name("elsewhere"))
    assert await ids(open_retriever(index.with_name("elsewhere")), topk=5) == before


@pytest.mark.parametrize(("weight", "part"), [(0.0, "bm25"), (1.0, "dense")])
async def test_a_weight_leaves_out_a_half(index: Path, weight: float, part: str) -> None:
    retriever = open_retriever(index, options=Options(dense_weight=weight))
    assert retriever.name == f"{part}:{index}"
    (best,) = await retriever.retrieve("heron", 1)
    assert best.id == "heron"
    assert set(best.parts) <= {part}
    await retriever.aclose()


async def test_settings_reach_the_retriever(index: Path) -> None:
    engines = open_engines(Settings(index=str(index), embedder="onnx:other", rerank="st:some/cross-encoder"))
    assert isinstance(engines.retriever, FollowingRetriever)
    assert isinstance(engines.retriever.retriever, RerankingRetriever)
    assert engines.retriever.name == f"rerank:st:some/cross-encoder(hybrid:{index})"
    await engines.aclose()
    with pytest.raises(ConfigError, match="dense_weight must be between 0 and 1"):
        Settings(dense_weight=2)
    with pytest.raises(ConfigError, match="there is no reranker 'cross': write reader, onnx:DIR or st:NAME"):
        open_engines(Settings(rerank="cross"))
    wrong = open_retriever(index, options=Options(embedder="onnx:other"))
    with pytest.raises(
        ConfigError, match="the model words, not other as the query embedder has it: name the index's own"
    ):
        await wrong.retrieve("heron", 1)
    await wrong.aclose()


@pytest.mark.parametrize("name", ["vectors/*.faiss", "vectors/*.off", "bm25/*.store", "bm25/meta.json", "records.db"])
@pytest.mark.parametrize("length", [None, 0, 30])
def test_a_truncated_file_is_named_and_rebuilt(name: str, length: int | None, index: Path) -> None:
    """FAISS crashes on an index of 30 bytes, so nothing may open one; tantivy makes an empty index of none."""
    path = next((index / read_info(index).generation).glob(name))
    path.unlink() if length is None else os.truncate(path, length)
    with pytest.raises(DataError, match=rf"{path.name} is missing or not as long as it .* pyrag index and --rebuild"):
        open_retriever(index)
    assert any(path.name in problem for problem in verify_index(index).problems)
    build(index.parent)
    assert verify_index(index).problems == ()


def test_contents_that_fit_nothing_are_one_error(index: Path) -> None:
    vectors = vectors_folder(index, read_info(index))
    good = {path: path.read_bytes() for path in vectors.iterdir()}
    for pattern in ("*.faiss", "*.off", "vectors.json"):
        path = next(vectors.glob(pattern))
        path.write_bytes(random.Random(1).randbytes(len(good[path])))
        with pytest.raises(DataError, match=r"are damaged \(.*\)|cannot be read \(.*\)"):
            open_retriever(index)
        path.write_bytes(good[path])
    assert open_retriever(index).name == f"hybrid:{index}"


def test_building_again_without_an_embedder_drops_the_vectors(index: Path) -> None:
    update_index([index.parent / "c.jsonl"], index)
    assert open_retriever(index).name == f"bm25:{index}"
    assert not list(index.rglob("vectors.json"))


async def test_a_collection_needs_the_name_of_its_embedder(tmp_path: Path) -> None:
    spec = f"qdrant:c@{tmp_path}"
    with pytest.raises(ConfigError, match="needs the embedder of its vectors: name it with --embedder"):
        open_retriever(spec)
    retriever = open_retriever(spec, options=Options(embedder="onnx:words"))
    assert retriever.name == spec
    await retriever.aclose()
    async with PyRAG(retriever=spec, embedder="onnx:words") as rag:
        assert rag.engines.retriever.name == spec


def test_importing_loads_nothing_heavy() -> None:
    names = ["open", "dense", "hybrid", "rerank", *(f"embedders.{one}" for one in ("embedding", "fingerprint", "onnx"))]
    code = f"import sys, {', '.join('pyrag.retrieval.' + name for name in names)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "faiss", "onnxruntime", "tokenizers", "torch", "qdrant_client", "aiohttp", "tantivy", "msgspec"}
    assert not heavy & set(loaded)

"""Embedding: micro-batches, memory, prefixes and pooling, ONNX, and a server of embeddings."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from pyrag.errors import ConfigError, DataError, MalformedReplyError, RetryableServiceError
from pyrag.retrieval.embedders.batching import Batcher
from pyrag.retrieval.embedders.embedding import TextEmbedder, open_embedder
from pyrag.retrieval.embedders.fingerprint import Fingerprint, family_of
from pyrag.retrieval.embedders.onnx import RECIPE, OnnxBackend, pool
from pyrag.retrieval.embedders.openai_embeddings import OpenAIBackend
from pyrag.retrieval.embedders.protocol import passage_text

from .conftest import Server
from .embedders import WordsBackend, vector

TINY = Path(__file__).parent / "tiny_onnx" / "model.onnx"


class Gate:
    """A `compute` that waits until it is let through; one number for each key."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, keys: Sequence[str]) -> Any:
        self.batches.append(list(keys))
        self.begun.set()
        await self.open.wait()
        return np.array([[float(key)] for key in keys], np.float32)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_comes_together_is_computed_together() -> None:
    gate = Gate()
    gate.open.set()
    batcher = Batcher(gate, window=60, max_batch=4, cached=10)  # full before the window ends
    rows = await asyncio.gather(*(batcher.get_all([str(n)]) for n in range(4)))
    assert [row[0][0] for row in rows] == [0, 1, 2, 3]
    assert gate.batches == [["0", "1", "2", "3"]]


async def test_while_one_batch_runs_the_next_gathers() -> None:
    gate = Gate()
    batcher = Batcher(gate, window=0, max_batch=3, cached=10)
    first = asyncio.ensure_future(batcher.get_all(["1"]))
    await gate.begun.wait()
    rest = [asyncio.ensure_future(batcher.get_all([str(n)])) for n in (2, 3, 1, 3, 4, 5)]
    await settle()
    assert gate.batches == [["1"]]
    gate.open.set()
    assert [(await one)[0][0] for one in [first, *rest]] == [1, 2, 3, 1, 3, 4, 5]
    assert gate.batches == [["1"], ["2", "3", "4"], ["5"]]


async def test_recent_keys_are_remembered_and_old_ones_forgotten() -> None:
    gate = Gate()
    gate.open.set()
    batcher = Batcher(gate, window=0, max_batch=9, cached=2)
    for keys in (["1"], ["2"], ["1"], ["3"], ["1"], ["2"]):
        await batcher.get_all(keys)
    assert gate.batches == [["1"], ["2"], ["3"], ["2"]]


async def test_a_failure_reaches_all_and_is_not_remembered() -> None:
    failing = True

    async def compute(keys: Sequence[str]) -> Any:
        if failing:
            raise ConfigError("broken")
        return np.ones((len(keys), 1), np.float32)

    batcher = Batcher(compute, window=0.001, max_batch=9, cached=9)
    results = await asyncio.gather(*(batcher.get_all(["1"]) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in results] == [ConfigError] * 3
    failing = False
    assert (await batcher.get_all(["1"]))[0] == [1]


async def test_a_cancelled_question_does_not_take_the_others_with_it() -> None:
    gate = Gate()
    batcher = Batcher(gate, window=0, max_batch=9, cached=9)
    one, two = (asyncio.ensure_future(batcher.get_all([key, "3"])) for key in "12")
    await gate.begun.wait()
    one.cancel()
    gate.open.set()
    assert [row[0] for row in await two] == [2, 3]
    assert gate.batches == [["1", "3", "2"]]
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_keys_are_spread_over_batches_that_end_independently() -> None:
    gates: dict[str, asyncio.Event] = {}
    batches: list[list[str]] = []

    async def compute(keys: Sequence[str]) -> Any:
        batches.append(list(keys))
        gates[keys[0]] = asyncio.Event()
        await gates[keys[0]].wait()
        return [int(key) for key in keys]

    batcher = Batcher(compute, window=0, max_batch=3, cached=0, width=2)
    asked = [batcher.get(str(n)) for n in range(4)]
    await settle()
    assert batches == [["0", "1"], ["2", "3"]]
    asked += [batcher.get(str(n)) for n in range(4, 9)]  # both are busy: they gather
    await settle()
    assert len(batches) == 2
    gates["2"].set()
    await settle()
    assert [one.result() for one in asked if one.done()] == [2, 3]
    assert batches[2:] == [["4", "5", "6"]]
    for key in ("0", "4"):
        gates[key].set()
        await settle()
    gates["7"].set()
    assert await asyncio.gather(*asked) == list(range(9))
    assert batches[3:] == [["7", "8"]]


async def test_who_comes_while_one_batch_runs_has_the_other_place() -> None:
    gate = Gate()
    batcher = Batcher(gate, window=0, max_batch=9, cached=0, width=2)
    asked = [batcher.get("1")]
    await settle()
    asked.append(batcher.get("2"))
    await settle()
    assert gate.batches == [["1"], ["2"]]
    gate.open.set()
    assert [row[0] for row in await asyncio.gather(*asked)] == [1, 2]


async def test_rows_that_are_missing_are_an_error_for_all() -> None:
    async def compute(keys: Sequence[str]) -> list[str]:
        return list(keys)[1:]

    batcher = Batcher(compute, window=0, max_batch=9, cached=9)
    results = await asyncio.gather(*(batcher.get_all([key]) for key in "12"), return_exceptions=True)
    assert [type(one) for one in results] == [ValueError] * 2


def test_a_loop_that_is_shut_down_leaves_nobody_waiting() -> None:
    gate = Gate()
    batcher = Batcher(gate, window=0, max_batch=1, cached=0)

    async def main() -> list[asyncio.Future[Any]]:
        asked = [batcher.get(key) for key in "12"]
        await gate.begun.wait()
        return asked

    assert all(one.cancelled() for one in asyncio.run(main()))
    assert gate.batches == [["1"]]


def test_several_event_loops_share_what_is_known() -> None:
    backend = WordsBackend()
    embedder = TextEmbedder(backend, "words")
    for _ in range(2):
        asyncio.run(embedder.embed_queries(["zebra"]))
    assert len(backend.batches) == 1


async def test_prefixes_go_before_the_texts() -> None:
    backend = WordsBackend(prefix="query: ")
    embedder = TextEmbedder(backend, "words")
    rows = await embedder.embed_queries(["zebra", "lion", "zebra"])
    assert rows.shape == (3, 64)
    assert rows.dtype == np.float32
    assert (rows[0] == vector("query: zebra")).all()
    assert sorted(backend.batches[0]) == ["query: lion", "query: zebra"]
    await embedder.embed_passages([passage_text("T", "x"), passage_text("", "x")])
    assert backend.batches[1] == ["T\nx", "x"]
    assert (await embedder.embed_queries([])).shape == (await embedder.embed_passages([])).shape == (0, 64)
    await embedder.aclose()
    assert backend.closed


@pytest.mark.parametrize(
    ("model", "family", "query", "passage", "pooling"),
    [
        ("intfloat/e5-base-v2", "e5", "query: ", "passage: ", "mean"),
        ("intfloat/multilingual-e5-large", "e5", "query: ", "passage: ", "mean"),
        ("intfloat/multilingual-e5-large-instruct", "e5-instruct", "Instruct: ", "", "mean"),
        ("BAAI/bge-small-en-v1.5", "bge", "Represent this sentence", "", "cls"),
        ("BAAI/bge-m3", "bge-m3", "", "", "cls"),
        ("BAAI/bge-large-zh-v1.5", "bge-zh", "为这个句子", "", "cls"),
        ("thenlper/gte-base", "gte", "", "", "mean"),
        ("Alibaba-NLP/gte-base-en-v1.5", "gte-v1.5", "", "", "cls"),
        ("sentence-transformers/all-MiniLM-L6-v2", "sentence", "", "", "mean"),
        ("facebook/contriever", "contriever", "", "", "mean"),
    ],
)
def test_families(model: str, family: str, query: str, passage: str, pooling: str) -> None:
    found = family_of(model)
    assert found is not None
    assert (found.name, found.passage, found.pooling) == (family, passage, pooling)
    assert found.query.startswith(query)
    assert bool(found.query) == bool(query)


def test_an_unknown_model_has_no_family() -> None:
    assert family_of("org/something-new") is None


def test_pooling() -> None:
    states = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert pool(states, "mean").tolist() == [2, 3]
    assert pool(states, "cls").tolist() == [0, 1]
    assert pool(states, "last").tolist() == [4, 5]


def tiny(folder: Path, **recipe: Any) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder.mkdir()
    shutil.copy(TINY, folder / "model.onnx")
    words = ["[UNK]", *"abcdefghijklmno"]
    tokenizer: Any = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_padding(length=9)  # as in MiniLM's own file: both are ours to decide
    tokenizer.enable_truncation(2)
    tokenizer.save(str(folder / "tokenizer.json"))
    if recipe:
        (folder / RECIPE).write_text(json.dumps({"model": "org/tiny", "dimension": 8, "max_tokens": 6} | recipe))
    return folder


async def test_onnx_vectors_are_token_means_independent_of_the_batch(tmp_path: Path) -> None:
    embedder = open_embedder(f"onnx:{tiny(tmp_path / 'm', normalised=False, passage_prefix='o ')}")
    single = await embedder.embed_queries(["a", "b", "c"])
    texts = ["a b c", "a", "b b a c"] * 20
    rows = await embedder.embed_queries(texts)
    assert rows[0] == pytest.approx(single.mean(0), abs=1e-6)
    assert rows[2] == pytest.approx((single[0] + 2 * single[1] + single[2]) / 4, abs=1e-6)
    assert (await embedder.embed_passages(["a"]))[0] != pytest.approx(single[0], abs=1e-3)
    long = await embedder.embed_queries(["a a a a a a b b b", "\ud800"])
    assert long[0] == pytest.approx(single[0], abs=1e-6)  # cut after six tokens
    await embedder.aclose()


async def test_onnx_without_a_recipe_goes_by_the_folders_name(tmp_path: Path) -> None:
    plain = await OnnxBackend(tiny(tmp_path / "new-model")).fingerprint()
    assert (plain.model, plain.dimension, plain.pooling, plain.normalised) == ("new-model", 8, "mean", True)
    bge = await OnnxBackend(tiny(tmp_path / "bge-small-en")).fingerprint()
    assert (bge.pooling, bge.query_prefix[:9]) == ("cls", "Represent")
    rows = await open_embedder(f"onnx:{tmp_path / 'new-model'}").embed_queries(["a", "b b c"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-6)


async def test_onnx_folders_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no model\.onnx: name a folder"):
        await OnnxBackend(tmp_path).fingerprint()
    folder = tiny(tmp_path / "m", pooling="mean")
    (folder / RECIPE).write_text("{")
    with pytest.raises(DataError, match=r"cannot be read .*: export the model again"):
        await OnnxBackend(folder).fingerprint()
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(DataError, match="copy it from the model's folder again"):
        await OnnxBackend(folder).fingerprint()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"holds no tokenizer\.json"):
        await OnnxBackend(folder).fingerprint()
    (folder / "model.onnx").write_bytes(b"x")
    with pytest.raises(DataError, match=r"model\.onnx cannot be loaded"):
        await OnnxBackend(folder).fingerprint()


@pytest.mark.parametrize("spec", ["", "onnx:", "minilm", "hf:x", "openai:model", "openai:model@host"])
def test_what_is_no_embedder(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"names no (embedder|server): write "):
        open_embedder(spec)


def test_the_model_is_compared_without_its_owner() -> None:
    one = Fingerprint(model="intfloat/E5-base-v2", dimension=8)
    assert one.difference(Fingerprint(model="/models/e5-base-v2/", dimension=8, max_tokens=512)) == ""


def embeddings(change: Any = None) -> Any:
    async def handler(request: web.Request) -> web.Response:
        body = await request.json()
        items = [{"index": n, "embedding": (2 * vector(text)).tolist()} for n, text in enumerate(body["input"])]
        reply: dict[str, Any] = {"object": "list", "data": items[::-1], "model": body["model"]}
        return web.json_response(change(reply) if change else reply)

    return handler


async def test_a_server_of_embeddings(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRAG_API_KEY", "secret-key")
    server.handler = embeddings()
    embedder = open_embedder(f"openai:intfloat/e5-base-v2@{server.url}/v1")
    rows = await embedder.embed_queries(["zebra", "\ud800"])
    assert rows[0] == pytest.approx(vector("query: zebra"), abs=1e-6)  # of length 1 again, in the right order
    many = await embedder.embed_passages([f"word{n}" for n in range(150)])
    assert many[149] == pytest.approx(vector("passage: word149"), abs=1e-6)
    fingerprint = await embedder.fingerprint()
    assert (fingerprint.model, fingerprint.dimension) == ("intfloat/e5-base-v2", 64)
    assert {request[1] for request in server.requests} == {"/v1/embeddings"}
    assert {request[2]["Authorization"] for request in server.requests} == {"Bearer secret-key"}
    await embedder.aclose()


@pytest.mark.parametrize(
    "change",
    [
        lambda reply: {"data": reply["data"][1:]},
        lambda reply: {"data": [{"embedding": []}]},
        lambda reply: {"data": [{"embedding": "AAAA"}]},
        lambda reply: {"data": [{"embedding": [1.0, 2.0]}, {"embedding": [1.0]}]},
        lambda reply: [],
    ],
)
async def test_a_reply_of_the_wrong_form_is_named(server: Server, change: Any) -> None:
    server.handler = embeddings(change)
    backend = OpenAIBackend("m", server.url)
    with pytest.raises(MalformedReplyError, match="check that the URL is that of a server of embeddings"):
        await backend.encode(["a"])
    await backend.aclose()


async def test_a_server_that_is_not_there(dead_url: str) -> None:
    embedder = open_embedder(f"openai:m@{dead_url}", timeout=1)
    with pytest.raises(RetryableServiceError, match=r"refused the connection .*--embedder"):
        await embedder.embed_queries(["a"])
    await embedder.aclose()

"""The extra `dense` against tiny models with random weights, made here. `make test-dense` runs it, nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyrag.errors import DataError
from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag.retrieval.embedders.export_onnx import export, export_cross_encoder, main
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.rerank import RerankingRetriever, cross_encoder
from pyrag.trace.model import Passage

pytestmark = pytest.mark.filterwarnings("default")  # the libraries' own deprecations

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmno", "query", "passage", ":"]
TEXTS = ["a b c", "d", "e f g h i j k l"]


def bert(folder: Path, labels: int = 0) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, num_labels=labels or 2, initializer_range=0.5,
    )  # fmt: skip
    model = BertForSequenceClassification(config) if labels else BertModel(config)
    model.save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def hidden(folder: Path, text: str) -> Any:
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    ("name", "query", "pooling"),
    [("e5-tiny", "query: ", "mean"), ("bge-tiny-en", "Represent this", "cls"), ("gte-tiny", "", "mean")],
)
async def test_prefix_and_pooling_are_the_familys(tmp_path: Path, name: str, query: str, pooling: str) -> None:
    folder = bert(tmp_path / name)
    embedder = open_embedder(f"st:{folder}")
    fingerprint = await embedder.fingerprint()
    assert (fingerprint.dimension, fingerprint.pooling, fingerprint.normalised) == (16, pooling, True)
    assert fingerprint.query_prefix.startswith(query)
    states = hidden(folder, fingerprint.query_prefix + "a b c")
    expected = states[0] if pooling == "cls" else states.mean(0)
    rows = await embedder.embed_queries(TEXTS)
    assert rows[0] == pytest.approx(unit(expected), abs=1e-4)
    assert rows.dtype == np.float32
    await embedder.aclose()


async def test_an_index_takes_queries_of_the_other_engine(tmp_path: Path) -> None:
    folder = bert(tmp_path / "e5-tiny")
    torch = open_embedder(f"st:{folder}")
    for quantise, cosine in ((False, 0.9999), (True, 0.97)):
        exported = tmp_path / f"onnx{quantise}"
        await asyncio.to_thread(export, str(folder), exported, quantise=quantise)
        onnx = open_embedder(f"onnx:{exported}")
        assert (await torch.fingerprint()).difference(await onnx.fingerprint()) == ""
        for embed in ("embed_queries", "embed_passages"):
            one, two = await getattr(torch, embed)(TEXTS), await getattr(onnx, embed)(TEXTS)
            assert (one * two).sum(1).min() > cosine
    assert (await torch.embed_queries(["a"]) != await torch.embed_passages(["a"])).any()


async def test_many_texts_alone_and_together(tmp_path: Path) -> None:
    embedder = open_embedder(f"st:{bert(tmp_path / 'all-minilm-tiny')}")
    together = await embedder.embed_passages(TEXTS * 30)
    alone = [(await embedder.embed_passages([text]))[0] for text in TEXTS]
    assert together[:3] == pytest.approx(np.stack(alone), abs=1e-4)


async def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match=r"the embedding model .* cannot be loaded \(.*\): check its name"):
        await open_embedder(f"st:{tmp_path / 'nothing'}").embed_queries(["a"])


async def test_a_cross_encoder_reranks(tmp_path: Path) -> None:
    folder = bert(tmp_path / "cross", labels=1)
    found = [Passage(str(n), "", text) for n, text in enumerate(TEXTS)]
    retriever = RerankingRetriever(InMemoryRetriever({"a": found}), cross_encoder(str(folder)))
    ranked = await retriever.retrieve("a", 3)
    assert sorted(one.id for one in ranked) == ["0", "1", "2"]
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
    assert len({one.score for one in ranked}) == 3


async def test_an_exported_cross_encoder_scores_alike(tmp_path: Path) -> None:
    folder = bert(tmp_path / "cross", labels=1)
    export_cross_encoder(str(folder), tmp_path / "onnx", quantise=False)
    assert main([str(folder), str(tmp_path / "int8"), "--cross-encoder"]) == 0
    found = [Passage(str(n), "b", text) for n, text in enumerate([*TEXTS, "a b " * 400])]
    plain = cross_encoder(f"st:{folder}")("a c", found[:3])
    assert cross_encoder(f"onnx:{tmp_path / 'onnx'}")("a c", found[:3]) == pytest.approx(plain, abs=1e-4)
    assert cross_encoder(f"onnx:{tmp_path / 'int8'}")("a c", found[:3]) == pytest.approx(plain, abs=0.2)
    assert len(set(plain)) == 3


def test_a_cross_encoder_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match=r"the cross-encoder .* cannot be loaded \(.*\): check its name"):
        cross_encoder(str(tmp_path / "nothing"))("a", [Passage("1", "", "b")])

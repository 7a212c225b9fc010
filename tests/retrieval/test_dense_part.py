"""Vectors as a part of an index: what changed is embedded, what only moved is not, and the folder opens as a hybrid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrag.errors import ServiceError
from pyrag.retrieval import open_retriever
from pyrag.retrieval.embedders import embedding
from pyrag.retrieval.embedders.embedding import TextEmbedder
from pyrag.retrieval.index import read_info, update_index
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.dense_part import DensePart
from pyrag.retrieval.indexing.update import IndexProgress
from pyrag.retrieval.indexing.verify import verify_index

from .embedders import WordsBackend
from .updating import WORDS, content, records


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> WordsBackend:
    made = WordsBackend(model="words")
    monkeypatch.setattr(embedding, "open_backend", lambda *_: made)
    return made


@pytest.fixture
def parts(backend: WordsBackend) -> Iterator[tuple[Bm25Part, DensePart]]:
    dense = DensePart(TextEmbedder(backend, "onnx:words"))
    yield Bm25Part(), dense
    dense.close()


def embedded(backend: WordsBackend) -> list[str]:
    texts = [text for batch in backend.batches for text in batch]
    backend.batches.clear()
    return texts


def test_only_what_changed_is_embedded(
    tmp_path: Path, backend: WordsBackend, parts: tuple[Bm25Part, DensePart]
) -> None:
    folder, index = records(tmp_path / "n", 3, 20), tmp_path / "ix"
    update_index([folder], index, parts=parts)
    assert len(embedded(backend)) == 60
    lines = (folder / "0.jsonl").read_text().splitlines(keepends=True)
    changed = {**json.loads(lines[0]), "text": "a heron that is new"}
    (folder / "0.jsonl").write_text(json.dumps(changed) + "\n" + "".join(lines[1:]))
    (folder / "1.jsonl").unlink()
    (folder / "2.jsonl").rename(folder / "renamed.jsonl")
    update_index([folder], index, parts=parts)
    assert embedded(backend) == ["Title 0\na heron that is new"]
    assert verify_index(index).problems == ()
    assert verify_index(index).parts == ("bm25", "vectors")
    assert (read_info(index).kind, read_info(index).embedder) == ("hybrid", "onnx:words")


async def test_an_updated_index_opens_as_a_hybrid(tmp_path: Path, backend: WordsBackend) -> None:
    folder, index = records(tmp_path / "n", 1, 8), tmp_path / "ix"

    def build() -> None:
        part = DensePart(TextEmbedder(backend, "onnx:words"))
        update_index([folder], index, parts=(Bm25Part(), part))
        part.close()

    await asyncio.to_thread(build)
    (folder / "0.jsonl").write_text('{"id": "h", "text": "heron"}\n{"id": "z", "text": "zebra"}\n')
    await asyncio.to_thread(build)
    retriever = open_retriever(index)
    found = await retriever.retrieve("heron", 5)
    assert (found[0].id, set(found[0].parts)) == ("h", {"bm25", "dense"})
    assert {one.id for one in found} <= {"h", "z"}
    await retriever.aclose()


def test_a_broken_line_behind_many_records_is_left_out(tmp_path: Path, parts: tuple[Bm25Part, DensePart]) -> None:
    folder, index = records(tmp_path / "n", 2, 20), tmp_path / "ix"
    lines = "".join(json.dumps({"id": f"lost{n}", "text": WORDS[n % 4]}) + "\n" for n in range(1500))
    (folder / "bad.jsonl").write_text(lines + "{nope\n")
    built = update_index([folder], index, parts=parts, checkpoint=0)
    assert (built.info.passages, built.info.left_out) == (1540, 0)
    assert "line 1501" in built.bad_records[0][1]
    assert verify_index(index).problems == ()


def test_an_embedder_that_fails_costs_nothing_that_was_done(
    tmp_path: Path, backend: WordsBackend, parts: tuple[Bm25Part, DensePart], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, index = records(tmp_path / "n", 6, 20), tmp_path / "ix"

    def fail(progress: IndexProgress) -> None:
        if progress.passages > 60:
            raise ServiceError("the embedder is down: start it again")

    with pytest.raises(ServiceError, match="is down"):
        update_index([folder], index, fail, parts=parts, checkpoint=0)
    done = len(embedded(backend))
    update_index([folder], index, parts=parts)
    again = len(embedded(backend))
    assert again < 120 <= done + again
    assert len(content(index)) == 120
    assert verify_index(index).problems == ()


def test_without_its_embedder_an_index_drops_its_vectors(tmp_path: Path, parts: tuple[Bm25Part, DensePart]) -> None:
    folder, index = records(tmp_path / "n", 1, 8), tmp_path / "ix"
    update_index([folder], index, parts=parts)
    update_index([folder], index)
    assert read_info(index).kind == "bm25"
    assert not list(index.rglob("vectors.json"))
    assert verify_index(index).problems == ()

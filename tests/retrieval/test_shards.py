"""Indexes whose vectors are in shards, built here and by Ray's workers: the same as in one piece by one process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyrag.retrieval import Options, open_retriever
from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag.retrieval.index import read_info, update_index, vectors_folder
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.dense_part import DensePart
from pyrag.retrieval.indexing.update import IndexProgress
from pyrag.retrieval.indexing.verify import verify_index
from pyrag.retrieval.vectors.faiss_index import Layout, open_segment, read_vector_info
from pyrag.retrieval.vectors.files import map_vectors

from ..cli.conftest import environment
from .embedders import words_embedder
from .updating import records


def vectors_of(index: Path) -> Iterator[dict[str, bytes]]:
    """For each segment what it holds: the vector of each id, as it was embedded."""
    folder = vectors_folder(index, read_info(index))
    about = read_vector_info(folder)
    for segment in about.segments:
        assert segment.deleted == 0
        matrix = map_vectors(folder / f"{segment.name}.vec", segment.rows, about.fingerprint.dimension)
        names = open_segment(folder, segment, about).ids
        yield {name: np.asarray(row).tobytes() for name, row in zip(names, matrix, strict=True)}


def build(corpus: Path, index: Path, part: DensePart, **options: Any) -> None:
    try:
        update_index([corpus], index, parts=(Bm25Part(), part), **options)
    finally:
        part.close()


def found(index: Path, query: str) -> list[tuple[str, float]]:
    async def ask() -> list[tuple[str, float]]:
        retriever = open_retriever(index, options=Options(dense_weight=1.0))
        try:
            return [(one.id, one.parts["dense"]) for one in await retriever.retrieve(query, 10)]
        finally:
            await retriever.aclose()

    return asyncio.run(ask())


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.retrieval.embedders.embedding.open_embedder", lambda spec, **_: words_embedder())


@pytest.mark.usefixtures("words")
def test_shards_find_what_one_piece_finds(tmp_path: Path) -> None:
    corpus = records(tmp_path / "corpus")
    build(corpus, tmp_path / "one", DensePart(words_embedder()))
    build(corpus, tmp_path / "many", DensePart(words_embedder(), Layout(shards=3)))
    (whole,) = vectors_of(tmp_path / "one")
    shards = list(vectors_of(tmp_path / "many"))
    assert len(shards) == 3
    assert {name: vector for shard in shards for name, vector in shard.items()} == whole
    assert found(tmp_path / "many", "otter word7") == found(tmp_path / "one", "otter word7")
    (corpus / "0.jsonl").unlink()
    (corpus / "7.jsonl").write_text(json.dumps({"id": "new", "title": "New", "text": "otter word7 word7"}) + "\n")
    build(corpus, tmp_path / "many", DensePart(words_embedder(), Layout(shards=3)))
    assert (found(tmp_path / "many", "otter word7"))[0][0] == "new"
    assert verify_index(tmp_path / "many").problems == ()


@pytest.mark.usefixtures("words")
def test_another_layout_embeds_nothing_again(tmp_path: Path) -> None:
    corpus = records(tmp_path / "corpus")
    build(corpus, tmp_path / "ix", DensePart(words_embedder()))
    (whole,) = vectors_of(tmp_path / "ix")
    embedder = words_embedder()
    build(corpus, tmp_path / "ix", DensePart(embedder, Layout(type="SQ8", shards=2)))
    assert embedder.backend.batches == []  # type: ignore[attr-defined]
    first, second = vectors_of(tmp_path / "ix")
    assert first | second == whole
    about = read_vector_info(vectors_folder(tmp_path / "ix", read_info(tmp_path / "ix")))
    assert [one.type for one in about.segments] == ["SQ8", "SQ8"]


CHILD = """
import sys, time
from pyrag.retrieval.vectors.faiss_index import Layout
from pyrag.retrieval.index import update_index
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.dense_part import DensePart
from tests.retrieval.embedders import words_embedder

folder, out = sys.argv[1:]
part = DensePart(words_embedder(), Layout(shards=3))
update_index([folder], out, lambda progress: print("going", flush=True), parts=(Bm25Part(), part), checkpoint=0)
print("done", flush=True)
"""


def builder(corpus: Path, index: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, corpus, index], stdout=subprocess.PIPE, text=True, env=environment()
    )


def check_kills(tmp_path: Path, kills: int) -> None:
    corpus, index = records(tmp_path / "corpus", files=8, each=40), tmp_path / "ix"
    chance, came = random.Random(kills), 0
    while came < kills:
        with builder(corpus, index) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            time.sleep(chance.uniform(0, 0.5))  # reading and building shards take about as long
            process.kill()
            came += "done" not in (rest := line + process.stdout.read())
        if "done" in rest:
            shutil.rmtree(index)
    with builder(corpus, index) as process:
        assert process.communicate(timeout=60)[0].endswith("done\n")
    build(corpus, tmp_path / "whole", DensePart(words_embedder(), Layout(shards=3)))
    assert list(vectors_of(index)) == list(vectors_of(tmp_path / "whole"))
    assert verify_index(index).problems == ()


def test_killed_builds_of_shards_end_like_whole_ones(tmp_path: Path) -> None:
    check_kills(tmp_path, 2)


@pytest.mark.slow
def test_builds_of_shards_killed_twenty_times_end_like_whole_ones(tmp_path: Path) -> None:
    check_kills(tmp_path, 20)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own are not ours
def test_a_killed_ray_worker_changes_nothing(tmp_path: Path) -> None:
    """Neither does the end of the builder, which the next one goes on from."""
    ray = pytest.importorskip("ray")
    from pyrag.retrieval.indexing.ray_workers import RayWorkers

    corpus = records(tmp_path / "corpus", files=12, each=40)
    layout = Layout(shards=3)
    build(corpus, tmp_path / "alone", DensePart(open_embedder("bundled"), layout))
    try:
        workers = RayWorkers("bundled", "local", 2)
        pids = ray.get([actor.pid.remote() for actor in workers.actors])
        assert len({*pids, os.getpid()}) == 3
        ticks: list[str] = []

        def interfere(progress: IndexProgress) -> None:
            ticks.append(progress.file)
            if len(ticks) == 4:
                os.kill(pids[0], signal.SIGKILL)
            if len(ticks) == 9:
                assert ray.get(workers.actors[0].pid.remote()) not in pids, "it was started again"
                raise KeyboardInterrupt

        part = DensePart(open_embedder("bundled"), layout, workers)
        with pytest.raises(KeyboardInterrupt):
            build(corpus, tmp_path / "ray", part, progress=interfere, checkpoint=0)
        seen = len(ticks)
        workers = RayWorkers("bundled", "local", 2)
        part = DensePart(open_embedder("bundled"), layout, workers)
        build(corpus, tmp_path / "ray", part, progress=lambda progress: ticks.append(progress.file))
        assert len(ticks) - seen < 12, "it went on from a checkpoint"
    finally:
        ray.shutdown()
    assert list(vectors_of(tmp_path / "ray")) == list(vectors_of(tmp_path / "alone"))
    assert verify_index(tmp_path / "ray").problems == ()
    assert found(tmp_path / "ray", "otter word7") == found(tmp_path / "alone", "otter word7")

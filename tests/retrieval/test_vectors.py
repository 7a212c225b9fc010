"""Vectors in a folder: what is found, and that adding, deleting, moving and kills change only what they should."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.dense import DenseRetriever
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.vectors import folder as vector_folder
from pyrag.retrieval.vectors.faiss_index import Layout, open_vectors, read_vector_info
from pyrag.retrieval.vectors.folder import MAX_SEGMENTS, VectorFolder
from pyrag.trace.model import Passage

from .clustered import D, vectors

PRINT = Fingerprint(model="org/tiny", dimension=D)


def ids(count: int, start: int = 0) -> list[str]:
    return [f"p{n}" for n in range(start, start + count)]


def filled(folder: Path, count: int = 100, **options: Any) -> VectorFolder:
    made = VectorFolder.create(folder, PRINT, **options)
    add(made, ids(count), vectors(count))
    return made


def filled_with(folder: Path, names: list[str], matrix: Any) -> VectorFolder:
    made = VectorFolder.create(folder, PRINT, type="Flat")
    add(made, names, matrix)
    return made


def add(folder: VectorFolder, names: list[str], matrix: Any, delete: tuple[str, ...] = ()) -> None:
    with folder.writer() as writer:
        writer.add(names, matrix)
        writer.commit(delete)


def nearest(matrix: Any, names: list[str], query: Any, topk: int) -> list[str]:
    order = np.argsort(-(matrix.astype(np.float16).astype(np.float32) @ query), kind="stable")
    return [names[row] for row in order[:topk]]


def found(folder: Path, query: Any, topk: int = 5) -> list[str]:
    return [name for name, _ in open_vectors(folder).search(query[None], topk)[0]]


def test_finds_what_an_exact_search_finds(tmp_path: Path) -> None:
    filled(tmp_path / "v")
    index, matrix = open_vectors(tmp_path / "v"), vectors(100)
    hits = index.search(vectors(7, seed=5), 10)
    for query, one in zip(vectors(7, seed=5), hits, strict=True):
        assert [name for name, _ in one] == nearest(matrix, ids(100), query, 10)
        assert [score for _, score in one] == sorted((score for _, score in one), reverse=True)
        assert one[0][1] == pytest.approx(float((matrix @ query).max()), abs=2e-3)
    assert len(index) == 100
    assert list(index.ids()) == ids(100)


def test_topk_at_the_edges(tmp_path: Path) -> None:
    filled(tmp_path / "v", 3)
    index = open_vectors(tmp_path / "v")
    query = vectors(1)
    assert [len(index.search(query, topk)[0]) for topk in (-1, 0, 1, 3, 50)] == [0, 0, 1, 3, 3]
    VectorFolder.create(tmp_path / "empty", PRINT)
    assert open_vectors(tmp_path / "empty").search(query, 5) == [[]]


def test_the_metric_l2_and_larger_is_still_better(tmp_path: Path) -> None:
    filled(tmp_path / "v", 50, metric="l2")
    query = vectors(50)[7] * 1.5
    (best, score), *_ = open_vectors(tmp_path / "v").search(query[None], 3)[0]
    assert best == "p7"
    assert score == pytest.approx(-0.25, abs=5e-3)


KINDS = ["Flat", "SQ8", "SQfp16", "HNSW16", "RaBitQfs,Refine(SQ8)", "IVF16,Flat", "IVF16,PQ8x4fs,RFlat"]


@pytest.mark.parametrize("kind", KINDS)
async def test_questions_in_company_find_what_each_finds_alone(tmp_path: Path, kind: str) -> None:
    filled(tmp_path / "v", 1000, type=kind, target=0.9)
    index = open_vectors(tmp_path / "v")
    queries = {f"q{at}": query for at, query in enumerate(vectors(70, seed=3))}
    retriever = DenseRetriever(index, _Ready(queries), lambda ids: [Passage(one, "", "") for one in ids])
    asked = [(key, 3 + number % 2) for number, key in enumerate(queries)]
    together = await asyncio.gather(*(retriever.retrieve(*one) for one in asked))
    assert [[(one.id, one.score) for one in passages] for passages in together] == [
        sorted(index.search(queries[key][None], topk)[0], key=lambda hit: (-hit[1], hit[0])) for key, topk in asked
    ]


class _Ready:
    """An `Embedder` of vectors that are there."""

    name = "ready"

    def __init__(self, vectors: dict[str, Any]) -> None:
        self._vectors = vectors

    async def fingerprint(self) -> Fingerprint:
        return PRINT

    async def embed_queries(self, texts: Sequence[str]) -> Any:
        return np.stack([self._vectors[text] for text in texts])

    embed_passages = embed_queries

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_survives_reload_move_and_deletion(tmp_path: Path, kind: str) -> None:
    folder = filled(tmp_path / "v", 1000, type=kind, target=0.9)
    (segment,) = folder.info.segments
    assert segment.type == kind
    assert segment.recall >= 0.9
    queries = vectors(20, seed=3)
    before = open_vectors(tmp_path / "v").search(queries, 10)
    assert open_vectors(tmp_path / "v").search(queries, 10) == before
    (tmp_path / "v").rename(tmp_path / "w")
    assert open_vectors(tmp_path / "w").search(queries, 10) == before
    gone = {name for name, _ in before[0][:8]}
    assert VectorFolder(tmp_path / "w").delete(gone) == 8
    after = open_vectors(tmp_path / "w").search(queries, 10)
    assert all(len(one) == 10 and not gone & {name for name, _ in one} for one in after)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["add", "delete", "compact"]), st.integers(0, 30), st.integers(1, 20))))
def test_any_history_ends_like_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    folder = VectorFolder.create(tmp_path_factory.mktemp("v"), PRINT)
    kept: dict[str, Any] = {}
    for turn, (what, start, count) in enumerate(steps):
        names = ids(count, start)
        if what == "add":
            matrix = vectors(count, seed=turn)
            add(folder, names, matrix)
            kept |= dict(zip(names, matrix, strict=True))
        elif what == "delete":
            assert folder.delete(names) == sum(kept.pop(name, None) is not None for name in names)
        else:
            folder.compact()
            assert len(folder.info.segments) == bool(kept)
    index = open_vectors(folder.folder)
    assert sorted(index.ids()) == sorted(kept)
    hits = index.search(vectors(1, seed=99), 10)[0]
    if kept:
        assert {name for name, _ in hits} == set(
            nearest(np.stack(list(kept.values())), list(kept), vectors(1, seed=99)[0], 10)
        )
    named = {segment.name for segment in folder.info.segments}
    assert {path.name.split(".")[0] for path in folder.folder.glob("seg-*")} == named


def test_one_commit_replaces_adds_and_deletes(tmp_path: Path) -> None:
    folder = filled(tmp_path / "v", 10)
    matrix = vectors(3, seed=8)
    add(folder, ["p1", "new", "new"], matrix, delete=("p2", "unknown"))
    index = open_vectors(tmp_path / "v")
    assert sorted(index.ids()) == sorted({*ids(10), "new"} - {"p2"})
    assert found(tmp_path / "v", matrix[0])[0] == "p1"
    assert found(tmp_path / "v", matrix[2])[0] == "new"


@pytest.mark.parametrize("name", ["", "a\nb", "a\\nb", "\\", "é 漢 \ud800", "x" * 5000])
def test_any_text_is_an_id(tmp_path: Path, name: str) -> None:
    folder = VectorFolder.create(tmp_path / "v", PRINT)
    with folder.writer() as writer:
        writer.add([name, "other"], vectors(2))
    with folder.writer() as writer:  # not committed before: read back from the list of a process that ended
        assert list(writer.pending) == [name, "other"]
        writer.commit()
    assert list(open_vectors(tmp_path / "v").ids()) == [name, "other"]
    assert folder.delete([name]) == 1


def test_a_snapshot_outlives_what_happens_to_the_folder(tmp_path: Path) -> None:
    folder = filled(tmp_path / "v", 50)
    index, queries = open_vectors(tmp_path / "v"), vectors(5, seed=2)
    before = index.search(queries, 10)
    folder.delete(ids(49))
    folder.compact()
    assert index.search(queries, 10) == before
    assert list(open_vectors(tmp_path / "v").ids()) == ["p49"]


def test_readers_in_threads_during_changes(tmp_path: Path) -> None:
    folder = filled(tmp_path / "v", 50)
    stop, failures, sizes = threading.Event(), [], set()

    def read() -> None:
        while not stop.is_set():
            try:
                index = open_vectors(tmp_path / "v")
                sizes.add(len(index))
                assert len(index.search(vectors(1), 5)[0]) == 5
            except Exception as error:
                failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(6):
        add(folder, ids(10, 100), vectors(10, seed=turn), delete=("p1",))
        folder.compact()
        folder.delete(ids(10, 100))
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert sizes <= {50, 59, 49}


CHILD = """
import sys, time
import numpy as np
from pyrag.retrieval.vectors.folder import VectorFolder
folder = VectorFolder(sys.argv[1])
with folder.writer() as writer:
    for turn in range(100):
        writer.add([f"k{turn}-{n}" for n in range(10)], np.full((10, 16), turn, np.float32))
        if turn == 20:
            print("added", flush=True)
            time.sleep(30)
"""


def test_a_killed_writer_leaves_what_it_added_for_the_next(tmp_path: Path) -> None:
    folder = filled(tmp_path / "v", 10)
    with subprocess.Popen([sys.executable, "-c", CHILD, folder.folder], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert len(open_vectors(tmp_path / "v")) == 10
    with (tmp_path / "v/pending.vec").open("ab") as file:
        file.write(b"half a vector")
    with (tmp_path / "v/pending.list").open("ab") as file:
        file.write(b"whole\nhalf")
    with folder.writer() as writer:
        assert list(writer.pending) == [f"k{turn}-{n}" for turn in range(21) for n in range(10)]
        writer.add(["last"], np.ones((1, D), np.float32))
        writer.commit()
    assert len(open_vectors(tmp_path / "v")) == 10 + 210 + 1


def test_what_was_added_can_be_thrown_away(tmp_path: Path) -> None:
    folder = filled(tmp_path / "v", 10)
    with folder.writer() as writer:
        writer.add(["x"], vectors(1))
        writer.discard()
    with folder.writer() as writer:
        assert not writer.pending
        writer.commit()
    assert len(open_vectors(tmp_path / "v")) == 10


def test_shards_hold_added_rows_and_follow_from_ids(tmp_path: Path) -> None:
    names, matrix = ids(3000), vectors(3000)
    folder = VectorFolder.create(tmp_path / "v", PRINT, type="SQ8", shards=4)
    for start in range(0, 3000, 1000):
        add(folder, names[start : start + 1000], matrix[start : start + 1000])
    folder.delete(names[:50])
    whole = filled_with(tmp_path / "w", names[50:], matrix[50:])
    assert folder.needs_compaction
    folder.compact()
    segments = folder.info.segments
    assert [one.deleted for one in segments] == [0] * 4
    assert all(600 < one.rows < 850 for one in segments)
    assert not folder.needs_compaction
    queries = vectors(20, seed=3)
    exact = VectorFolder(tmp_path / "v")
    exact.reshape(Layout(type="Flat", shards=3))
    exact.compact()
    assert open_vectors(tmp_path / "v").search(queries, 10) == open_vectors(whole.folder).search(queries, 10)


def test_building_shards_goes_on_after_the_last_that_was_kept(tmp_path: Path) -> None:
    folder = VectorFolder.create(tmp_path / "v", PRINT, shards=5)
    add(folder, ids(500), vectors(500))
    kept: list[int] = []

    def keep() -> None:
        kept.append(len(folder.info.unbuilt))
        if len(kept) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.compact(keep=keep)
    assert sorted(open_vectors(tmp_path / "v").ids()) == sorted(ids(500)), "whole at every step"
    built = {one.name for one in folder.info.segments if not one.deleted}
    folder.compact(keep=lambda: kept.append(len(folder.info.unbuilt)))
    assert kept == [4, 3, 2, 1, 0]
    assert built < {one.name for one in folder.info.segments}
    assert open_vectors(tmp_path / "v").search(vectors(3), 9) == open_vectors(
        filled(tmp_path / "w", 500).folder
    ).search(vectors(3), 9)


def test_compaction_is_asked_for(tmp_path: Path) -> None:
    folder = filled(tmp_path / "v", 20)
    assert not folder.needs_compaction
    folder.delete(ids(8))
    assert folder.needs_compaction
    folder.compact()
    for turn in range(MAX_SEGMENTS):
        add(folder, [f"n{turn}"], vectors(1, seed=turn))
    assert folder.needs_compaction


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "org/other"}, "the model org/tiny, not org/other"),
        ({"dimension": 8}, "the dimension 16, not 8"),
        ({"query_prefix": "query: "}, "the query prefix '', not 'query: '"),
        ({"pooling": "cls"}, "the pooling 'mean', not 'cls'"),
        ({"normalised": False}, "the normalised True, not False"),
    ],
)
def test_another_embedder_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    filled(tmp_path / "v", 3)
    index = open_vectors(tmp_path / "v")
    other = Fingerprint(**({"model": "org/tiny", "dimension": D} | change))
    with pytest.raises(ConfigError, match=says) as caught:
        index.check(other)
    assert "--embedder" in str(caught.value)
    with pytest.raises(ConfigError, match=says):
        VectorFolder.create(tmp_path / "v", other)
    index.check(Fingerprint(model="mirror/Tiny", dimension=D, max_tokens=99))


def test_wrong_shapes_are_refused(tmp_path: Path) -> None:
    with filled(tmp_path / "v", 3).writer() as writer, pytest.raises(ConfigError, match=r"\(2, 16\), not \(1, 16\)"):
        writer.add(["a", "b"], vectors(1))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_vectors_that_nothing_would_find_are_refused(value: float, tmp_path: Path) -> None:
    wrong = vectors(3)
    wrong[1, 0] = value
    with (
        filled(tmp_path / "v", 3).writer() as writer,
        pytest.raises(ConfigError, match="vector of passage 'y' has no finite numbers"),
    ):
        writer.add(["x", "y", "z"], wrong)


def test_a_list_of_live_rows_that_was_cut_is_named(tmp_path: Path) -> None:
    folder = filled(tmp_path / "v", 30)
    assert folder.delete([next(open_vectors(tmp_path / "v").ids())]) == 1
    live = next((tmp_path / "v").glob("*.live-*"))
    live.write_bytes(live.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"are damaged .*live-.* is of 29 rows, not 30"):
        open_vectors(tmp_path / "v")


@pytest.mark.parametrize("name", ["*.faiss", "*.ids", "*.off"])
def test_damage_is_named(tmp_path: Path, name: str) -> None:
    filled(tmp_path / "v", 30)
    next((tmp_path / "v").glob(name)).unlink()
    with pytest.raises(DataError, match=r"are damaged .*: build the index again"):
        open_vectors(tmp_path / "v")


def test_damage_of_the_description(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no vectors: build"):
        open_vectors(tmp_path)
    filled(tmp_path / "v", 3)
    path = tmp_path / "v/vectors.json"
    text = path.read_text()
    path.write_text(text.replace('"format": 1', '"format": 9'))
    with pytest.raises(DataError, match="has version 9"):
        read_vector_info(tmp_path / "v")
    for damaged in (text[:40].encode(), text.encode().replace(b"seg-", b"\xffeg-")):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot be read"):
            read_vector_info(tmp_path / "v")


def test_a_failing_build_leaves_the_index_and_what_was_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = filled(tmp_path / "v", 5)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with folder.writer() as writer:
        writer.add(["x"], vectors(1))
        with monkeypatch.context() as patch:
            patch.setattr(vector_folder, "_write_index", full)
            with pytest.raises(OSError, match="No space"):
                writer.commit()
    assert len(open_vectors(tmp_path / "v")) == 5
    with folder.writer() as writer:
        assert list(writer.pending) == ["x"]
        writer.commit()
    assert len(open_vectors(tmp_path / "v")) == 6


@pytest.mark.parametrize(("kind", "says"), [("Nonsense", "could not parse index string"), ("PQ5", "a multiple of")])
def test_an_impossible_type_is_one_sentence_before_vectors_are_made(tmp_path: Path, kind: str, says: str) -> None:
    sentence = rf"^FAISS has no type '{kind}' of 16 dimensions \([^/]*{says}[^/]*\): write --type auto, or "
    with pytest.raises(ConfigError, match=sentence):
        VectorFolder.create(tmp_path / "v", PRINT, type=kind)
    with pytest.raises(ConfigError, match=sentence):
        filled(tmp_path / "w", 3).reshape(Layout(type=kind))

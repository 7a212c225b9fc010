"""How hard an index is searched: what questions from outside of it find, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.vectors.calibration import blocks, trial_of, tune
from pyrag.retrieval.vectors.faiss_index import open_vectors
from pyrag.retrieval.vectors.files import copy_rows, map_vectors
from pyrag.retrieval.vectors.folder import VectorFolder
from pyrag.retrieval.vectors.index_types import build

D = 64
KINDS = ["HNSW8", "HNSW8_SQ8", "IVF128,SQ8", "RaBitQfs,Refine(SQ8)", "PQ8x4fs,Refine(SQ8)", "IVF64_HNSW8,PQ8x4fs,RFlat"]


def vectors(count: int, seed: int) -> Any:
    """Of length 1 on a curved surface of eight dimensions, on which neighbours are as near as those of embeddings."""
    surface, random = np.random.default_rng(7), np.random.default_rng(seed)
    weights, phases = 0.5 * surface.standard_normal((8, D)), surface.uniform(0, 2 * np.pi, D)
    made = np.cos(random.standard_normal((count, 8)) @ weights + phases)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def questions(count: int) -> Any:
    """No passages of the index, and not quite where passages lie."""
    made = vectors(count, seed=5) + 0.3 * vectors(count, seed=6)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def recall(folder: Path, matrix: Any, queries: Any) -> float:
    kept = matrix.astype(np.float16).astype(np.float32)
    truth = np.argsort(-(queries @ kept.T), axis=1)[:, :10]
    hits: Sequence[Any] = open_vectors(folder).search(queries, 10)
    return (
        float(
            np.mean(
                [
                    len({int(one) for one, _ in some} & set(rows))
                    for some, rows in zip(hits, truth.tolist(), strict=True)
                ]
            )
        )
        / 10
    )


@pytest.mark.parametrize("target", [0.9, 0.97])
@pytest.mark.parametrize("kind", KINDS)
def test_the_target_holds_for_questions_from_outside(tmp_path: Path, kind: str, target: float) -> None:
    matrix = vectors(6000, seed=0)
    folder = VectorFolder.create(tmp_path / "v", Fingerprint(model="m", dimension=D), type=kind, target=target)
    with folder.writer() as writer:
        writer.add([str(row) for row in range(len(matrix))], matrix)
        (segment,) = writer.commit().segments
    assert segment.recall >= target
    assert recall(tmp_path / "v", matrix, questions(400)) >= target


def test_what_cannot_be_reached_is_written_down_as_it_is() -> None:
    built = build(vectors(3000, seed=0), "ip", "PQ4x4", target=0.95)
    assert built.recall < 0.8


@pytest.mark.parametrize("kind", ["HNSW8", "IVF16,Flat", "SQ8", "RaBitQfs,Refine(SQ8)"])
def test_every_vector_is_found_in_its_row(kind: str) -> None:
    matrix = vectors(3000, seed=0)
    index = build(matrix, "ip", kind, target=0.99).index
    assert index.ntotal == 3000
    _, rows = index.search(matrix, 1)
    assert np.mean(rows[:, 0] == np.arange(3000)) > 0.99
    assert set(trial_of(matrix, "ip").held.tolist()) <= set(rows[:, 0].tolist())


@pytest.mark.parametrize("metric", ["ip", "l2"])
def test_truth_is_what_is_nearest_of_the_rest(metric: Any) -> None:
    matrix = vectors(500, seed=0)
    trial = trial_of(matrix, metric)
    assert len(trial.held) == 50
    near = trial.queries @ matrix.T if metric == "ip" else -((trial.queries[:, None] - matrix) ** 2).sum(2)
    near[:, trial.held] = -np.inf
    assert trial.truth == [set(rows) for rows in np.argsort(-near, axis=1)[:, :10].tolist()]
    assert np.allclose(np.linalg.norm(trial.queries, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("count", [2, 3, 9, 15])
def test_few_or_equal_vectors_are_no_trouble(count: int) -> None:
    for matrix in (vectors(count, seed=0), np.ones((count, D), np.float16), np.zeros((count, D), np.float32)):
        built = build(matrix, "ip", "HNSW8")
        assert built.index.ntotal == count
        assert 0 <= built.recall <= 1


def test_a_trial_of_few_queries_needs_more_than_the_target() -> None:
    """So that luck with the sample does not count as recall."""
    import faiss

    matrix = vectors(2000, seed=0)
    trial = trial_of(matrix, "ip")
    index = faiss.IndexIDMap(faiss.index_factory(D, "HNSW8", faiss.METRIC_INNER_PRODUCT))
    for rows, block in blocks(matrix, trial.held):
        index.add_with_ids(block, rows)
    reached = tune(index, trial, 0.9)
    assert reached.enough
    assert reached.recall > 0.9
    assert not tune(index, trial, 1.01).enough


@settings(max_examples=30)
@given(count=st.integers(0, 50), without=st.sets(st.integers(0, 49)), size=st.integers(1, 60))
def test_blocks_are_all_rows_but_some(count: int, without: set[int], size: int) -> None:
    matrix = np.arange(2 * count, dtype=np.float16).reshape(count, 2)
    gone = np.array(sorted(one for one in without if one < count), int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyrag.retrieval.vectors.calibration._BLOCK", size)
        made = list(blocks(matrix, gone))
    assert [row for rows, _ in made for row in rows.tolist()] == [row for row in range(count) if row not in without]
    assert all((block == matrix[rows]).all() and block.dtype == np.float32 for rows, block in made)


def test_only_taken_rows_of_a_mapped_file_stay_in_memory(tmp_path: Path) -> None:
    matrix = vectors(60_000, seed=1).astype(np.float16)
    matrix.tofile(tmp_path / "x.vec")
    opened = map_vectors(tmp_path / "x.vec", *matrix.shape)
    assert np.isfinite(opened).all()
    read = mapped_kilobytes(tmp_path / "x.vec")
    assert (copy_rows(opened, [5, 7]) == matrix[[5, 7]]).all()
    assert mapped_kilobytes(tmp_path / "x.vec") < 0.1 * read


def mapped_kilobytes(path: Path) -> int:
    """Of a file's pages, what counts as memory of this process."""
    _, _, after = Path("/proc/self/smaps").read_text().partition(str(path))
    return int(after.partition("Rss:")[2].split()[0])

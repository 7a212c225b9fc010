"""Which FAISS types are built for how many vectors, and how hard they search."""

from __future__ import annotations

import pytest

from pyrag.retrieval.vectors.index_types import build, candidates

from .clustered import vectors


def test_types_follow_the_size() -> None:
    assert candidates(1_000, 0.95) == ["Flat"]
    assert candidates(50_000, 0.95)[0] == "SQ8"
    assert candidates(1_000_000, 0.95)[0] == "RaBitQfs,Refine(SQ8)"
    assert candidates(21_000_000, 0.95)[0] == "IVF32768_HNSW32,RaBitQfs,Refine(SQ8)"
    assert candidates(21_000_000, 1.0) == ["Flat"]


def test_auto_goes_on_until_the_target_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.retrieval.vectors.index_types.FLAT", 100)
    monkeypatch.setattr("pyrag.retrieval.vectors.index_types.SCALAR", 2000)
    assert build(vectors(1000), "ip", target=0.9).type == "SQ8"
    assert build(vectors(1000), "ip", target=0.9999).type in ("SQfp16", "Flat")


def test_search_is_only_as_hard_as_the_target_asks() -> None:
    low = build(vectors(2000), "ip", "IVF64,Flat", target=0.5)
    high = build(vectors(2000), "ip", "IVF64,Flat", target=0.999)
    assert int(low.search.partition("=")[2]) < int(high.search.partition("=")[2])
    assert high.recall >= 0.999


@pytest.mark.parametrize("wanted", ["IVF1024,Flat", "PQ8x8", "HNSW8_PQ8", "PQ8x10", "IVF16,PQ8x12", "PQ8x4fs"])
def test_too_few_to_train_on_are_kept_another_way(wanted: str) -> None:
    assert build(vectors(10), "ip", wanted).type == "Flat"
    if "x1" in wanted:  # codes of more than 8 bits
        assert build(vectors(300), "ip", wanted).type == "Flat"


def test_what_auto_builds_of_millions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("FLAT", 100), ("SCALAR", 200), ("SCAN", 1000)):
        monkeypatch.setattr(f"pyrag.retrieval.vectors.index_types.{name}", most)
    built = build(vectors(5000), "ip", target=0.9)
    assert built.type == "IVF512_HNSW32,RaBitQfs,Refine(SQ8)"
    assert built.recall >= 0.9
    assert "nprobe=" in built.search
    assert "k_factor_rf=" in built.search

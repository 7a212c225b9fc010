"""Measure the cost of filters: searches that pass a share of the passages, as a ratio to searches without a filter.

    python -m benchmarks.filters [--count 100000] [--distinct 1000] [--queries 50]

Passages are random words of a Zipf-like vocabulary with random vectors of 384 numbers; each has a random `share` in [0,
1), rounded to so many distinct values, so that `share < 0.01` passes one in a hundred. The figures are medians of
single queries, one at a time. The first query with each filter is reported separately, because it matches the filter
against all distinct metadata.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pyrag.retrieval.bm25 import Bm25Index, index_of
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.vectors.faiss_index import VectorIndex, open_vectors
from pyrag.retrieval.vectors.folder import VectorFolder
from pyrag.trace.model import Passage

DIMENSION = 384
SHARES = (0.001, 0.01, 0.1, 0.5)
TOPK = 10
_VOCABULARY = 20_000
_WORDS = 60  # of a passage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="passages")
    parser.add_argument("--distinct", type=int, default=1000, help="distinct values of the field")
    parser.add_argument("--queries", type=int, default=50)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    words = (random.zipf(1.2, (options.count, _WORDS)) - 1) % _VOCABULARY
    shares = random.integers(options.distinct, size=options.count) / options.distinct
    bm25 = index_of(
        Passage(f"p{row}", "", " ".join(f"w{word}" for word in words[row]), metadata={"share": float(shares[row])})
        for row in range(options.count)
    )
    queries = [
        " ".join(f"w{word}" for word in words[row][:6]) for row in random.integers(options.count, size=options.queries)
    ]
    vectors = random.normal(size=(options.count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    print(f"{options.count} passages, {options.distinct} distinct metadata, top {TOPK}, {options.queries} queries\n")
    print("| part | share that passes | first query, ms | median, ms | ratio to no filter |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        index = _vector_index(Path(folder), vectors)
        _measure("BM25", _bm25_search(bm25), queries)
        _measure(
            f"vectors ({index.info.segments[0].type})", _vector_search(index, bm25), list(vectors[: options.queries])
        )


def _vector_index(folder: Path, vectors: Any) -> VectorIndex:
    writing = VectorFolder.create(folder / "v", Fingerprint(model="random", dimension=DIMENSION))
    with writing.writer() as writer:
        writer.add([f"p{row}" for row in range(len(vectors))], vectors)
        writer.commit()
    return open_vectors(folder / "v")


def _bm25_search(index: Bm25Index) -> Callable[[Any, str | None], object]:
    return lambda query, where: index.search(query, TOPK, None if where is None else parsed(where))


def _vector_search(index: VectorIndex, bm25: Bm25Index) -> Callable[[Any, str | None], object]:
    def search(query: Any, where: str | None) -> object:
        return index.search(query[None], TOPK, None if where is None else bm25.selector.selected(parsed(where)))

    return search


def _measure(part: str, search: Callable[[Any, str | None], object], queries: list[Any]) -> None:
    plain = 0.0
    for share in (None, *SHARES):
        where = None if share is None else f"share < {share}"
        first, *others = [_milliseconds(search, query, where) for query in (queries[0], *queries)]
        median = statistics.median(others)
        plain = plain or median
        shown = "no filter" if share is None else f"{100 * share:g} %"
        print(f"| {part} | {shown} | {first:.2f} | {median:.3f} | {median / plain:.2f} |", flush=True)


def _milliseconds(search: Callable[[Any, str | None], object], query: Any, where: str | None) -> float:
    began = time.perf_counter()
    search(query, where)
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()

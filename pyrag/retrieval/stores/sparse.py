"""BM25 as sparse vectors, for engines that store sparse and dense vectors. The hash of a term is its dimension.

The inner product of a query's and a passage's vector is BM25's score if the engine weighs each dimension by its inverse
document frequency. The average length of passages is assumed to be `USUAL`, so that adding passages does not affect
other passages. Two terms with the same hash (one pair in 65,000 terms) count as one term.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from functools import cache

from pyrag.retrieval.words.analysis import Analysis

K1 = 1.2
B = 0.75
USUAL = 100  # terms

Sparse = dict[int, float]


def passage_terms(title: str, text: str) -> Sparse:
    """Return the sparse vector of a passage.

    Args:
        title: Title of the passage.
        text: Text of the passage.
    """
    terms = _analysis().passage_terms(f"{title}\n{text}")
    scale = K1 * (1 - B + B * len(terms) / USUAL)
    return _summed((term, count * (K1 + 1) / (count + scale)) for term, count in Counter(terms).items())


def query_terms(query: str) -> Sparse:
    return _summed((term, 1.0) for term in _analysis().query_terms(query))


@cache
def _analysis() -> Analysis:
    return Analysis()


def _summed(weights: Iterable[tuple[str, float]]) -> Sparse:
    sparse: Sparse = {}
    for term, weight in weights:
        key = zlib.crc32(term.encode("utf-8", "surrogatepass"))
        sparse[key] = sparse.get(key, 0.0) + weight
    return sparse

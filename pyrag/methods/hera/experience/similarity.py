"""Similarity of two insights: by the word stems they share, common words left out. No model, equal on every machine."""

from __future__ import annotations

import math
from functools import lru_cache

from pyrag.retrieval.analysis import Analysis


def similarity(a: str, b: str) -> float:
    """Return the cosine of two texts' sets of stems, from 0 (none shared) to 1 (all).

    Args:
        a: A text.
        b: Another; the order does not matter.
    """
    return overlap(stems(a), stems(b))


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the cosine of two sets, in [0, 1]; 0 where one is empty.

    Args:
        a: Stems of a text, see `stems`.
        b: Stems of another.
    """
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


@lru_cache(maxsize=8192)
def stems(text: str) -> frozenset[str]:
    return frozenset(_analysis().query_terms(text))


@lru_cache(maxsize=1)
def _analysis() -> Analysis:
    return Analysis()

"""Exact search among selected rows of vectors, as they are kept beside the index: for filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrag.retrieval.vectors.files import taken

if TYPE_CHECKING:
    from pyrag.retrieval.vectors.calibration import Metric

_BLOCK = 16_384  # rows


def nearest_rows(vectors: Any, rows: Any, query: Any, topk: int, metric: Metric) -> list[tuple[int, float]]:
    """Return the rows nearest to a query, with all that tie with the last of them, in no order.

    Args:
        vectors: float16 [all rows, d], may be memory-mapped.
        rows: Numbers of the rows to compare.
        query: float32 [d].
        topk: Number of rows wanted.
        metric: `ip` or `l2`.
    """
    import numpy as np

    parts = [_scores(taken(vectors, rows[at : at + _BLOCK]), query, metric) for at in range(0, len(rows), _BLOCK)]
    scores = np.concatenate(parts)
    if len(scores) > topk:
        best = np.flatnonzero(scores >= np.partition(scores, len(scores) - topk)[len(scores) - topk])
        rows, scores = rows[best], scores[best]
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def is_member(some: Any, rows: Any) -> Any:
    """Return for each of some row numbers if it is among others.

    Args:
        some: Row numbers; -1 stands for none.
        rows: Row numbers, ascending and at least one.
    """
    import numpy as np

    places = np.minimum(rows.searchsorted(some), len(rows) - 1)
    return (rows[places] == some) & (some >= 0)


def _scores(block: Any, query: Any, metric: Metric) -> Any:
    return block @ query if metric == "ip" else -((block - query) ** 2).sum(axis=1)

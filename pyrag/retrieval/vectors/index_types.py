"""Selection of a FAISS index type by the number of vectors.

Types are FAISS factory strings. `auto` uses the first type in a list, which depends on the number of vectors, that
reaches the target recall on a sample of the corpus. `calibration` finds the search parameters, which are stored with
the index, as is the measured recall.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrag.errors import ConfigError
from pyrag.retrieval.vectors.calibration import Metric, Trial, blocks, trial_of, tune
from pyrag.retrieval.vectors.files import copy_rows

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

AUTO = "auto"
RECALL = 0.95  # of the ten nearest, on average
EXACT = "Flat"
FLAT = 20_000  # vectors up to which an exact search takes a millisecond or two
SCALAR = 60_000
SCAN = 3_000_000  # vectors up to which a pass over RaBitQ's codes is better than lists, with their loss and training
_TRAINING = 100_000  # vectors; more only take longer
_MAX_BITS = 24  # FAISS's maximum per code
_LISTS_TRAINING = 40  # vectors per list


@dataclass(frozen=True, slots=True)
class TunedIndex:
    """Index in memory, with its search parameters and their recall on the sample."""

    index: Any
    type: str
    search: str = ""
    recall: float = 1.0


def candidates(count: int, target: float) -> list[str]:
    """Return the index types to try, cheapest search first, and an exact or nearly exact type last.

    Args:
        count: Number of vectors.
        target: Recall to reach.
    """
    if count <= FLAT or target >= 1:
        return [EXACT]
    if count <= SCALAR:
        return ["SQ8", "SQfp16", EXACT]
    scan = ["RaBitQfs,Refine(SQ8)", "SQ8", "SQfp16"]
    if count <= SCAN:
        return scan
    lists = 1 << (int(4 * count**0.5) - 1).bit_length()
    return [f"IVF{lists}_HNSW32,RaBitQfs,Refine(SQ8)", *scan]


def build(vectors: Any, metric: Metric, index_type: str = AUTO, target: float = RECALL) -> TunedIndex:
    """Build an index in memory.

    If there are fewer vectors than the type needs for training, as in an update, a type that suits their number is
    used.

    Args:
        vectors: Array [rows, d], which may be memory-mapped and have another float type.
        metric: Metric of the index: `ip` or `l2`.
        index_type: FAISS factory string or `auto`.
        target: Recall to reach.

    Raises:
        ConfigError: FAISS cannot build the type.
    """
    fitting = index_type == AUTO or len(vectors) < _fewest(index_type)
    types = candidates(len(vectors), target) if fitting else [index_type]
    if types == [EXACT] or len(vectors) < 2:
        return TunedIndex(_filled(types[0], vectors, metric), types[0])
    trial = trial_of(vectors, metric)
    for name in types:
        built, enough = _tuned(name, vectors, metric, trial, target)
        if enough:
            break
    return built


def _fewest(factory: str) -> int:
    """Return the number of vectors needed for training: one per list, and per code of a product quantiser.

    A code has 8 bits by default.
    """
    lists = [int(count) for count in re.findall(r"IVF(\d+)", factory)]
    bits = [int(count or 8) for count in re.findall(r"PQ\d+(?:x(\d+))?", factory)]
    return max([*lists, *(1 << min(count, _MAX_BITS) for count in bits)], default=0)


def _tuned(factory: str, vectors: Any, metric: Metric, trial: Trial, target: float) -> tuple[TunedIndex, bool]:
    """Build and tune an index of a type. Held-out rows are added last, so the index stores row numbers."""
    import faiss

    held_vectors = copy_rows(vectors, trial.held)
    index = faiss.IndexIDMap(_trained(factory, vectors, metric))
    for rows, block in blocks(vectors, trial.held):
        index.add_with_ids(block, rows)
    calibration = tune(index, trial, target)
    index.add_with_ids(held_vectors, trial.held)
    return TunedIndex(index, factory, calibration.search, calibration.recall), calibration.enough


def _filled(factory: str, vectors: Any, metric: Metric) -> Any:
    index = _trained(factory, vectors, metric)
    for _, block in blocks(vectors, []):
        index.add(block)
    return index


def _trained(factory: str, vectors: Any, metric: Metric) -> Any:
    index = _empty(factory, vectors.shape[1], metric)
    try:
        if not index.is_trained:
            index.train(_sample(vectors, max(_TRAINING, _LISTS_TRAINING * _lists(index))))
    except RuntimeError as error:
        count = len(vectors)
        raise ConfigError(f"no {factory!r} index can be built over {count} vectors ({_reason(error)})") from None
    _reserve(index, len(vectors))
    return index


def check_type(index_type: str, dimension: int, metric: Metric) -> None:
    """Raise `ConfigError` for an unknown type, before hours are spent on embedding.

    Args:
        index_type: FAISS factory string or `auto`.
        dimension: Length of vectors.
        metric: Metric of the index: `ip` or `l2`.
    """
    if index_type != AUTO:
        _empty(index_type, dimension, metric)


def _empty(factory: str, dimension: int, metric: Metric) -> Any:
    import faiss

    try:
        return faiss.index_factory(
            dimension, factory, faiss.METRIC_INNER_PRODUCT if metric == "ip" else faiss.METRIC_L2
        )
    except RuntimeError as error:
        raise ConfigError(
            f"FAISS has no type {factory!r} of {dimension} dimensions ({_reason(error)}): write --type {AUTO}, or a "
            "string of its index_factory such as HNSW16 or IVF4096,SQ8"
        ) from None


def _reserve(index: Any, count: int) -> None:
    """Reserve memory for all codes, since a growing array temporarily needs twice as much."""
    import faiss

    core = faiss.downcast_index(index)
    storage = faiss.downcast_index(core.storage) if isinstance(core, faiss.IndexHNSW) else core
    if isinstance(storage, faiss.IndexFlatCodes):
        storage.codes.resize(count * storage.code_size)
        storage.codes.resize(0)


def _reason(error: RuntimeError) -> str:
    """Return FAISS's message without the position in its source code."""
    return re.split(r"Error: |\.(?:cpp|h):\d+: ", str(error))[-1].partition("\n")[0]


def _lists(index: Any) -> int:
    import faiss

    lists_index = faiss.try_extract_index_ivf(index)
    return 0 if lists_index is None else int(lists_index.nlist)


def _sample(vectors: Any, count: int) -> Matrix:
    """Return a uniform sample of rows, which is the same for the same input."""
    import numpy as np

    if len(vectors) <= count:
        return np.asarray(vectors, np.float32)
    return copy_rows(vectors, np.sort(np.random.default_rng(0).choice(len(vectors), count, replace=False)))

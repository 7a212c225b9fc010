"""Choice of a FAISS index by the number of vectors.

Types are FAISS factory strings. `auto` takes the first of a list, by size, that reaches the recall asked for on a
sample of the corpus itself; how hard it has to be searched for that, `calibration` finds out, and it is written down
with the index together with the recall that was measured. Measured on 200,000 x 384 vectors: SQ8 10 ms a query, RaBitQ
with refinement 1.3 ms, recall 0.99 and 0.987, built in a second; HNSW takes 80 s to build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrag.errors import ConfigError
from pyrag.retrieval.vectors.calibration import Metric, Trial, blocks, trial_of, tune
from pyrag.retrieval.vectors.files import taken

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

AUTO = "auto"
RECALL = 0.95  # of the ten nearest, on average
EXACT = "Flat"
FLAT = 20_000  # up to here an exact search takes a millisecond or two
SCALAR = 60_000
SCAN = 3_000_000  # up to here one pass over RaBitQ's codes beats the loss and the training that lists cost
_TRAINING = 100_000  # vectors; more changes nothing but the time
_MAX_BITS = 24  # of a code; FAISS takes no more
_LISTS_TRAINING = 40  # vectors for each list


@dataclass(frozen=True, slots=True)
class TunedIndex:
    """An index in memory; `recall` is what its sample got with the `search` parameters."""

    index: Any
    type: str
    search: str = ""
    recall: float = 1.0


def candidates(count: int, target: float) -> list[str]:
    """Return index types worth trying, cheapest search first, an exact one last.

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


def build(vectors: Any, metric: Metric, wanted: str = AUTO, target: float = RECALL) -> TunedIndex:
    """Build an index in memory.

    Fewer vectors than the type needs for training, as an update may add, get a type that fits their number.

    Args:
        vectors: Array [rows, d], may be memory-mapped and of another float type.
        metric: `ip` or `l2`.
        wanted: FAISS factory string or `auto`.
        target: Recall to reach.

    Raises:
        ConfigError: FAISS cannot build the type.
    """
    fitting = wanted == AUTO or len(vectors) < _fewest(wanted)
    types = candidates(len(vectors), target) if fitting else [wanted]
    if types == [EXACT] or len(vectors) < 2:
        return TunedIndex(_filled(types[0], vectors, metric), types[0])
    trial = trial_of(vectors, metric)
    for one in types:
        built, enough = _tuned(one, vectors, metric, trial, target)
        if enough:
            break
    return built


def _fewest(factory: str) -> int:
    """Return the vectors needed for training: one for each list, and for each code of a product quantiser (8 bits by
    default)."""
    lists = [int(one) for one in re.findall(r"IVF(\d+)", factory)]
    bits = [int(one or 8) for one in re.findall(r"PQ\d+(?:x(\d+))?", factory)]
    return max([*lists, *(1 << min(one, _MAX_BITS) for one in bits)], default=0)


def _tuned(factory: str, vectors: Any, metric: Metric, trial: Trial, target: float) -> tuple[TunedIndex, bool]:
    """Build and tune one type; held-out rows are added last, so the index stores row numbers."""
    import faiss

    held = taken(vectors, trial.held)
    index = faiss.IndexIDMap(_trained(factory, vectors, metric))
    for rows, block in blocks(vectors, trial.held):
        index.add_with_ids(block, rows)
    tuned = tune(index, trial, target)
    index.add_with_ids(held, trial.held)
    return TunedIndex(index, factory, tuned.search, tuned.recall), tuned.enough


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


def check_type(wanted: str, dimension: int, metric: Metric) -> None:
    """Raise `ConfigError` for an unknown type, before hours are spent on its vectors.

    Args:
        wanted: FAISS factory string or `auto`.
        dimension: Length of vectors.
        metric: `ip` or `l2`.
    """
    if wanted != AUTO:
        _empty(wanted, dimension, metric)


def _empty(factory: str, dimension: int, metric: Metric) -> Any:
    import faiss

    try:
        return faiss.index_factory(
            dimension, factory, faiss.METRIC_INNER_PRODUCT if metric == "ip" else faiss.METRIC_L2
        )
    except RuntimeError as error:
        raise ConfigError(
            f"FAISS knows no type {factory!r} of {dimension} dimensions ({_reason(error)}): write --type {AUTO}, or a "
            "string of its index_factory such as HNSW16 or IVF4096,SQ8"
        ) from None


def _reserve(index: Any, count: int) -> None:
    """Reserve room for all codes: a growing vector holds them twice at times."""
    import faiss

    core = faiss.downcast_index(index)
    storage = faiss.downcast_index(core.storage) if isinstance(core, faiss.IndexHNSW) else core
    if isinstance(storage, faiss.IndexFlatCodes):
        storage.codes.resize(count * storage.code_size)
        storage.codes.resize(0)


def _reason(error: RuntimeError) -> str:
    """Return FAISS's message without the place in its source."""
    return re.split(r"Error: |\.(?:cpp|h):\d+: ", str(error))[-1].partition("\n")[0]


def _lists(index: Any) -> int:
    import faiss

    found = faiss.try_extract_index_ivf(index)
    return 0 if found is None else int(found.nlist)


def _sample(vectors: Any, count: int) -> Matrix:
    """Return evenly drawn rows, the same for the same input."""
    import numpy as np

    if len(vectors) <= count:
        return np.asarray(vectors, np.float32)
    return taken(vectors, np.sort(np.random.default_rng(0).choice(len(vectors), count, replace=False)))

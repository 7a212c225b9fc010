"""Which FAISS index for how many vectors, and how hard it has to search to find what an exact search finds.

Types are FAISS factory strings. `auto` takes the first of a list, by size, that reaches the recall asked for on a
sample of the corpus itself (its vectors as queries, each without itself, against exact search; k = 10). The search
parameters (nprobe, efSearch, k_factor_rf) are raised in steps until it does, and written down with the index together
with the recall that was measured. Measured on 200,000 x 384 vectors: SQ8 10 ms a query, RaBitQ with refinement 1.3 ms,
recall 0.99 and 0.987, built in a second; HNSW takes 80 s to build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyrag.errors import ConfigError

if TYPE_CHECKING:
    from pyrag.retrieval.embedding import Matrix

Metric = Literal["ip", "l2"]

AUTO = "auto"
RECALL = 0.95  # of the ten nearest, on average
FLAT = 20_000  # up to here an exact search takes a millisecond or two
SCALAR = 60_000
SCAN = 3_000_000  # up to here one pass over RaBitQ's codes beats the loss and the training that lists cost
_TRAINING = 100_000  # vectors; more changes nothing but the time
_LISTS_TRAINING = 40  # vectors for each list
_QUERIES = 128  # of the sample that recall is measured on
_BLOCK = 65_536  # vectors in memory at once
_STEPS = (
    ("k_factor_rf", (2, 4, 8, 16, 32, 64)),
    ("nprobe", (4, 8, 16, 32, 64, 128, 256, 512)),
    ("efSearch", (32, 64, 128, 256, 512)),
)


@dataclass(frozen=True, slots=True)
class Built:
    """An index in memory; `recall` is what its sample got with the `search` parameters."""

    index: Any
    type: str
    search: str
    recall: float


def candidates(count: int, target: float) -> list[str]:
    """Types worth trying for so many vectors, cheapest search first, an exact one last."""
    if count <= FLAT or target >= 1:
        return ["Flat"]
    if count <= SCALAR:
        return ["SQ8", "SQfp16", "Flat"]
    scan = ["RaBitQfs,Refine(SQ8)", "SQ8", "SQfp16"]
    if count <= SCAN:
        return scan
    lists = 1 << (int(4 * count**0.5) - 1).bit_length()
    return [f"IVF{lists}_HNSW32,RaBitQfs,Refine(SQ8)", *scan]


def build(vectors: Any, metric: Metric, wanted: str = AUTO, target: float = RECALL) -> Built:
    """`vectors` may be memory-mapped and of another float type: blocks of it are copied. Raises `ConfigError`.

    Fewer vectors than the type can be trained on, as an update may add, get one that fits their number.
    """
    fitting = wanted == AUTO or len(vectors) < _fewest(wanted)
    types = candidates(len(vectors), target) if fitting else [wanted]
    for one in types:
        built = _calibrated(_filled(one, vectors, metric), one, vectors, metric, target)
        if built.recall >= target:
            break
    return built


def _fewest(factory: str) -> int:
    """Vectors to train on: one for each list, and for each code of a product quantiser."""
    lists = re.search(r"IVF(\d+)", factory)
    return max(int(lists[1]) if lists else 0, 256 if "PQ" in factory else 0)


def _filled(factory: str, vectors: Any, metric: Metric) -> Any:
    import faiss

    kind = faiss.METRIC_INNER_PRODUCT if metric == "ip" else faiss.METRIC_L2
    try:
        index = faiss.index_factory(vectors.shape[1], factory, kind)
        if not index.is_trained:
            index.train(sample(vectors, max(_TRAINING, _LISTS_TRAINING * _lists(index))))
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2].partition("\n")[0]
        raise ConfigError(
            f"no {factory!r} index can be built over {len(vectors)} vectors ({reason}): use {AUTO}"
        ) from None
    for block in blocks(vectors):
        index.add(block)
    return index


def _lists(index: Any) -> int:
    import faiss

    found = faiss.try_extract_index_ivf(index)
    return 0 if found is None else int(found.nlist)


def sample(vectors: Any, count: int) -> Matrix:
    """Evenly drawn rows, the same for the same input."""
    import numpy as np

    if len(vectors) <= count:
        return np.asarray(vectors, np.float32)
    rows = np.sort(np.random.default_rng(0).choice(len(vectors), count, replace=False))
    return np.asarray(vectors[rows], np.float32)


def blocks(vectors: Any) -> Iterator[Matrix]:
    import numpy as np

    for start in range(0, len(vectors), _BLOCK):
        yield np.ascontiguousarray(vectors[start : start + _BLOCK], np.float32)


def _calibrated(index: Any, factory: str, vectors: Any, metric: Metric, target: float) -> Built:
    if factory == "Flat" or len(vectors) < 2:
        return Built(index, factory, "", 1.0)
    queries = sample(vectors, _QUERIES)
    depth = min(10, len(vectors) - 1)
    # A query is one of the vectors and finds itself, or an equal one, first.
    truth = [set(rows[1:].tolist()) for rows in _exact(queries, vectors, metric, depth + 1)]
    search, recall = "", -1.0
    for tried in settings(index):
        set_search(index, tried)
        measured = _recall(index, queries, truth, depth)
        if measured > recall:
            search, recall = tried, measured
        if recall >= target:
            break
    set_search(index, search)
    return Built(index, factory, search, round(recall, 4))


def settings(index: Any) -> Iterator[str]:
    """Search parameters in rising order of cost; one empty string where an index has none."""
    steps = [(name, values) for name, values in _STEPS if _takes(index, name)]
    if not steps:
        yield ""
        return
    for turn in range(max(len(values) for _, values in steps)):
        yield ",".join(f"{name}={values[min(turn, len(values) - 1)]}" for name, values in steps)


def _takes(index: Any, name: str) -> bool:
    import faiss

    core = faiss.downcast_index(index)
    if isinstance(core, faiss.IndexPreTransform):
        return _takes(core.index, name)
    if isinstance(core, faiss.IndexRefine):
        return name == "k_factor_rf" or _takes(core.base_index, name)
    if name == "nprobe":
        return isinstance(core, faiss.IndexIVF)
    return name == "efSearch" and isinstance(core, faiss.IndexHNSW)


def set_search(index: Any, search: str) -> None:
    import faiss

    if search:
        space: Any = faiss.ParameterSpace()  # its stub knows only one of the overloads
        space.set_index_parameters(index, search)


def _exact(queries: Matrix, vectors: Any, metric: Metric, topk: int) -> Any:
    """Rows of the exact neighbours over blocks, so that no second copy of the corpus is made."""
    import faiss

    kind = faiss.METRIC_INNER_PRODUCT if metric == "ip" else faiss.METRIC_L2
    merged = faiss.ResultHeap(len(queries), topk, keep_max=metric == "ip")
    start = 0
    for block in blocks(vectors):
        found, rows = faiss.knn(queries, block, min(topk, len(block)), metric=kind)
        merged.add_result(found, rows + start)
        start += len(block)
    merged.finalize()
    return merged.I


def _recall(index: Any, queries: Matrix, truth: list[set[int]], depth: int) -> float:
    _, rows = index.search(queries, depth + 1)
    hits = [len(set(found.tolist()) & wanted) for found, wanted in zip(rows, truth, strict=True)]
    return sum(hits) / (depth * len(hits))

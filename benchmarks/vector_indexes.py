"""Benchmark of the types of vector indexes: `python -m benchmarks.retrieval indexes`.

The vectors are synthetic and distributed like MiniLM's (see `embeddings`). Each type is measured in a separate process:
recall@10 compared with exact search, queries per second in sequence, CPU time of one thread through `VectorIndex` and
of FAISS with the same index file, 32 questions at once (below), build time, peak memory, size on disk, and the first
query of a new process, including imports, with the index outside the file cache. `edge` is Qdrant's embedded engine.
Figures only hold for this machine and moment. The two sides of a ratio alternate, with a pause in between: the threads
of OpenMP spin for some milliseconds after their work, which would otherwise count for the other side.

With 32 questions at once, ours is 32 asyncio tasks that each ask the retriever one question, measured from their
creation to the last list of passages. It is compared with two direct uses of the library. `arrays` is one call with all
32 vectors, on all cores, which returns rows and scores in two arrays; ours also has the cost of tasks, ids and
passages. `passages` is 32 tasks that wait for one call and get the same passages without scores, so the difference is
our layer. Neither side embeds texts (the vectors exist) or reads texts from a disk (passages are in memory).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyrag._io.threads import cores
from pyrag.retrieval.dense import DenseRetriever
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.protocol import Retriever
from pyrag.retrieval.vectors.faiss_index import open_vectors
from pyrag.retrieval.vectors.files import RowIds
from pyrag.retrieval.vectors.folder import VectorFolder
from pyrag.trace.model import Passage

TYPES = ("Flat", "SQ8", "RaBitQfs,Refine(SQ8)", "HNSW16", "IVF1024,SQ8", "edge")
_QUERIES = 320
_AT_ONCE = 32
_LATENT = 16
_ROUNDS = 15
_SECONDS = 60  # no further round starts after this time
_PAUSE = 0.02  # seconds
_BLOCK = 16_384


def indexes(options: argparse.Namespace) -> None:
    print(f"{options.count} x {options.dimension} vectors, {_QUERIES} queries; load {os.getloadavg()[0]:.1f}")
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, faiss {_version('faiss')}, Python {platform.python_version()}"
    )
    print(f"{_AT_ONCE} at once, ms: ours, of the library for arrays alone, of the library for tasks that get passages")
    print(
        "| type | search | recall@10 | queries/s | CPU ms: ours / direct | ratio "
        "| 32 at once: ours / arrays / passages | ratios | their CPU | ratios "
        "| build s | CPU s | peak MB | disk MB | first query ms | load |\n"
        f"|{16 * '---|'}"
    )
    for type_ in options.types.split(";"):
        command = [sys.executable, "-m", "benchmarks.retrieval", "one", "--type", type_]
        command += ["--count", str(options.count), "--dimension", str(options.dimension)]
        command += ["--target", str(options.target), *(["--scratch", str(options.scratch)] if options.scratch else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout.strip() or f"| {type_} | failed: {done.stderr.strip()[-200:]} |", flush=True)


def _version(module: str) -> str:
    return str(__import__(module).__version__)


def embeddings(number: int, dimension: int, seed: int) -> Any:
    """Return unit vectors on a curved surface of 16 dimensions: random Fourier features of 16 normal numbers.

    Compared on 10,000 vectors with MiniLM's of HotpotQA, 2Wiki and MuSiQue: intrinsic dimension (TwoNN) 19, and 14-16;
    participation ratio of the spectrum 114, and 85-127; cosine of the first and tenth neighbour 0.61 and 0.49, and
    0.54-0.59 and 0.39-0.43. Vectors that are random in all dimensions have no close neighbours.
    """
    surface, random = np.random.default_rng(7), np.random.default_rng(seed)
    weights = 0.4 * surface.standard_normal((_LATENT, dimension), np.float32)
    phases = surface.uniform(0, 2 * np.pi, dimension).astype(np.float32)
    made = np.cos(random.standard_normal((number, _LATENT), np.float32) @ weights + phases)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def corpus(options: argparse.Namespace) -> Iterator[tuple[range, Any]]:
    """Yield the vectors in blocks: all at once, they would be most of the measured memory."""
    for start in range(0, options.count, _BLOCK):
        rows = range(start, min(start + _BLOCK, options.count))
        yield rows, embeddings(len(rows), options.dimension, seed=1000 + start)


def one_type(options: argparse.Namespace) -> None:
    queries = embeddings(_QUERIES, options.dimension, seed=2)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        measure = _edge if options.type == "edge" else _faiss
        print(measure(Path(folder), queries, options))


class Cost(NamedTuple):
    """Wall time and CPU time in milliseconds."""

    wall: float
    cpu: float


class Truth:
    """Exact search for the ten nearest vectors. Vectors are added in blocks."""

    def __init__(self, queries: Any) -> None:
        import faiss

        self._queries = queries
        self._heap = faiss.ResultHeap(len(queries), 10, keep_max=True)

    def add(self, rows: range, block: Any) -> None:
        import faiss

        scores, neighbours = faiss.knn(self._queries, block, 10, metric=faiss.METRIC_INNER_PRODUCT)
        self._heap.add_result(scores, neighbours + rows.start)

    def ids(self) -> list[set[str]]:
        self._heap.finalize()
        return [{f"id{row}" for row in row_numbers} for row_numbers in self._heap.I.tolist()]


def _faiss(folder: Path, queries: Any, options: argparse.Namespace) -> str:
    fingerprint = Fingerprint(model="synthetic", dimension=options.dimension)
    truth = Truth(queries)
    made = VectorFolder.create(folder / "v", fingerprint, type=options.type, target=options.target)
    with made.writer() as writer:
        for rows, block in corpus(options):
            writer.add([f"id{row}" for row in rows], block)
            truth.add(rows, block)
        before = time.perf_counter(), time.process_time()
        (segment,) = writer.commit().segments
        build = time.perf_counter() - before[0], time.process_time() - before[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    first = _cold_start(_COLD, folder / "v", str(folder / "v"), options.dimension)
    import faiss

    index = open_vectors(folder / "v")
    # This must be the index object that ours uses: two mappings of the same file differ by up to a third (with SQ8).
    direct = index._segments[0].index
    faiss.omp_set_num_threads(1)
    recall = _recall([{name for name, _ in index.search(query[None], 10)[0]} for query in queries], truth.ids())
    ones = [query[None] for query in queries]
    alone = _take_turns(
        len(ones),
        lambda: [index.search(vector, 10) for vector in ones],
        lambda: [direct.search(vector, 10) for vector in ones],
    )
    faiss.omp_set_num_threads(cores())
    retriever = DenseRetriever(index, _Ready(fingerprint, queries), lambda ids: map(_passage, ids))
    ids = RowIds(folder / "v" / segment.name)

    def passages(block: Any) -> list[Any]:
        faiss.omp_set_num_threads(cores())  # applies to the calling thread
        return [[_passage(name) for name in ids.names(rows)] for rows in direct.search(block, 10)[1].tolist()]

    together = _together(retriever, lambda block: direct.search(block, 10), passages, queries)
    return _row(segment.type, segment.search, recall, alone, together, build, peak, disk, first)


def _together(
    retriever: Retriever, arrays: Callable[[Any], object], passages: Callable[[Any], list[Any]], queries: Any
) -> list[Cost]:
    """Return the costs of simultaneous questions: ours first, then the two direct uses of the library."""
    blocks = _in_blocks(queries)
    with asyncio.Runner() as runner:
        return _take_turns(
            len(blocks),
            lambda: runner.run(_ask_all(retriever)),
            lambda: [arrays(block) for block in blocks],
            lambda: runner.run(_ask_in_tasks(passages, blocks)),
        )


async def _ask_all(retriever: Retriever) -> None:
    """Ask all questions, several at a time. The text of a question is the number of its vector."""
    for some in _in_blocks([str(number) for number in range(_QUERIES)]):
        await asyncio.gather(*(retriever.retrieve(text, 10) for text in some))


async def _ask_in_tasks(search: Callable[[Any], list[Any]], blocks: list[Any]) -> None:
    """Ask from tasks that share one call, like an ideal program that knows when all its tasks have asked."""
    loop = asyncio.get_running_loop()
    for block in blocks:
        asked: list[Any] = []
        results: asyncio.Future[list[Any]] = loop.create_future()

        async def ask(vector: Any, asked: list[Any] = asked, results: asyncio.Future[list[Any]] = results) -> Any:
            asked.append(vector)
            place = len(asked) - 1
            return (await results)[place]

        tasks = [asyncio.create_task(ask(vector)) for vector in block]
        await asyncio.sleep(0)
        results.set_result(await asyncio.to_thread(search, np.stack(asked)))
        await asyncio.gather(*tasks)


@cache
def _passage(name: str) -> Passage:
    return Passage(name, "", "")


class _Ready:
    """`Embedder` that returns prepared vectors. A text is the number of its vector."""

    name = "ready"

    def __init__(self, fingerprint: Fingerprint, queries: Any) -> None:
        self._fingerprint = fingerprint
        self._queries = queries

    async def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    async def embed_queries(self, texts: Sequence[str]) -> Any:
        (number,) = map(int, texts)
        return self._queries[number : number + 1]

    embed_passages = embed_queries

    async def aclose(self) -> None:
        """Do nothing."""


def _edge(folder: Path, queries: Any, options: argparse.Namespace) -> str:
    import qdrant_edge

    from pyrag.retrieval.stores.qdrant import QdrantStore
    from pyrag.retrieval.stores.store import StoreRetriever

    truth, spec = Truth(queries), f"qdrant:bench@{folder}"
    fingerprint = Fingerprint(model="synthetic", dimension=options.dimension)
    before = time.perf_counter(), time.process_time()
    store = QdrantStore(spec)
    store.create(fingerprint)
    for rows, block in corpus(options):
        truth.add(rows, block)
        store.add([Passage(f"id{row}", "", "") for row in rows], block)  # no texts, so only vectors are measured
    store.optimise()
    store.close()
    build = time.perf_counter() - before[0], time.process_time() - before[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    disk = sum(512 * path.stat().st_blocks for path in folder.rglob("*") if path.is_file()) / 1e6
    first = _cold_start(_COLD_EDGE, folder, spec, options.dimension)
    store = QdrantStore(spec)
    recall = _recall([{passage.id for passage in store.search(query, 10)} for query in queries], truth.ids())
    shard: Any = store._engine._shard  # type: ignore[attr-defined]

    def request(query: Any) -> Any:
        nearest = qdrant_edge.Query.Nearest(query.tolist(), using="dense")
        return qdrant_edge.QueryRequest(limit=10, query=nearest, with_payload=True)

    def answers(block: Any) -> list[Any]:
        return list(shard.query_batch(qdrant_edge.QueryBatchRequest([request(query) for query in block])))

    alone = _take_turns(
        len(queries), lambda: [store.search(query, 10) for query in queries],
        lambda: [shard.query(request(query)) for query in queries],
    )  # fmt: skip
    retriever = StoreRetriever(store, _Ready(fingerprint, queries), dense_weight=1)
    together = _together(retriever, answers, answers, queries)
    store.close()
    segments = f"{len(list(folder.glob('*/segments/*')))} segments"
    return _row("Qdrant embedded", segments, recall, alone, together, build, peak, disk, first)


def _in_blocks(queries: Any) -> list[Any]:
    """Split a list or an array into blocks of the size that is asked at once."""
    return [queries[start : start + _AT_ONCE] for start in range(0, len(queries), _AT_ONCE)]


def _row(
    name: str, search: str, recall: float, alone: list[Cost], together: list[Cost],
    build: tuple[float, float], peak: float, disk: float, first: float,
) -> str:  # fmt: skip
    wall, cpu = [cost.wall for cost in together], [cost.cpu for cost in together]
    cells = [
        name, search or "-", f"{recall:.3f}", f"{1000 / alone[0].wall:.0f}",
        *_compared([cost.cpu for cost in alone], 3), *_compared(wall, 2), *_compared(cpu, 2),
        *(f"{seconds:.1f}" for seconds in build), *(f"{figure:.0f}" for figure in (peak, disk, first)),
        f"{os.getloadavg()[0]:.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _compared(costs: list[float], digits: int) -> tuple[str, str]:
    """Return all costs, ours first, and the ratios of ours to the others."""
    ours, *others = costs
    return " / ".join(f"{cost:.{digits}f}" for cost in costs), " / ".join(f"{ours / cost:.3f}" for cost in others)


def _recall(results: list[set[str]], truth: list[set[str]]) -> float:
    return statistics.fmean(len(ids & gold) / len(gold) for ids, gold in zip(results, truth, strict=True))


def _take_turns(batches: int, *sides: Callable[[], object]) -> list[Cost]:
    """Return the lowest cost of a batch for each side. Sides take turns, so that other load affects all of them."""
    rounds: list[list[Cost]] = [[] for _ in sides]
    started = time.perf_counter()
    while len(rounds[0]) < _ROUNDS and time.perf_counter() - started < _SECONDS:
        for side, costs in zip(sides, rounds, strict=True):
            time.sleep(_PAUSE)
            wall, cpu = time.perf_counter(), time.process_time()
            side()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            costs.append(Cost(*(1000 * seconds / batches for seconds in spent)))
    return [Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs)) for costs in rounds]


_COLD = """
import sys, time
started = time.perf_counter()
import numpy as np
from pyrag.retrieval.vectors.faiss_index import open_vectors
open_vectors(sys.argv[1]).search(np.ones((1, int(sys.argv[2])), np.float32), 10)
print(1000 * (time.perf_counter() - started))
"""


_COLD_EDGE = """
import sys, time
started = time.perf_counter()
import numpy as np
from pyrag.retrieval.stores.qdrant import QdrantStore
QdrantStore(sys.argv[1]).search(np.ones(int(sys.argv[2]), np.float32), 10)
print(1000 * (time.perf_counter() - started))
"""


def _cold_start(code: str, folder: Path, index: str, dimension: int) -> float:
    """Return the milliseconds from a new process to its first result, including imports, with a cold file cache."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    command = [sys.executable, "-c", code, index, str(dimension)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

"""What each type of vector index costs: `python -m benchmarks.retrieval indexes`.

Synthetic vectors that lie as MiniLM's do (see `embeddings`), each type in a process of its own: recall@10 against
exact search, queries a second one at a time, CPU of one thread through `VectorIndex` and of the same index file
searched with FAISS directly, 32 questions at once (below), build time, peak memory, size on disk, and the first query
of a new process, imports included, with the index out of the file cache. `edge` is Qdrant's embedded engine. The
figures are of this machine at this moment; both sides of a ratio take turns, with a pause between, as OpenMP's threads
spin for some milliseconds after their work, which would be charged to the other side.

32 at once: ours is 32 asyncio tasks that each ask the retriever one question, from their creation to the last list of
passages. Beside it stand two ways to call the library directly. `arrays`: one call with all 32 vectors, on as many
threads as there are cores, which leaves rows and scores in two arrays; the tasks, ids and passages that FAISS has none
of count as ours. `passages`: as many tasks that wait for the same one call and get the same passages of it, without
scores, so that what is left is our layer. Embedding is left out on all sides (vectors are there), and so is reading
texts from a disk (passages are in memory).
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
_SECONDS = 60  # after which no further round begins
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
    for one in options.types.split(";"):
        command = [sys.executable, "-m", "benchmarks.retrieval", "one", "--type", one]
        command += ["--count", str(options.count), "--dimension", str(options.dimension)]
        command += ["--target", str(options.target), *(["--scratch", str(options.scratch)] if options.scratch else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout.strip() or f"| {one} | failed: {done.stderr.strip()[-200:]} |", flush=True)


def _version(module: str) -> str:
    return str(__import__(module).__version__)


def embeddings(number: int, dimension: int, seed: int) -> Any:
    """Unit vectors on a curved surface of 16 dimensions: random Fourier features of as many normal numbers.

    Measured on 10,000 of them, beside MiniLM's of HotpotQA, 2Wiki and MuSiQue: intrinsic dimension (TwoNN) 19, 14-16;
    participation ratio of the spectrum 114, 85-127; cosine of the first and tenth neighbour 0.61 and 0.49, 0.54-0.59
    and 0.39-0.43. Vectors that are random in all dimensions have no neighbours to speak of.
    """
    surface, random = np.random.default_rng(7), np.random.default_rng(seed)
    weights = 0.4 * surface.standard_normal((_LATENT, dimension), np.float32)
    phases = surface.uniform(0, 2 * np.pi, dimension).astype(np.float32)
    made = np.cos(random.standard_normal((number, _LATENT), np.float32) @ weights + phases)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def corpus(options: argparse.Namespace) -> Iterator[tuple[range, Any]]:
    """The vectors in blocks, as a whole they would be most of the memory that is measured."""
    for start in range(0, options.count, _BLOCK):
        rows = range(start, min(start + _BLOCK, options.count))
        yield rows, embeddings(len(rows), options.dimension, seed=1000 + start)


def one_type(options: argparse.Namespace) -> None:
    queries = embeddings(_QUERIES, options.dimension, seed=2)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        measure = _edge if options.type == "edge" else _faiss
        print(measure(Path(folder), queries, options))


class Cost(NamedTuple):
    """Milliseconds."""

    wall: float
    cpu: float


class Truth:
    """The exact ten nearest, from blocks."""

    def __init__(self, queries: Any) -> None:
        import faiss

        self._queries = queries
        self._heap = faiss.ResultHeap(len(queries), 10, keep_max=True)

    def add(self, rows: range, block: Any) -> None:
        import faiss

        scores, found = faiss.knn(self._queries, block, 10, metric=faiss.METRIC_INNER_PRODUCT)
        self._heap.add_result(scores, found + rows.start)

    def ids(self) -> list[set[str]]:
        self._heap.finalize()
        return [{f"id{row}" for row in one} for one in self._heap.I.tolist()]


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
    # The very object that ours calls: of two mappings of one file, either may be a third slower (seen with SQ8).
    direct = index._segments[0].index
    faiss.omp_set_num_threads(1)
    recall = _recall([{one for one, _ in index.search(query[None], 10)[0]} for query in queries], truth.ids())
    ones = [query[None] for query in queries]
    alone = _take_turns(
        len(ones), lambda: [index.search(one, 10) for one in ones], lambda: [direct.search(one, 10) for one in ones]
    )
    faiss.omp_set_num_threads(cores())
    retriever = DenseRetriever(index, _Ready(fingerprint, queries), lambda ids: map(_passage, ids))
    ids = RowIds(folder / "v" / segment.name)

    def passages(block: Any) -> list[Any]:
        faiss.omp_set_num_threads(cores())  # of the thread that calls
        return [[_passage(one) for one in ids.names(rows)] for rows in direct.search(block, 10)[1].tolist()]

    together = _together(retriever, lambda block: direct.search(block, 10), passages, queries)
    return _row(segment.type, segment.search, recall, alone, together, build, peak, disk, first)


def _together(
    retriever: Retriever, arrays: Callable[[Any], object], passages: Callable[[Any], list[Any]], queries: Any
) -> list[Cost]:
    """Of questions at once: ours, and the two ways to call the library."""
    blocks = _in_blocks(queries)
    with asyncio.Runner() as runner:
        return _take_turns(
            len(blocks),
            lambda: runner.run(_ask_all(retriever)),
            lambda: [arrays(one) for one in blocks],
            lambda: runner.run(_ask_in_tasks(passages, blocks)),
        )


async def _ask_all(retriever: Retriever) -> None:
    """All questions, whose texts are the numbers of their vectors, some at once."""
    for some in _in_blocks([str(number) for number in range(_QUERIES)]):
        await asyncio.gather(*(retriever.retrieve(one, 10) for one in some))


async def _ask_in_tasks(search: Callable[[Any], list[Any]], blocks: list[Any]) -> None:
    """What a program would do whose questions are tasks, if it knew when all of them have asked."""
    loop = asyncio.get_running_loop()
    for block in blocks:
        asked: list[Any] = []
        found: asyncio.Future[list[Any]] = loop.create_future()

        async def ask(vector: Any, asked: list[Any] = asked, found: asyncio.Future[list[Any]] = found) -> Any:
            asked.append(vector)
            place = len(asked) - 1
            return (await found)[place]

        tasks = [asyncio.create_task(ask(vector)) for vector in block]
        await asyncio.sleep(0)
        found.set_result(await asyncio.to_thread(search, np.stack(asked)))
        await asyncio.gather(*tasks)


@cache
def _passage(name: str) -> Passage:
    return Passage(name, "", "")


class _Ready:
    """An `Embedder` of texts that are the numbers of vectors that are there."""

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
        """Nothing to close."""


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
        store.add([Passage(f"id{row}", "", "") for row in rows], block)  # without words: vectors alone are measured
    store.optimise()
    store.close()
    build = time.perf_counter() - before[0], time.process_time() - before[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    disk = sum(512 * path.stat().st_blocks for path in folder.rglob("*") if path.is_file()) / 1e6
    first = _cold_start(_COLD_EDGE, folder, spec, options.dimension)
    store = QdrantStore(spec)
    recall = _recall([{one.id for one in store.search(query, 10)} for query in queries], truth.ids())
    shard: Any = store._engine._shard  # type: ignore[attr-defined]

    def asked(query: Any) -> Any:
        nearest = qdrant_edge.Query.Nearest(query.tolist(), using="dense")
        return qdrant_edge.QueryRequest(limit=10, query=nearest, with_payload=True)

    def answers(block: Any) -> list[Any]:
        return list(shard.query_batch(qdrant_edge.QueryBatchRequest([asked(one) for one in block])))

    alone = _take_turns(
        len(queries), lambda: [store.search(one, 10) for one in queries],
        lambda: [shard.query(asked(one)) for one in queries],
    )  # fmt: skip
    retriever = StoreRetriever(store, _Ready(fingerprint, queries), dense_weight=1)
    together = _together(retriever, answers, answers, queries)
    store.close()
    segments = f"{len(list(folder.glob('*/segments/*')))} segments"
    return _row("Qdrant embedded", segments, recall, alone, together, build, peak, disk, first)


def _in_blocks(queries: Any) -> list[Any]:
    """Lists or arrays of as many as are asked at once."""
    return [queries[start : start + _AT_ONCE] for start in range(0, len(queries), _AT_ONCE)]


def _row(
    name: str, search: str, recall: float, alone: list[Cost], together: list[Cost],
    build: tuple[float, float], peak: float, disk: float, first: float,
) -> str:  # fmt: skip
    wall, cpu = [one.wall for one in together], [one.cpu for one in together]
    cells = [
        name, search or "-", f"{recall:.3f}", f"{1000 / alone[0].wall:.0f}",
        *_compared([one.cpu for one in alone], 3), *_compared(wall, 2), *_compared(cpu, 2),
        *(f"{one:.1f}" for one in build), *(f"{one:.0f}" for one in (peak, disk, first)), f"{os.getloadavg()[0]:.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _compared(costs: list[float], digits: int) -> tuple[str, str]:
    """Ours first, and what it is of each of the others."""
    ours, *others = costs
    return " / ".join(f"{one:.{digits}f}" for one in costs), " / ".join(f"{ours / one:.3f}" for one in others)


def _recall(found: list[set[str]], truth: list[set[str]]) -> float:
    return statistics.fmean(len(one & gold) / len(gold) for one, gold in zip(found, truth, strict=True))


def _take_turns(batches: int, *sides: Callable[[], object]) -> list[Cost]:
    """What each of so many batches costs, the best of rounds in which all sides alternate: other load hits all."""
    rounds: list[list[Cost]] = [[] for _ in sides]
    started = time.perf_counter()
    while len(rounds[0]) < _ROUNDS and time.perf_counter() - started < _SECONDS:
        for side, costs in zip(sides, rounds, strict=True):
            time.sleep(_PAUSE)
            wall, cpu = time.perf_counter(), time.process_time()
            side()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            costs.append(Cost(*(1000 * one / batches for one in spent)))
    return [Cost(min(one.wall for one in costs), min(one.cpu for one in costs)) for costs in rounds]


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
    """From a new process to the first result, imports included, with nothing of the index in the file cache."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    command = [sys.executable, "-c", code, index, str(dimension)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

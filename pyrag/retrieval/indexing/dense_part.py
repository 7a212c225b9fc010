"""The dense part of an index: passages embedded and kept by `faiss_index`.

Vectors are on the disk as soon as they are computed, but count only once they are committed, with each checkpoint of
the build. What moved without a change of its text is not embedded again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.embedders.protocol import Embedder, passage_text
from pyrag.retrieval.index import VECTORS
from pyrag.retrieval.indexing.parts import Settings
from pyrag.retrieval.vectors.faiss_index import Layout, open_vectors
from pyrag.retrieval.vectors.folder import Builder, BuildHere, VectorFolder
from pyrag.trace.model import Passage

_BATCH = 256


class Workers(Builder, Protocol):
    """Embedding and index building for a build: in this process, on Ray (`ray_workers`), or read (`stored_vectors`).

    Attributes:
        ahead: batches that may be embedded beyond the one that is awaited.
    """

    @property
    def ahead(self) -> int: ...

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        """Start to embed passages; the returned function waits for the matrix and may raise `PyRAGError`."""
        ...

    def close(self) -> None:
        """Release the workers."""
        ...


class InProcess(BuildHere):
    """`Workers` over an embedder, one batch at a time."""

    ahead = 0

    def __init__(self, embedder: Embedder, runner: asyncio.Runner) -> None:
        self._embedder = embedder
        self._runner = runner

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        texts = [passage_text(one.title, one.text) for one in passages]
        return lambda: self._runner.run(self._embedder.embed_passages(texts))

    def close(self) -> None:
        """Nothing to release: the embedder is the part's."""


class DensePart:
    """`embedder` is used from a loop of its own and not closed. `workers` embed and build in its place; closed here.

    The `layout` may change without any passage being embedded again.
    """

    kind = VECTORS
    keeps_places = False

    def __init__(self, embedder: Embedder, layout: Layout | None = None, workers: Workers | None = None) -> None:
        self._embedder = embedder
        self._layout = layout or Layout()
        self._runner = asyncio.Runner()
        self.workers = workers or InProcess(embedder, self._runner)
        self._fingerprint: Fingerprint | None = None

    @property
    def settings(self) -> Settings:
        made = self.fingerprint
        compared = {name: getattr(made, name) for name in ("dimension", "query_prefix", "passage_prefix", "pooling")}
        return {"embedder": self._embedder.name, "model": made.model, **compared}

    @property
    def fingerprint(self) -> Fingerprint:
        if self._fingerprint is None:
            self._fingerprint = self._runner.run(self._embedder.fingerprint())
        return self._fingerprint

    def writer(self, folder: Path) -> DenseWriter:
        wanted = msgspec.structs.asdict(self._layout)
        return DenseWriter(self.workers, VectorFolder.create(folder, self.fingerprint, **wanted))

    def is_as_wanted(self, folder: Path) -> bool:
        return VectorFolder(folder).info.layout == self._layout

    def finish(self, folder: Path, *, anew: bool, keep: Callable[[], object]) -> None:
        """Build the vector indexes that are due. Args: those of `Part.finish`."""
        vectors = VectorFolder(folder)
        if not self.is_as_wanted(folder):
            vectors.reshape(self._layout)
        if vectors.needs_compaction:
            keep()
            vectors.compact(self.workers, keep)

    def ids(self, folder: Path) -> Iterator[str]:
        return open_vectors(folder).ids()

    def close(self) -> None:
        self.workers.close()
        self._runner.run(self._embedder.aclose())
        self._runner.close()


class DenseWriter:
    """Writer that embeds passages as they come, some batches ahead if workers do it, and keeps their order."""

    def __init__(self, workers: Workers, folder: VectorFolder) -> None:
        self._workers = workers
        self._folder = folder
        self._context: Any = None
        self._writer: Any = None
        self._begun: deque[tuple[list[str], Callable[[], Any]]] = deque()
        self._added: set[str] = set()
        self._gone: set[str] = set()

    def add(self, passages: Sequence[Passage]) -> None:
        if self._writer is None:
            self._context = self._folder.writer()
            self._writer = self._context.__enter__()
        for start in range(0, len(passages), _BATCH):
            some = passages[start : start + _BATCH]
            ids = [one.id for one in some]
            self._begun.append((ids, self._workers.embed(some)))
            self._added.update(ids)
            self._take(self._workers.ahead)

    def _take(self, left: int) -> None:
        while len(self._begun) > left:
            ids, matrix = self._begun.popleft()
            self._writer.add(ids, matrix())

    def delete(self, ids: Sequence[str]) -> None:
        if not self._added.isdisjoint(ids):
            self.commit()  # only what is committed can be deleted
        self._gone.update(ids)

    def commit(self) -> None:
        self._take(0)
        if self._writer is not None:
            self._writer.commit(self._gone)
            self._end()
        elif self._gone:
            self._folder.delete(self._gone)
        self._added, self._gone = set(), set()

    def close(self) -> None:
        self._begun.clear()
        self._end()

    def _end(self) -> None:
        if self._context is not None:
            context, self._context, self._writer = self._context, None, None
            context.__exit__(None, None, None)

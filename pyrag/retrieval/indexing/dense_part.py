"""Dense part of an index: vectors of passages, stored by `faiss_index`.

Vectors are written to the disk as soon as they are computed, but count only once they are committed, at each checkpoint
of the build. A passage that moved without a change of its text is not embedded again.
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
from pyrag.retrieval.indexing.part_protocol import Settings
from pyrag.retrieval.vectors.faiss_index import Layout, open_vectors
from pyrag.retrieval.vectors.folder import Builder, BuildHere, VectorFolder
from pyrag.trace.model import Passage

_BATCH = 256


class Workers(Builder, Protocol):
    """Workers that embed passages and build vector indexes: in this process, on Ray, or by reading stored vectors.

    Attributes:
        ahead: Number of batches that may be embedded ahead of the awaited batch.
    """

    @property
    def ahead(self) -> int: ...

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        """Start embedding passages.

        Returns:
            Function that waits for the matrix and returns it. It may raise `PyRAGError`.
        """
        ...

    def close(self) -> None:
        """Release the workers."""
        ...


class InProcess(BuildHere):
    """Workers over an embedder in this process, one batch at a time."""

    ahead = 0

    def __init__(self, embedder: Embedder, runner: asyncio.Runner) -> None:
        self._embedder = embedder
        self._runner = runner

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        texts = [passage_text(passage.title, passage.text) for passage in passages]
        return lambda: self._runner.run(self._embedder.embed_passages(texts))

    def close(self) -> None:
        """Do nothing, since the embedder belongs to the part."""


class DensePart:
    """Part that holds the vectors of the passages.

    Args:
        embedder: Embedder, which the part uses in its own event loop and closes.
        layout: Layout of the vector indexes. Changing it does not require embedding passages again.
        workers: Workers that embed and build instead of this process, which the part closes. None for this process.
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
        properties = {name: getattr(made, name) for name in ("dimension", "query_prefix", "passage_prefix", "pooling")}
        return {"embedder": self._embedder.name, "model": made.model, **properties}

    @property
    def fingerprint(self) -> Fingerprint:
        if self._fingerprint is None:
            self._fingerprint = self._runner.run(self._embedder.fingerprint())
        return self._fingerprint

    def writer(self, folder: Path) -> DenseWriter:
        options = msgspec.structs.asdict(self._layout)
        return DenseWriter(self.workers, VectorFolder.create(folder, self.fingerprint, **options))

    def is_as_wanted(self, folder: Path) -> bool:
        return VectorFolder(folder).info.layout == self._layout

    def finish(self, folder: Path, *, from_scratch: bool, keep: Callable[[], object]) -> None:
        """Build the vector indexes that are due.

        Args:
            folder: Folder of the part.
            from_scratch: Whether the part was built from scratch. It is not used here.
            keep: Function that makes a checkpoint, called before long work.
        """
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
    """Writer that embeds passages as they arrive, in order. With workers, it embeds some batches ahead."""

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
            ids = [passage.id for passage in some]
            self._begun.append((ids, self._workers.embed(some)))
            self._added.update(ids)
            self._take(self._workers.ahead)

    def _take(self, remaining: int) -> None:
        while len(self._begun) > remaining:
            ids, matrix = self._begun.popleft()
            self._writer.add(ids, matrix())

    def delete(self, ids: Sequence[str]) -> None:
        if not self._added.isdisjoint(ids):
            self.commit()  # only committed vectors can be deleted
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

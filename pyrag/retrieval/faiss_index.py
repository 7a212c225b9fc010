"""Vectors by passage id in a folder, searched with FAISS: add, delete, compact, and read while that goes on.

    DIR/vectors.json      what made the vectors, and the segments in use; replaced in one step by every change
    DIR/seg-X.faiss       a FAISS index over the rows of one segment; the other files are `vector_files`
    DIR/seg-X.live-N      which rows are not deleted, where some are
    DIR/pending.*         vectors that were added but not committed, kept over a kill

    vectors = VectorFolder.create(folder, fingerprint)        # or VectorFolder(folder)
    with vectors.writer() as writer:                          # one at a time; holds what an earlier one left
        writer.add(ids, matrix)                               # flushed to disk at once
        writer.commit(delete=gone)                            # ids that are there already are replaced
    index = open_vectors(folder)                              # a snapshot, memory-mapped
    index.search(queries, topk)                               # [[(id, score), ...], ...]

A segment is never changed: adding writes another one, deleting a list of rows, `compact` builds one out of all. Readers
keep what they opened. Shards that were built elsewhere are taken over with `adopt`. The scores are inner products, or
negative squared distances for the metric `l2`: larger is better.

Left out: passages (only ids are here), embedding (see `embedding`), several writers at once (the second waits).
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.embedding import Fingerprint
from pyrag.retrieval.vector_files import SUFFIXES, Gathering, Ids, link, locked, map_vectors, mapped, save, sync
from pyrag.retrieval.vector_types import AUTO, RECALL, Metric, build, set_search

if TYPE_CHECKING:
    from pyrag.retrieval.embedding import Matrix

FORMAT = 1
NAME = "vectors.json"
MOST_SEGMENTS = 8
MOST_DELETED = 0.3
_PENDING = "pending"

Hit = tuple[str, float]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """`live` names the file of rows that are left, empty where all are. `recall` was measured, see `vector_types`."""

    name: str
    rows: int
    type: str
    search: str = ""
    recall: float = 1.0
    live: str = ""
    deleted: int = 0


class VectorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What `vectors.json` says. `type` is a FAISS factory string or `auto`, `target` the recall that auto aims at.

    `embedder` is the spec string that the folder was made with, empty where there was none.
    """

    format: int = FORMAT
    fingerprint: Fingerprint
    metric: Metric = "ip"
    type: str = AUTO
    target: float = RECALL
    embedder: str = ""
    segments: tuple[Segment, ...] = ()

    @property
    def count(self) -> int:
        return sum(segment.rows - segment.deleted for segment in self.segments)


@dataclass(frozen=True, slots=True)
class _Opened:
    segment: Segment
    index: Any
    ids: Ids
    live: Any


class VectorIndex:
    """A snapshot of a folder, for any number of threads. Changes to the folder do not change it."""

    def __init__(self, info: VectorInfo, segments: Sequence[_Opened]) -> None:
        self.info = info
        self._segments = segments

    def __len__(self) -> int:
        return self.info.count

    def ids(self) -> Iterator[str]:
        for one in self._segments:
            live = None if one.live is None else one.live.tolist()
            yield from (name for row, name in enumerate(one.ids) if live is None or live[row])

    def check(self, fingerprint: Fingerprint) -> None:
        """Raises `ConfigError` where the vectors of an embedder cannot be compared with these."""
        difference = self.info.fingerprint.difference(fingerprint)
        if difference:
            raise ConfigError(
                f"the index was embedded with {difference} as the query embedder has it: "
                "name the index's own embedder with --embedder, or build the index again with this one"
            )

    def search(self, queries: Matrix, topk: int) -> list[list[Hit]]:
        """For each row of `queries` (float32) at most `topk` ids with their scores, best first."""
        _one_thread()
        if topk < 1:
            return [[] for _ in queries]
        parts = [self._hits(one, queries, topk) for one in self._segments]
        if len(parts) == 1:
            return parts[0]
        return [_merged([part[row] for part in parts], topk) for row in range(len(queries))]

    def _hits(self, opened: _Opened, queries: Matrix, topk: int) -> list[list[Hit]]:
        """Deleted rows are sifted out afterwards, which every type of index allows; more is asked for if need be."""
        rows = opened.segment.rows
        limit = min(topk, rows)
        if opened.live is not None:
            limit = min(topk + 2 * topk * opened.segment.deleted // rows, rows)
        while True:
            scores, found = opened.index.search(queries, limit)
            if self.info.metric == "l2":
                scores = -scores
            hits = [_named(opened, *pair, topk) for pair in zip(found.tolist(), scores.tolist(), strict=True)]
            enough = min(topk, rows - opened.segment.deleted)
            if limit >= rows or opened.live is None or all(len(one) >= enough for one in hits):
                return hits
            limit = min(4 * limit, rows)


def _named(opened: _Opened, rows: list[int], scores: list[float], topk: int) -> list[Hit]:
    """Rows of -1, which stand at the end, say that FAISS has found no more."""
    live = opened.live
    if live is not None or rows[-1] < 0:
        pairs = zip(rows, scores, strict=True)
        kept = [(row, score) for row, score in pairs if row >= 0 and (live is None or live[row])][:topk]
        rows, scores = [row for row, _ in kept], [score for _, score in kept]
    return list(zip(opened.ids.names(rows), scores, strict=True))


def _merged(parts: list[list[Hit]], topk: int) -> list[Hit]:
    return sorted((hit for part in parts for hit in part), key=lambda hit: (-hit[1], hit[0]))[:topk]


_threads = threading.local()


def _one_thread() -> None:
    """FAISS keeps its number of threads for each thread that calls it."""
    if not getattr(_threads, "set", False):
        import faiss

        faiss.omp_set_num_threads(1)
        _threads.set = True


def open_vectors(folder: str | Path) -> VectorIndex:
    """Raises `DataError` where the folder holds no vectors that this pyrag can read."""
    folder = Path(folder)
    info = read_vector_info(folder)
    while True:
        try:
            return VectorIndex(info, [_opened(folder, one, info) for one in info.segments])
        except (OSError, RuntimeError, ValueError) as error:
            before, info = info, read_vector_info(folder)
            if info == before:  # and not replaced since it was read
                reason = str(error).partition("\n")[0][-200:]
                raise DataError(f"the vectors in {folder} are damaged ({reason}): build the index again") from error


def _opened(folder: Path, segment: Segment, info: VectorInfo) -> _Opened:
    import faiss

    index = faiss.read_index(str(folder / f"{segment.name}.faiss"), faiss.IO_FLAG_MMAP_IFC)
    set_search(index, segment.search)
    ids = Ids(folder / segment.name)
    if not index.ntotal == len(ids) == segment.rows or index.d != info.fingerprint.dimension:
        raise ValueError(f"{segment.name} holds {index.ntotal} vectors and {len(ids)} ids, not {segment.rows}")
    return _Opened(segment, index, ids, mapped(folder / segment.live, "?") if segment.live else None)


def read_vector_info(folder: str | Path) -> VectorInfo:
    path = Path(folder) / NAME
    try:
        info = msgspec.json.decode(path.read_bytes(), type=VectorInfo)
    except FileNotFoundError:
        raise DataError(f"{folder} holds no vectors: build the index with an embedder") from None
    except (msgspec.DecodeError, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}): build the index again") from error
    if info.format != FORMAT:
        raise DataError(f"{path} has version {info.format} and this pyrag reads {FORMAT}: build the index again")
    return info


class VectorFolder:
    """The writing side of a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        read_vector_info(self.folder)

    @classmethod
    def create(
        cls,
        folder: str | Path,
        fingerprint: Fingerprint,
        *,
        type: str = AUTO,  # noqa: A002 (the word that FAISS and the file use)
        target: float = RECALL,
        metric: Metric = "ip",
        embedder: str = "",
    ) -> VectorFolder:
        """Makes the folder where it is missing; a folder of vectors that is there is kept if it is of the same kind."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        info = VectorInfo(fingerprint=fingerprint, type=type, target=target, metric=metric, embedder=embedder)
        if not (folder / NAME).exists():
            _write_info(folder, info)
        elif difference := read_vector_info(folder).fingerprint.difference(fingerprint):
            raise ConfigError(f"{folder} was embedded with {difference}: build the index again to change its embedder")
        return cls(folder)

    @property
    def info(self) -> VectorInfo:
        return read_vector_info(self.folder)

    @contextmanager
    def writer(self) -> Iterator[VectorWriter]:
        """The only writer of the folder while it is open. What it does not commit is kept for the next one."""
        with locked(self.folder):
            gathering = Gathering(self.folder / _PENDING, self.info.fingerprint.dimension)
            try:
                yield VectorWriter(self, gathering)
            finally:
                gathering.close()

    def delete(self, ids: Collection[str]) -> int:
        """How many rows went; ids that are not there are passed over."""
        with locked(self.folder):
            before = self.info
            after = self._without(before, ids)
            self._replace(after)
        return before.count - after.count

    @property
    def needs_compaction(self) -> bool:
        """Many small segments cost time in each query, deleted rows cost room."""
        segments = self.info.segments
        rows, deleted = (sum(getattr(one, name) for one in segments) for name in ("rows", "deleted"))
        return len(segments) > MOST_SEGMENTS or deleted > MOST_DELETED * max(rows, 1)

    def compact(self) -> None:
        """Builds one segment out of all that is not deleted, from the vectors as they were added."""
        with locked(self.folder):
            info = self.info
            gathering = Gathering(self.folder / f"compacting-{time.time_ns():x}", info.fingerprint.dimension)
            try:
                for one in info.segments:
                    _copy_live(_opened(self.folder, one, info), self.folder, gathering)
                segments = (self._segment(gathering),) if len(gathering) else ()
            except BaseException:
                gathering.discard()
                raise
            if not segments:
                gathering.discard()
            self._replace(msgspec.structs.replace(info, segments=segments))

    def adopt(self, other: str | Path) -> None:
        """Takes over the segments of another folder, such as a shard built elsewhere; linked where that is possible."""
        shard = read_vector_info(other)
        if difference := self.info.fingerprint.difference(shard.fingerprint):
            raise ConfigError(f"{self.folder} was embedded with {difference} as {other} was: embed the shard alike")
        with locked(self.folder):
            for one in shard.segments:
                for name in (*_files(one), *([one.live] if one.live else [])):
                    link(Path(other) / name, self.folder / name)
            info = self.info
            self._replace(msgspec.structs.replace(info, segments=(*info.segments, *shard.segments)))

    def _segment(self, gathering: Gathering) -> Segment:
        """Builds the index of what was gathered, and turns it into a segment of this folder."""
        info = self.info
        name = f"seg-{time.time_ns():x}"
        built = build(gathering.vectors(), info.metric, info.type, info.target)
        _write_index(built.index, self.folder / f"{name}.faiss")
        gathering.finish(self.folder / name)
        return Segment(name=name, rows=len(gathering), type=built.type, search=built.search, recall=built.recall)

    def _without(self, info: VectorInfo, ids: Collection[str]) -> VectorInfo:
        segments = [self._thinned(one, ids) for one in info.segments]
        return msgspec.structs.replace(info, segments=tuple(one for one in segments if one.deleted < one.rows))

    def _thinned(self, segment: Segment, ids: Collection[str], keep_last: bool = False) -> Segment:
        """The segment without some ids; with `keep_last`, the last row of each id stays."""
        import numpy as np

        names = Ids(self.folder / segment.name)
        rows = [row for one in ids for row in (sorted(names.rows([one]))[:-1] if keep_last else names.rows([one]))]
        path = self.folder / segment.live
        live = mapped(path, "?").copy() if segment.live else np.ones(segment.rows, bool)
        live[rows] = False
        deleted = int(segment.rows - live.sum())
        if deleted == segment.deleted:
            return segment
        name = f"{segment.name}.live-{time.time_ns():x}"
        save(self.folder / name, live)
        return msgspec.structs.replace(segment, live=name, deleted=deleted)

    def _replace(self, info: VectorInfo) -> None:
        """The switch; files that nothing names any more go. Open readers have them mapped."""
        _write_info(self.folder, info)
        kept = {name for one in info.segments for name in (*_files(one), one.live)}
        for path in (*self.folder.glob("seg-*"), *self.folder.glob("compacting-*")):
            if path.name not in kept:
                path.unlink(missing_ok=True)


class VectorWriter:
    """Gathers vectors for one new segment; see `VectorFolder.writer`."""

    def __init__(self, folder: VectorFolder, gathering: Gathering) -> None:
        self._folder = folder
        self._gathering = gathering

    @property
    def pending(self) -> Sequence[str]:
        """Ids that are on disk already, those of a killed process first: they need not be embedded again."""
        return self._gathering.ids

    def add(self, ids: Sequence[str], vectors: Matrix) -> None:
        dimension = self._gathering.dimension
        if vectors.shape != (len(ids), dimension):
            raise ConfigError(f"{len(ids)} ids need vectors of shape {(len(ids), dimension)}, not {vectors.shape}")
        self._gathering.append(ids, vectors)

    def commit(self, delete: Collection[str] = ()) -> VectorInfo:
        """Makes what was added searchable and `delete` unfindable, both in one step. Ends the writer's use."""
        ids = self._gathering.ids
        gone = set(delete)
        info = self._folder._without(self._folder.info, gone | set(ids))
        if ids:
            segment = self._folder._segment(self._gathering)
            if twice := len(set(ids)) < len(ids):
                segment = self._folder._thinned(segment, set(ids), keep_last=twice)
            info = msgspec.structs.replace(info, segments=(*info.segments, segment))
        self._folder._replace(info)
        return info

    def discard(self) -> None:
        self._gathering.discard()


def _copy_live(opened: _Opened, folder: Path, gathering: Gathering) -> None:
    import numpy as np

    rows = np.arange(opened.segment.rows) if opened.live is None else np.flatnonzero(opened.live)
    vectors = map_vectors(folder / f"{opened.segment.name}.vec", opened.segment.rows, opened.index.d)
    for start in range(0, len(rows), 65_536):
        some = rows[start : start + 65_536]
        gathering.append([opened.ids.at(row) for row in some.tolist()], vectors[some])


def _files(segment: Segment) -> list[str]:
    return [segment.name + suffix for suffix in (".faiss", *SUFFIXES)]


def _write_index(index: Any, path: Path) -> None:
    import faiss

    try:
        faiss.write_index(index, str(path))
    except RuntimeError as error:  # whatever went wrong with the file
        raise OSError(errno.EIO, str(error).rpartition("Error: ")[2][:200], str(path)) from error
    sync(path)


def _write_info(folder: Path, info: VectorInfo) -> None:
    path = folder / f".{NAME}.new"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(info)) + b"\n")
    sync(path)
    path.replace(folder / NAME)

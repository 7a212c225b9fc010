"""Writing to a folder of vectors: adding, deleting and compacting into shards, while others read it.

    vectors = VectorFolder.create(folder, fingerprint)        # or VectorFolder(folder)
    with vectors.writer() as writer:                          # one at a time; continues an interrupted writer
        writer.add(ids, matrix)                               # flushed to disk at once
        writer.commit(delete=gone)                            # existing ids are replaced

A segment never changes: adding writes another segment, deleting writes a list of rows, and `compact` builds new
segments from all vectors. There is one writer at a time; a second writer waits.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pyrag._io.files import AtomicFile, sync, write_all
from pyrag._io.packages import VECTORS, require_packages
from pyrag.errors import ConfigError
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.vectors.calibration import Metric
from pyrag.retrieval.vectors.faiss_index import (
    NAME,
    Layout,
    OpenedSegment,
    Segment,
    VectorInfo,
    open_segment,
    read_vector_info,
)
from pyrag.retrieval.vectors.files import SUFFIXES, Gathering, RowIds, copy_rows, locked, map_vectors, mapped, save
from pyrag.retrieval.vectors.index_types import AUTO, RECALL, build, check_type

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

MAX_SEGMENTS = 8
MAX_DELETED = 0.3
_PENDING = "pending"
_INTERIM = "SQ8"


class SegmentJob(msgspec.Struct, frozen=True, kw_only=True):
    """Task to build a segment, from the file of its `rows` vectors to the file of its FAISS index."""

    vectors: str
    rows: int
    dimension: int
    metric: Metric
    type: str
    target: float
    out: str


class Builder(Protocol):
    """Builder of segments, `width` at a time."""

    @property
    def width(self) -> int: ...

    def build(self, jobs: Sequence[SegmentJob]) -> list[Segment]: ...


class BuildHere:
    """Builder that builds segments in this process, one after another, on all cores."""

    width = 1

    def build(self, jobs: Sequence[SegmentJob]) -> list[Segment]:
        return [build_segment(job) for job in jobs]


def build_segment(job: SegmentJob) -> Segment:
    """Build the index of a segment next to its other files.

    Raises:
        ConfigError: FAISS cannot build the type of index.
        OSError: The index cannot be written.
    """
    vectors = map_vectors(Path(job.vectors), job.rows, job.dimension)
    built = build(vectors, job.metric, job.type, job.target)
    out = Path(job.out)
    _write_index(built.index, out.with_name(f"{out.name}.faiss"))
    return Segment(name=out.name, rows=job.rows, type=built.type, search=built.search, recall=built.recall)


def _nothing() -> None:
    pass


class VectorFolder:
    """Folder of vectors, for writing."""

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
        shards: int = 1,
        metric: Metric = "ip",
    ) -> VectorFolder:
        """Create a folder of vectors, or open an existing folder made with the same embedder.

        Args:
            folder: Folder to create.
            fingerprint: Fingerprint of the embedder.
            type: Type of index: a FAISS factory string or `auto`.
            target: Recall to reach.
            shards: Number of shards.
            metric: Metric of the index: `ip` or `l2`.

        Raises:
            ConfigError: The folder was made with a different embedder, or FAISS does not know the type.
        """
        require_packages("an index of vectors", VECTORS)
        folder = Path(folder)
        check_type(type, fingerprint.dimension, metric)
        folder.mkdir(parents=True, exist_ok=True)
        info = VectorInfo(
            fingerprint=fingerprint, type=type, target=target, shards=shards, metric=metric,
            unbuilt=tuple(range(shards)) if shards > 1 else (),
        )  # fmt: skip
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
        """Open the only writer of the folder. Rows that it does not commit are left for the next writer."""
        with locked(self.folder):
            gathering = Gathering(self.folder / _PENDING, self.info.fingerprint.dimension)
            try:
                yield VectorWriter(self, gathering)
            finally:
                gathering.close()

    def delete(self, ids: Collection[str]) -> int:
        """Delete rows by their ids, ignoring unknown ids; return the number of deleted rows."""
        with locked(self.folder):
            before = self.info
            after = self._without(before, ids)
            self._replace(after)
        return before.count - after.count

    @property
    def needs_compaction(self) -> bool:
        """True if many segments are small, many rows are deleted, or shards still have to be built."""
        info = self.info
        rows, deleted = (sum(getattr(item, name) for item in info.segments) for name in ("rows", "deleted"))
        many = len(info.segments) >= MAX_SEGMENTS + info.shards
        return bool(info.unbuilt) or many or deleted > MAX_DELETED * max(rows, 1)

    def reshape(self, layout: Layout) -> None:
        """Set the layout for the next compaction, which then becomes necessary.

        Raises:
            ConfigError: FAISS does not know the type of index.
        """
        check_type(layout.type, self.info.fingerprint.dimension, self.info.metric)
        changed = {**msgspec.structs.asdict(layout), "unbuilt": tuple(range(layout.shards))}
        with locked(self.folder):
            self._replace(msgspec.structs.replace(self.info, **changed))

    def compact(self, builder: Builder | None = None, keep: Callable[[], object] = _nothing) -> None:
        """Rebuild the shards from all rows that are not deleted.

        A passage's shard is determined by its id, and its place in the shard by the time when it was added.

        Args:
            builder: Builder of segments. None for this process.
            keep: Called after each step of `builder.width` shards, from which a later call resumes.
        """
        builder = builder or BuildHere()
        with locked(self.folder):
            info = self.info
            todo = info.unbuilt or tuple(range(info.shards))
            while todo:
                some, todo = todo[: builder.width], todo[builder.width :]
                self._build_shards(some, todo, builder)
                keep()

    def _build_shards(self, some: Sequence[int], todo: tuple[int, ...], builder: Builder) -> None:
        info = self.info
        opened = [open_segment(self.folder, segment, info) for segment in info.segments]
        prefix = self.folder / f"compacting-{time.time_ns():x}"
        gatherings = [Gathering(Path(f"{prefix}-{shard}"), info.fingerprint.dimension) for shard in some]
        try:
            for shard, gathering in zip(some, gatherings, strict=True):
                for source in opened:
                    _copy_rows(source, self.folder, _live_rows(source, shard, info.shards), gathering)
            built = self._segments([gathering for gathering in gatherings if len(gathering)], builder, info)
        finally:
            for gathering in gatherings:
                gathering.discard()  # no effect if it has become a segment
        rows = [
            [row for shard in some for row in source.ids.of_shard(shard, info.shards).tolist()] for source in opened
        ]
        remaining_segments = [
            self._without_rows(source.segment, gone) for source, gone in zip(opened, rows, strict=True)
        ]
        segments = (*(segment for segment in remaining_segments if segment.deleted < segment.rows), *built)
        self._replace(msgspec.structs.replace(info, segments=segments, unbuilt=todo))

    def _segments(self, gatherings: Sequence[Gathering], builder: Builder, info: VectorInfo) -> list[Segment]:
        """Build the indexes of collected vectors, and turn them into segments of this folder."""
        made = f"{time.time_ns():x}"
        paths = [self.folder / (f"seg-{made}" + (f"-{at}" if at else "")) for at in range(len(gatherings))]
        jobs = [
            SegmentJob(
                vectors=str(gathering.path), rows=len(gathering), dimension=gathering.dimension, metric=info.metric,
                type=info.type, target=info.target, out=str(path),
            )
            for gathering, path in zip(gatherings, paths, strict=True)
        ]  # fmt: skip
        segments = builder.build(jobs)
        for gathering, path in zip(gatherings, paths, strict=True):
            gathering.finish(path)
        return segments

    def _without(self, info: VectorInfo, ids: Collection[str]) -> VectorInfo:
        segments = [self._thinned(segment, ids) for segment in info.segments]
        return msgspec.structs.replace(
            info, segments=tuple(segment for segment in segments if segment.deleted < segment.rows)
        )

    def _thinned(self, segment: Segment, ids: Collection[str], keep_last: bool = False) -> Segment:
        """Return the segment without some ids; with `keep_last`, the last row of each id is kept."""
        names = RowIds(self.folder / segment.name)
        rows = [row for key in ids for row in (sorted(names.rows([key]))[:-1] if keep_last else names.rows([key]))]
        return self._without_rows(segment, rows)

    def _without_rows(self, segment: Segment, rows: Sequence[int]) -> Segment:
        import numpy as np

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
        """Write a new state and remove files that it does not name. Open readers still have these files mapped."""
        _write_info(self.folder, info)
        names = {name for segment in info.segments for name in (*_files(segment), segment.live)}
        for path in (*self.folder.glob("seg-*"), *self.folder.glob("compacting-*")):
            if path.name not in names:
                path.unlink(missing_ok=True)


class VectorWriter:
    """Writer of a new segment; see `VectorFolder.writer`."""

    def __init__(self, folder: VectorFolder, gathering: Gathering) -> None:
        self._folder = folder
        self._gathering = gathering

    @property
    def pending(self) -> Sequence[str]:
        """Ids whose vectors are already on the disk (even from a killed process) and need no new embedding."""
        return self._gathering.ids

    def add(self, ids: Sequence[str], vectors: Matrix) -> None:
        """Write vectors to the disk. They become searchable after `commit`.

        Args:
            ids: Ids of the rows.
            vectors: Array of float32 [ids, d].

        Raises:
            ConfigError: The shape is wrong, or a vector has no finite float16 form.
        """
        import numpy as np

        dimension = self._gathering.dimension
        if vectors.shape != (len(ids), dimension):
            raise ConfigError(f"{len(ids)} ids need vectors of shape {(len(ids), dimension)}, not {vectors.shape}")
        with np.errstate(over="ignore"):
            stored = vectors.astype(np.float16)
        finite = np.isfinite(stored).all(axis=1)
        if not finite.all():
            passage_id = ids[int(finite.argmin())]
            raise ConfigError(
                f"the embedder's vector of passage {passage_id!r} has no finite numbers: choose another embedder"
            )
        self._gathering.append(ids, stored)

    def commit(self, delete: Collection[str] = ()) -> VectorInfo:
        """Add the written rows and delete others, in one step. After this, the writer cannot be used any more."""
        ids = self._gathering.ids
        gone = set(delete)
        info = self._folder._without(self._folder.info, gone | set(ids))
        if ids:
            # Segments from which shards will be built soon get a type that is built quickly.
            cheap = msgspec.structs.replace(info, type=_INTERIM, target=0.0) if info.unbuilt else info
            (segment,) = self._folder._segments([self._gathering], BuildHere(), cheap)
            if twice := len(set(ids)) < len(ids):
                segment = self._folder._thinned(segment, set(ids), keep_last=twice)
            info = msgspec.structs.replace(info, segments=(*info.segments, segment))
        self._folder._replace(info)
        return info

    def discard(self) -> None:
        self._gathering.discard()


def _live_rows(opened: OpenedSegment, shard: int, shards: int) -> Any:
    rows = opened.ids.of_shard(shard, shards)
    return rows if opened.live is None else rows[opened.live[rows]]


def _copy_rows(opened: OpenedSegment, folder: Path, rows: Any, gathering: Gathering) -> None:
    vectors = map_vectors(folder / f"{opened.segment.name}.vec", opened.segment.rows, opened.index.d)
    for start in range(0, len(rows), 65_536):
        some = rows[start : start + 65_536]
        gathering.append(opened.ids.names(some.tolist()), copy_rows(vectors, some))


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
    with AtomicFile(folder / NAME, folder / f".{NAME}.new") as file:
        write_all(file, msgspec.json.format(msgspec.json.encode(info)) + b"\n")

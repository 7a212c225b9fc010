"""Vectors by passage id in a folder, searched with FAISS. `vector_folder` is what writes one.

    DIR/vectors.json      what made the vectors, and the segments in use; replaced in one step by every change
    DIR/seg-X.faiss       a FAISS index over the rows of one segment; the other files are `vector_files`
    DIR/seg-X.live-N      which rows are not deleted, where some are
    DIR/pending.*         vectors that were added but not committed, kept over a kill

    index = open_vectors(folder)                              # a snapshot, memory-mapped
    index.search(queries, topk)                               # [[(id, score), ...], ...]

Segments are searched one after the other and their hits merged, which is exact: scores do not depend on the segment.
They are inner products, or negative squared distances for the metric `l2`: larger is better. Readers keep what they
opened. Left out: passages (only ids are here), embedding (see `embedding`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.vectors.calibration import Metric, set_search
from pyrag.retrieval.vectors.files import RowIds, map_vectors, mapped, taken
from pyrag.retrieval.vectors.types import AUTO, RECALL

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix
    from pyrag.retrieval.filters.selection import SelectedPassages

FORMAT = 1
NAME = "vectors.json"

SCANNED = 2000  # selected rows that are compared at once, in some milliseconds
_MAX_ASKED = 4096  # rows of one search of an index; beyond that, comparing the selected ones is cheaper
_SPARE = 16
_BLOCK = 16_384  # rows that are compared at a time

Hit = tuple[str, float]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One segment; `live` names the file of remaining rows, empty if all are. `recall` was measured, see `types`."""

    name: str
    rows: int
    type: str
    search: str = ""
    recall: float = 1.0
    live: str = ""
    deleted: int = 0


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Storage of vectors: a FAISS factory string or `auto`, the recall to reach, and the number of shards."""

    type: str = AUTO
    target: float = RECALL
    shards: int = 1


class VectorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `vectors.json`; `Layout` explains `type`, `target` and `shards`.

    The shards in `unbuilt` are yet to be made out of the segments that were added one by one.
    """

    format: int = FORMAT
    fingerprint: Fingerprint
    metric: Metric = "ip"
    type: str = AUTO
    target: float = RECALL
    shards: int = 1
    unbuilt: tuple[int, ...] = ()
    segments: tuple[Segment, ...] = ()

    @property
    def layout(self) -> Layout:
        return Layout(type=self.type, target=self.target, shards=self.shards)

    @property
    def recall(self) -> float:
        """Recall of the worst segment."""
        return min((one.recall for one in self.segments), default=1.0)

    @property
    def count(self) -> int:
        return sum(segment.rows - segment.deleted for segment in self.segments)


@dataclass(frozen=True, slots=True)
class OpenedSegment:
    """An open segment; `live` is an array with a truth value a row, or None without deletions."""

    segment: Segment
    index: Any
    ids: RowIds
    live: Any
    vectors: Any  # float16 [rows, d], memory-mapped


class VectorIndex:
    """A snapshot of a folder, for any number of threads. Changes to the folder do not change it."""

    def __init__(self, info: VectorInfo, segments: Sequence[OpenedSegment]) -> None:
        self.info = info
        self._segments = segments
        self._count = info.count

    def __len__(self) -> int:
        return self._count

    def ids(self) -> Iterator[str]:
        for one in self._segments:
            live = None if one.live is None else one.live.tolist()
            yield from (name for row, name in enumerate(one.ids) if live is None or live[row])

    def check(self, fingerprint: Fingerprint) -> None:
        """Raise `ConfigError` unless the vectors of an embedder can be compared with these."""
        difference = self.info.fingerprint.difference(fingerprint)
        if difference:
            raise ConfigError(
                f"the index was embedded with {difference} as the query embedder has it: "
                "name the index's own embedder with --embedder, or build the index again with this one"
            )

    def search(self, queries: Matrix, topk: int, selection: SelectedPassages | None = None) -> list[list[Hit]]:
        """Return ids with scores for each query, best first.

        Args:
            queries: float32 [queries, d].
            topk: Maximum number of hits a query.
            selection: The passages that may be found; None for all.
        """
        _one_thread()
        if topk < 1:
            return [[] for _ in queries]
        if selection is None:
            parts = [self._hits(one, queries, topk) for one in self._segments]
        else:
            parts = [self._hits_among(one, queries, topk, selection) for one in self._segments]
        if len(parts) == 1:
            return parts[0]
        return [_merged([part[row] for part in parts], topk) for row in range(len(queries))]

    def _hits(self, opened: OpenedSegment, queries: Matrix, topk: int) -> list[list[Hit]]:
        """Search one segment; deleted rows are removed afterwards, which every index type allows, and more are asked
        for if needed."""
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

    def _hits_among(
        self, opened: OpenedSegment, queries: Matrix, topk: int, selection: SelectedPassages
    ) -> list[list[Hit]]:
        """Search the selected rows of one segment.

        The index is asked for as many more as rows are selected. Where few are, or that does not give enough, all
        selected vectors are compared, as they are on disk.
        """
        rows = _selected_rows(opened, selection)
        found: list[list[Hit]] = [[] for _ in queries]
        if not len(rows):
            return found
        left = list(range(len(queries)))
        limit = 2 * topk * opened.segment.rows // len(rows) + _SPARE
        if len(rows) > SCANNED and limit <= _MAX_ASKED:
            scores, hits = opened.index.search(queries, min(limit, opened.segment.rows))
            if self.info.metric == "l2":
                scores = -scores
            for at, (some, row_scores) in enumerate(zip(hits, scores, strict=True)):
                inside = _is_member(some, rows)
                chosen = zip(some[inside].tolist(), row_scores[inside].tolist(), strict=True)
                found[at] = _named_hits(opened, list(chosen), topk)
            left = [at for at, some in enumerate(found) if len(some) < topk]
        for at in left:
            pairs = _nearest_rows(opened.vectors, rows, queries[at], topk, self.info.metric)
            found[at] = _named_hits(opened, pairs, topk)
        return found


def _selected_rows(opened: OpenedSegment, selection: SelectedPassages) -> Any:
    """Return the rows of a segment that are selected and not deleted, remembered with the selection."""
    name = opened.segment.name
    if name not in selection.rows:
        rows = opened.ids.rows_of_keys(selection.keys)
        selection.rows[name] = rows if opened.live is None else rows[opened.live[rows]]
    return selection.rows[name]


def _named_hits(opened: OpenedSegment, pairs: list[tuple[int, float]], topk: int) -> list[Hit]:
    names = opened.ids.names(row for row, _ in pairs)
    hits = [(name, score) for name, (_, score) in zip(names, pairs, strict=True)]
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:topk]


def _named(opened: OpenedSegment, rows: list[int], scores: list[float], topk: int) -> list[Hit]:
    """Replace rows by ids; rows of -1 at the end mean that FAISS has found no more."""
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
    """Open a folder of vectors. Raises `DataError` if it holds none that this pyrag can read."""
    folder = Path(folder)
    info = read_vector_info(folder)
    while True:
        try:
            return VectorIndex(info, [open_segment(folder, one, info) for one in info.segments])
        except (OSError, RuntimeError, ValueError, MemoryError) as error:
            before, info = info, read_vector_info(folder)
            if info == before:  # and not replaced since it was read
                reason = str(error).partition("\n")[0][-200:]
                cure = "build the index again, with --rebuild"
                raise DataError(f"the vectors in {folder} are damaged ({reason}): {cure}") from error


def open_segment(folder: Path, segment: Segment, info: VectorInfo) -> OpenedSegment:
    """Open one segment.

    Args:
        folder: Folder of the vectors.
        segment: The segment.
        info: Content of `vectors.json`.

    Raises:
        OSError, RuntimeError, ValueError, MemoryError: Its files are damaged.
    """
    import faiss

    index = faiss.read_index(str(folder / f"{segment.name}.faiss"), faiss.IO_FLAG_MMAP_IFC)
    set_search(index, segment.search)
    ids = RowIds(folder / segment.name)
    if not index.ntotal == len(ids) == segment.rows or index.d != info.fingerprint.dimension:
        raise ValueError(f"{segment.name} holds {index.ntotal} vectors and {len(ids)} ids, not {segment.rows}")
    live = mapped(folder / segment.live, "?") if segment.live else None
    if live is not None and len(live) != segment.rows:
        raise ValueError(f"{segment.live} is of {len(live)} rows, not {segment.rows}")
    vectors = map_vectors(folder / f"{segment.name}.vec", segment.rows, index.d)
    return OpenedSegment(segment, index, ids, live, vectors)


def read_vector_info(folder: str | Path) -> VectorInfo:
    path = Path(folder) / NAME
    try:
        info = msgspec.json.decode(path.read_bytes(), type=VectorInfo)
    except FileNotFoundError:
        raise DataError(f"{folder} holds no vectors: build the index with an embedder") from None
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}): build the index again, with --rebuild") from error
    if info.format != FORMAT:
        raise DataError(f"{path} has version {info.format} and this pyrag reads {FORMAT}: build the index again")
    return info


def _nearest_rows(vectors: Any, rows: Any, query: Any, topk: int, metric: Metric) -> list[tuple[int, float]]:
    """Return the rows nearest to a query, with all that tie with the last of them, in no order: an exact search among
    selected ones, for filters.
    """
    import numpy as np

    parts = [_scores(taken(vectors, rows[at : at + _BLOCK]), query, metric) for at in range(0, len(rows), _BLOCK)]
    scores = np.concatenate(parts)
    if len(scores) > topk:
        best = np.flatnonzero(scores >= np.partition(scores, len(scores) - topk)[len(scores) - topk])
        rows, scores = rows[best], scores[best]
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def _is_member(some: Any, rows: Any) -> Any:
    """Return for each of some row numbers (-1: none) if it is among others, which ascend and are at least one."""
    import numpy as np

    places = np.minimum(rows.searchsorted(some), len(rows) - 1)
    return (rows[places] == some) & (some >= 0)


def _scores(block: Any, query: Any, metric: Metric) -> Any:
    return block @ query if metric == "ip" else -((block - query) ** 2).sum(axis=1)

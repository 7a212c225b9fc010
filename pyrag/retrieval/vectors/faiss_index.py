"""Vectors by passage id in a folder, searched with FAISS. `folder` writes them.

    DIR/vectors.json      embedder's fingerprint, and the segments in use; replaced in one step by every change
    DIR/seg-X.faiss       FAISS index over the rows of a segment; `files` describes the other files
    DIR/seg-X.live-N      the rows that are not deleted, if some are
    DIR/pending.*         vectors that were added but not committed, which survive a kill

    index = open_vectors(folder)                              # a snapshot, memory-mapped
    index.search(queries, topk)                               # [[(id, score), ...], ...]

Segments are searched one after another, and their hits are merged. This is exact, since scores do not depend on the
segment. Scores are inner products, or negative squared distances for the metric `l2`; higher is better. A reader keeps
the state that it opened. Passages are stored elsewhere (only ids are stored here), and `embedders` computes the
vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pyrag._io.packages import VECTORS, require_packages
from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.vectors.calibration import Metric, set_search
from pyrag.retrieval.vectors.files import RowIds, copy_rows, map_vectors, mapped
from pyrag.retrieval.vectors.index_types import AUTO, RECALL

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix
    from pyrag.retrieval.filters.selection import SelectedPassages

FORMAT = 1
NAME = "vectors.json"

SCANNED = 2000  # maximum number of selected rows that are compared directly, which takes some milliseconds
_MAX_ASKED = 4096  # rows per search of an index; beyond that, comparing the selected rows is cheaper
_SPARE = 16
_BLOCK = 16_384  # rows that are compared at a time

Hit = tuple[str, float]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Segment of vectors. `live` names the file of remaining rows, if some are deleted. `types` explains `recall`."""

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
    """Content of `vectors.json`. `Layout` explains `type`, `target` and `shards`.

    The shards in `unbuilt` are yet to be built from the segments that were added one by one.
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
        return min((segment.recall for segment in self.segments), default=1.0)

    @property
    def count(self) -> int:
        return sum(segment.rows - segment.deleted for segment in self.segments)


@dataclass(frozen=True, slots=True)
class OpenedSegment:
    """Open segment. `live` is an array with one boolean per row, or None if no row is deleted."""

    segment: Segment
    index: Any
    ids: RowIds
    live: Any
    vectors: Any  # float16 [rows, d], memory-mapped


class VectorIndex:
    """Snapshot of a folder, for any number of threads. Changes to the folder do not affect it."""

    def __init__(self, info: VectorInfo, segments: Sequence[OpenedSegment]) -> None:
        self.info = info
        self._segments = segments
        self._count = info.count

    def __len__(self) -> int:
        return self._count

    def ids(self) -> Iterator[str]:
        for segment in self._segments:
            live = None if segment.live is None else segment.live.tolist()
            yield from (name for row, name in enumerate(segment.ids) if live is None or live[row])

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
            queries: Array of float32 [queries, d].
            topk: Maximum number of hits per query.
            selection: Passages to search. None for all.
        """
        _one_thread()
        if topk < 1:
            return [[] for _ in queries]
        if selection is None:
            parts = [self._hits(segment, queries, topk) for segment in self._segments]
        else:
            parts = [self._hits_among(segment, queries, topk, selection) for segment in self._segments]
        if len(parts) == 1:
            return parts[0]
        return [_merged([part[row] for part in parts], topk) for row in range(len(queries))]

    def _hits(self, opened: OpenedSegment, queries: Matrix, topk: int) -> list[list[Hit]]:
        """Search a segment, requesting more rows if some are deleted, since deleted rows are removed afterwards."""
        rows = opened.segment.rows
        limit = min(topk, rows)
        if opened.live is not None:
            limit = min(topk + 2 * topk * opened.segment.deleted // rows, rows)
        while True:
            scores, found_rows = opened.index.search(queries, limit)
            if self.info.metric == "l2":
                scores = -scores
            hits = [_named(opened, *pair, topk) for pair in zip(found_rows.tolist(), scores.tolist(), strict=True)]
            enough = min(topk, rows - opened.segment.deleted)
            if limit >= rows or opened.live is None or all(len(hits_of_query) >= enough for hits_of_query in hits):
                return hits
            limit = min(4 * limit, rows)

    def _hits_among(
        self, opened: OpenedSegment, queries: Matrix, topk: int, selection: SelectedPassages
    ) -> list[list[Hit]]:
        """Search a segment. If rows are deleted, more rows are requested, since deleted rows are removed afterwards.

        The smaller the selection, the more rows are requested from the index. If few rows are selected, or the index
        returns too few of them, all selected vectors are compared as they are stored.
        """
        rows = _selected_rows(opened, selection)
        results: list[list[Hit]] = [[] for _ in queries]
        if not len(rows):
            return results
        remaining = list(range(len(queries)))
        limit = 2 * topk * opened.segment.rows // len(rows) + _SPARE
        if len(rows) > SCANNED and limit <= _MAX_ASKED:
            scores, hits = opened.index.search(queries, min(limit, opened.segment.rows))
            if self.info.metric == "l2":
                scores = -scores
            for at, (some, row_scores) in enumerate(zip(hits, scores, strict=True)):
                inside = _is_member(some, rows)
                selection_pairs = zip(some[inside].tolist(), row_scores[inside].tolist(), strict=True)
                results[at] = _named_hits(opened, list(selection_pairs), topk)
            remaining = [at for at, some in enumerate(results) if len(some) < topk]
        for at in remaining:
            pairs = _nearest_rows(opened.vectors, rows, queries[at], topk, self.info.metric)
            results[at] = _named_hits(opened, pairs, topk)
        return results


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
    """Return ids instead of row numbers, without the -1 that FAISS appends if it has fewer results."""
    live = opened.live
    if live is not None or rows[-1] < 0:
        pairs = zip(rows, scores, strict=True)
        live_pairs = [(row, score) for row, score in pairs if row >= 0 and (live is None or live[row])][:topk]
        rows, scores = [row for row, _ in live_pairs], [score for _, score in live_pairs]
    return list(zip(opened.ids.names(rows), scores, strict=True))


def _merged(parts: list[list[Hit]], topk: int) -> list[Hit]:
    return sorted((hit for part in parts for hit in part), key=lambda hit: (-hit[1], hit[0]))[:topk]


_threads = threading.local()


def _one_thread() -> None:
    """Set FAISS's number of threads to 1 for the calling thread, since FAISS stores it per thread."""
    if not getattr(_threads, "set", False):
        import faiss

        faiss.omp_set_num_threads(1)
        _threads.set = True


def open_vectors(folder: str | Path) -> VectorIndex:
    """Open a folder of vectors.

    Raises:
        ConfigError: FAISS or NumPy is not installed.
        DataError: The folder holds no vectors that this version of pyrag can read.
    """
    require_packages(f"the index {folder} holds vectors and", VECTORS)
    folder = Path(folder)
    info = read_vector_info(folder)
    while True:
        try:
            return VectorIndex(info, [open_segment(folder, segment, info) for segment in info.segments])
        except (OSError, RuntimeError, ValueError, MemoryError) as error:
            before, info = info, read_vector_info(folder)
            if info == before:  # it was not replaced meanwhile
                reason = str(error).partition("\n")[0][-200:]
                cure = "build the index again, with --rebuild"
                raise DataError(f"the vectors in {folder} are damaged ({reason}): {cure}") from error


def open_segment(folder: Path, segment: Segment, info: VectorInfo) -> OpenedSegment:
    """Open a segment.

    Args:
        folder: Folder of the vectors.
        segment: The segment.
        info: Content of `vectors.json`.

    Raises:
        OSError, RuntimeError, ValueError, MemoryError: The files of the segment are damaged.
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
    """Search selected rows exactly; return the nearest rows and all rows that tie with the last one, in any order."""
    import numpy as np

    parts = [_scores(copy_rows(vectors, rows[at : at + _BLOCK]), query, metric) for at in range(0, len(rows), _BLOCK)]
    scores = np.concatenate(parts)
    if len(scores) > topk:
        best = np.flatnonzero(scores >= np.partition(scores, len(scores) - topk)[len(scores) - topk])
        rows, scores = rows[best], scores[best]
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def _is_member(some: Any, rows: Any) -> Any:
    """Return for each row number (-1 for a missing row) whether it is in `rows`, which is ascending and not empty."""
    import numpy as np

    places = np.minimum(rows.searchsorted(some), len(rows) - 1)
    return (rows[places] == some) & (some >= 0)


def _scores(block: Any, query: Any, metric: Metric) -> Any:
    return block @ query if metric == "ip" else -((block - query) ** 2).sum(axis=1)

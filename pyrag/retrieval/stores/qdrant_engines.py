"""Connections to Qdrant: a server, the client's emulation of a server, or the server's engine in this process.

`qdrant` decides what is stored and searched; this module translates it for the libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyrag.errors import ConfigError, install_extra
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.hybrid import DEPTH, K
from pyrag.retrieval.stores.qdrant_filters import QdrantWords
from pyrag.retrieval.stores.sparse import Sparse

_K = K + 1  # Qdrant counts ranks from 0
_DENSE, _SPARSE = "dense", "sparse"
OPTIMISED = 200_000  # points per optimisation; a million at once would take 6 GB
FILE = "file"  # of the payload: the document that a passage belongs to, empty for documents of one passage
_SCANNED = 1_000  # points that a scan fetches at once
_SEGMENTS = 8  # maximum number of graphs; with Qdrant's default of 2, each optimisation rebuilds all of them

Payload = dict[str, Any]
Hits = list[tuple[Payload, float]]


@dataclass(frozen=True, slots=True)
class Point:
    """Passage with its vectors. Without vectors, it can only be found by its key."""

    key: str
    payload: Payload
    dense: list[float] | None = None
    sparse: Sparse | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Search near a vector, by a query's terms, or both. None omits one half."""

    dense: list[float] | None
    sparse: Sparse | None
    limit: int
    where: Filter | None = None
    weights: tuple[float, float] = (1.0, 1.0)
    """Weights of dense and sparse. Qdrant divides ranks by them, while `hybrid.fuse` multiplies scores."""


class QdrantEngine(Protocol):
    """Synchronous operations on Qdrant, in a server or in this process."""

    def create(self, dimension: int, *, normalised: bool) -> None:
        """Create the collection if it is missing.

        Args:
            dimension: Length of dense vectors.
            normalised: Whether all vectors have length 1.
        """
        ...

    def upsert(self, points: Sequence[Point]) -> None: ...
    def delete(self, keys: Sequence[str]) -> None: ...
    def search(self, queries: Sequence[Query]) -> list[Hits]: ...
    def scan(self, where: Filter | None, files: Sequence[str] = ()) -> Iterator[Payload]:
        """Yield the payloads of all points that the filter passes.

        Args:
            where: Filter of passages. None for no filter.
            files: Files whose points to yield, in addition to points whose file is unknown. Empty for all files.
        """
        ...

    def payload(self, key: str) -> Payload | None: ...
    def count(self) -> int: ...
    def optimise(self) -> None: ...
    def close(self) -> None: ...


class RemoteEngine:
    """Connection to a server, or to the client's emulation of a server."""

    def __init__(self, collection: str, place: str, timeout: float) -> None:
        try:
            from qdrant_client import QdrantClient
        except ImportError as error:
            raise ConfigError(f"Qdrant needs its client: {install_extra('cluster')}") from error
        self._name = collection
        self._in_memory = place == ":memory:"
        self._client: Any = (
            QdrantClient(":memory:")
            if self._in_memory
            else QdrantClient(url=place, timeout=max(1, round(timeout)), check_compatibility=False)
        )

    def create(self, dimension: int, *, normalised: bool) -> None:
        """Create the collection if it is missing.

        Args:
            dimension: Length of dense vectors.
            normalised: Whether all vectors have length 1.
        """
        from qdrant_client import models

        distance = models.Distance.COSINE if normalised else models.Distance.DOT
        if not self._client.collection_exists(self._name):
            self._client.create_collection(
                self._name,
                vectors_config={_DENSE: models.VectorParams(size=dimension, distance=distance)},
                sparse_vectors_config={_SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                quantization_config=models.ScalarQuantization(
                    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
                ),
            )
            if not self._in_memory:
                self._client.create_payload_index(self._name, FILE, models.PayloadSchemaType.KEYWORD, wait=True)

    def upsert(self, points: Sequence[Point]) -> None:
        from qdrant_client import models

        made = [
            models.PointStruct(id=point.key, vector=_vectors(models, point), payload=point.payload) for point in points
        ]
        self._client.upsert(self._name, made, wait=True)

    def delete(self, keys: Sequence[str]) -> None:
        from qdrant_client import models

        self._client.delete(self._name, models.PointIdsList(points=list(keys)), wait=True)

    def search(self, queries: Sequence[Query]) -> list[Hits]:
        answers = self._client.query_batch_points(self._name, [self._request(query) for query in queries])
        return [[(point.payload or {}, point.score) for point in answer.points] for answer in answers]

    def _request(self, asked: Query) -> Any:
        from qdrant_client import models

        halves = [{"query": query, "using": using} for using, query in _vectors(models, asked).items()]
        passing = None if asked.where is None else QdrantWords(models, models.Range).filter(asked.where)
        how: dict[str, Any] = {**halves[0], "filter": passing}
        if len(halves) == 2:
            limit = max(DEPTH, asked.limit)
            how = {
                "prefetch": [models.Prefetch(**half, limit=limit, filter=passing) for half in halves],
                "query": models.RrfQuery(rrf=models.Rrf(k=_K, weights=list(asked.weights))),
            }
        return models.QueryRequest(limit=asked.limit, with_payload=True, **how)

    def scan(self, where: Filter | None, files: Sequence[str] = ()) -> Iterator[Payload]:
        """Yield the payloads of all points that the filter passes.

        Args:
            where: Filter of passages. None for no filter.
            files: Files whose points to yield, in addition to points whose file is unknown. Empty for all files.
        """
        from qdrant_client import models

        passing = _scanned(QdrantWords(models, models.Range), where, files)
        offset: Any = None
        while True:
            records, offset = self._client.scroll(
                self._name, scroll_filter=passing, limit=_SCANNED, offset=offset, with_payload=True
            )
            yield from (record.payload or {} for record in records)
            if offset is None:
                return

    def payload(self, key: str) -> Payload | None:
        if not self._client.collection_exists(self._name):
            return None
        records = self._client.retrieve(self._name, [key], with_payload=True)
        return records[0].payload if records else None

    def count(self) -> int:
        return int(self._client.count(self._name, exact=True).count)

    def optimise(self) -> None:
        """Do nothing, since a server optimises by itself."""

    def close(self) -> None:
        self._client.close()


class LocalEngine:
    """The server's engine in this process, over its own folder. Vectors are stored as float16, as in index folders.

    It optimises only on request. Until then, points are searched one by one.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import qdrant_edge
        except ImportError as error:
            raise ConfigError("Qdrant in a folder needs its engine: pip install qdrant-edge-py") from error
        self._edge: Any = qdrant_edge
        self._folder = folder
        self._shard: Any = qdrant_edge.EdgeShard.load(str(folder)) if folder.exists() else None
        self._new = 0

    def create(self, dimension: int, *, normalised: bool) -> None:
        """Create the shard if it is missing.

        Args:
            dimension: Length of dense vectors.
            normalised: Whether all vectors have length 1.
        """
        if self._shard is not None:
            return
        edge = self._edge
        distance = edge.Distance.Cosine if normalised else edge.Distance.Dot
        config = edge.EdgeConfig(
            vectors={
                _DENSE: edge.EdgeVectorParams(
                    size=dimension, distance=distance, datatype=edge.VectorStorageDatatype.Float16
                )
            },
            sparse_vectors={_SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            optimizers=edge.EdgeOptimizersConfig(default_segment_number=_SEGMENTS),
        )
        self._folder.mkdir(parents=True)
        self._shard = edge.EdgeShard.create(str(self._folder), config)
        self._shard.update(edge.UpdateOperation.create_field_index(FILE, edge.PayloadSchemaType.Keyword))

    def upsert(self, points: Sequence[Point]) -> None:
        edge = self._edge
        made = [edge.Point(point.key, _vectors(edge, point), point.payload) for point in points]
        self._shard.update(self._edge.UpdateOperation.upsert_points(made))
        self._new += len(made)
        if self._new >= OPTIMISED:
            self.optimise()

    def delete(self, keys: Sequence[str]) -> None:
        self._shard.update(self._edge.UpdateOperation.delete_points(list(keys)))

    def search(self, queries: Sequence[Query]) -> list[Hits]:
        request = self._edge.QueryBatchRequest([self._request(query) for query in queries])
        return [[(point.payload or {}, point.score) for point in points] for points in self._shard.query_batch(request)]

    def _request(self, asked: Query) -> Any:
        edge = self._edge
        halves = [edge.Query.Nearest(query, using=using) for using, query in _vectors(edge, asked).items()]
        passing = None if asked.where is None else QdrantWords(edge, edge.RangeFloat).filter(asked.where)
        if len(halves) == 1:
            return edge.QueryRequest(limit=asked.limit, query=halves[0], filter=passing, with_payload=True)
        limit = max(DEPTH, asked.limit)
        prefetches = [edge.Prefetch(limit=limit, query=half, filter=passing) for half in halves]
        query = edge.Fusion.Rrf(k=_K, weights=list(asked.weights))
        return edge.QueryRequest(limit=asked.limit, query=query, prefetches=prefetches, with_payload=True)

    def scan(self, where: Filter | None, files: Sequence[str] = ()) -> Iterator[Payload]:
        """Yield the payloads of all points that the filter passes.

        Args:
            where: Filter of passages. None for no filter.
            files: Files whose points to yield, in addition to points whose file is unknown. Empty for all files.
        """
        passing = _scanned(QdrantWords(self._edge, self._edge.RangeFloat), where, files)
        offset: Any = None
        while True:
            request = self._edge.ScrollRequest(offset=offset, limit=_SCANNED, filter=passing, with_payload=True)
            records, offset = self._shard.scroll(request)
            yield from (record.payload or {} for record in records)
            if offset is None:
                return

    def payload(self, key: str) -> Payload | None:
        records = [] if self._shard is None else self._shard.retrieve([key], True, False)
        return records[0].payload if records else None

    def count(self) -> int:
        return int(self._shard.count(self._edge.CountRequest(exact=True)))

    def optimise(self) -> None:
        self._shard.optimize()
        self._shard.flush()  # ends the log of writes, which is as large as all of them
        self._new = 0

    def close(self) -> None:
        if self._shard is not None:
            self._shard.flush()
            self._shard.close()
            self._shard = None


def _scanned(words: QdrantWords, where: Filter | None, files: Sequence[str]) -> Any:
    """Return the filter for scanning files, or for scanning all points that `where` passes if `files` is empty."""
    if not files:
        return None if where is None else words.filter(where)
    return words.of_files(where, FILE, files)


def _vectors(library: Any, item: Point | Query) -> dict[str, Any]:
    """Return the vectors by name, as objects of a client library."""
    made: dict[str, Any] = {} if item.dense is None else {_DENSE: item.dense}
    if item.sparse is not None:
        made[_SPARSE] = library.SparseVector(indices=list(item.sparse), values=list(item.sparse.values()))
    return made

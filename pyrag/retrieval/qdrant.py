"""Passages and their vectors in Qdrant: a cluster by its URL, the embedded engine in a folder, or memory.

    qdrant:COLLECTION@http://host:6333    a server or cluster (`pyrag[cluster]`)
    qdrant:COLLECTION@:memory:            the client's own stand-in: exact, in Python, for tests
    qdrant:COLLECTION@DIR                 the server's engine in this process (the package qdrant-edge-py)

`QdrantStore` is the same code for all of them: it says what is stored and asked; `_Remote` and `_Edge` put it into the
words of their library. A passage is a point with the passage as payload; its id is a hash of the passage's, as Qdrant
wants numbers or UUIDs. It has a dense vector and BM25's sparse one (`sparse`); a hybrid query fuses both by reciprocal
rank within the engine. What made the vectors is kept in a point of its own, so that a collection refuses the queries of
another embedder, as an index folder does. Left out: sharding and replication factors (set them when the collection is
made).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pyrag.errors import ConfigError, ServiceError
from pyrag.retrieval.dense import PART
from pyrag.retrieval.embedding import Fingerprint, passage_text
from pyrag.retrieval.hybrid import DEPTH, K
from pyrag.retrieval.sparse import Sparse, passage_terms, query_terms
from pyrag.retrieval.threads import in_thread
from pyrag.trace import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedding import Embedder, Matrix

_BATCH = 256
_OPTIMISED = 200_000  # points at a time; all at once, a million would take 6 GB
_SEGMENTS = 8  # as many graphs may lie side by side: with Qdrant's own 2, each of those steps builds all anew
_K = K + 1  # Qdrant counts ranks from 0
_ABOUT = str(uuid.UUID(int=0))  # the point that holds the fingerprint
_MARK = "pyrag_fingerprint"
_DENSE, _SPARSE = "dense", "sparse"

Payload = dict[str, Any]
Found = list[tuple[Payload, float]]


@dataclass(frozen=True, slots=True)
class _Point:
    """Without vectors, it is found by its key alone."""

    key: str
    payload: Payload
    dense: list[float] | None = None
    sparse: Sparse | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is near a vector, shares terms with a query, or both: None leaves a half out."""

    dense: list[float] | None
    sparse: Sparse | None
    weights: tuple[float, float] = (1.0, 1.0)
    """Of dense and sparse. Qdrant divides ranks by them where `hybrid.fuse` multiplies scores: the same if equal."""


class _Engine(Protocol):
    """What is asked of a Qdrant, however it is reached. Synchronous."""

    def create(self, dimension: int, *, normalised: bool) -> None: ...
    def upsert(self, points: Sequence[_Point]) -> None: ...
    def delete(self, keys: Sequence[str]) -> None: ...
    def search(self, asked: _Asked, topk: int) -> Found: ...
    def payload(self, key: str) -> Payload | None: ...
    def count(self) -> int: ...
    def optimise(self) -> None: ...
    def close(self) -> None: ...


class QdrantStore:
    """Add, delete and search passages by id in one collection. Raises `ServiceError`, `ConfigError`."""

    def __init__(self, spec: str, *, timeout: float = 10.0) -> None:
        self._spec = spec
        collection, _, place = spec.removeprefix("qdrant:").partition("@")
        if not collection or not place:
            raise ConfigError(f"{spec!r} names no collection: write qdrant:COLLECTION@http://host:6333 or a folder")
        self._engine: _Engine
        if place == ":memory:" or place.startswith(("http://", "https://")):
            self._engine = _Remote(collection, place, timeout)
        else:
            self._engine = _Edge(Path(place).expanduser() / collection)

    @property
    def name(self) -> str:
        return self._spec

    def create(self, fingerprint: Fingerprint) -> None:
        """Makes the collection, or checks that the one that is there was embedded alike."""
        with self._errors("created"):
            about = self._about()
            if about is None:
                self._engine.create(fingerprint.dimension, normalised=fingerprint.normalised)
                self._engine.upsert([_Point(_ABOUT, {_MARK: msgspec.to_builtins(fingerprint)})])
                return
        self._refuse(about, fingerprint)

    def check(self, fingerprint: Fingerprint) -> None:
        with self._errors("read"):
            about = self._about()
        if about is None:
            raise ConfigError(f"{self._spec} holds no passages of pyrag: index some into it first")
        self._refuse(about, fingerprint)

    def add(self, passages: Sequence[Passage], vectors: Matrix) -> None:
        """Passages whose id is there are replaced."""
        with self._errors("written"):
            for start in range(0, len(passages), _BATCH):
                some = zip(passages[start : start + _BATCH], vectors[start : start + _BATCH].tolist(), strict=True)
                self._engine.upsert([_point(one, vector) for one, vector in some])

    async def add_passages(self, passages: Sequence[Passage], embedder: Embedder) -> None:
        vectors = await embedder.embed_passages([passage_text(one.title, one.text) for one in passages])
        await in_thread(self.add, passages, vectors)

    def delete(self, ids: Sequence[str]) -> None:
        with self._errors("written"):
            self._engine.delete([_key(one) for one in ids])

    def search(self, vector: Matrix | None, topk: int, query: str = "", dense_weight: float = 0.5) -> list[Passage]:
        """By the vector, by the words of the query, or by both where both are given and have a weight."""
        asked = _asked(vector, query, dense_weight)
        with self._errors("searched"):
            found = self._engine.search(asked, topk)
        part = PART if asked.sparse is None else "sparse" if asked.dense is None else "fused"
        hits = [_passage(payload, score, part) for payload, score in found]
        return sorted(hits, key=lambda passage: (-passage.score, passage.id))

    def optimise(self) -> None:
        """Builds the graph now, where it is not the server that decides when."""
        self._engine.optimise()

    def __len__(self) -> int:
        with self._errors("read"):
            return self._engine.count() - 1

    def close(self) -> None:
        self._engine.close()

    def _about(self) -> Fingerprint | None:
        payload = self._engine.payload(_ABOUT)
        return None if payload is None else msgspec.convert(payload[_MARK], Fingerprint)

    def _refuse(self, mine: Fingerprint, fingerprint: Fingerprint) -> None:
        if difference := mine.difference(fingerprint):
            raise ConfigError(
                f"{self._spec} was embedded with {difference} as the embedder has it: name its own with --embedder"
            )

    def _errors(self, doing: str) -> _Errors:
        return _Errors(self._spec, doing)


class QdrantRetriever:
    """A `Retriever` over a store; the first query checks the embedder. `dense_weight` is in [0, 1], as in a hybrid."""

    def __init__(self, store: QdrantStore, embedder: Embedder, *, dense_weight: float = 0.5) -> None:
        self._store = store
        self._embedder = embedder
        self._dense_weight = dense_weight
        self._checked = False

    @property
    def name(self) -> str:
        return self._store.name

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        if not query.strip() or topk < 1:
            return []
        vectors = await self._embedder.embed_queries([query])
        if not self._checked:
            await in_thread(self._store.check, await self._embedder.fingerprint())
            self._checked = True
        return await in_thread(self._store.search, vectors[0], topk, query, self._dense_weight)

    async def aclose(self) -> None:
        await self._embedder.aclose()
        self._store.close()


class _Errors:
    """Turns what a client library raises into one sentence."""

    def __init__(self, spec: str, doing: str) -> None:
        self._spec, self._doing = spec, doing

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, ConfigError | ServiceError):
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            message = f"{self._spec} cannot be {self._doing} ({reason}): look whether it runs and the name is right"
            raise ServiceError(message, service=self._spec) from error


class _Remote:
    """A server, or the client's stand-in for one."""

    def __init__(self, collection: str, place: str, timeout: float) -> None:
        try:
            from qdrant_client import QdrantClient
        except ImportError as error:
            raise ConfigError("Qdrant needs its client: pip install 'pyrag[cluster]'") from error
        self._name = collection
        memory = place == ":memory:"
        self._client: Any = (
            QdrantClient(":memory:")
            if memory
            else QdrantClient(url=place, timeout=max(1, round(timeout)), check_compatibility=False)
        )

    def create(self, dimension: int, *, normalised: bool) -> None:
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

    def upsert(self, points: Sequence[_Point]) -> None:
        from qdrant_client import models

        made = [models.PointStruct(id=one.key, vector=_vectors(models, one), payload=one.payload) for one in points]
        self._client.upsert(self._name, made, wait=True)

    def delete(self, keys: Sequence[str]) -> None:
        from qdrant_client import models

        self._client.delete(self._name, models.PointIdsList(points=list(keys)), wait=True)

    def search(self, asked: _Asked, topk: int) -> Found:
        from qdrant_client import models

        halves = [{"query": query, "using": using} for using, query in _vectors(models, asked).items()]
        how: dict[str, Any] = halves[0]
        if len(halves) == 2:
            how = {
                "prefetch": [models.Prefetch(**half, limit=max(DEPTH, topk)) for half in halves],
                "query": models.RrfQuery(rrf=models.Rrf(k=_K, weights=list(asked.weights))),
            }
        points = self._client.query_points(self._name, limit=topk, with_payload=True, **how).points
        return [(point.payload or {}, point.score) for point in points]

    def payload(self, key: str) -> Payload | None:
        if not self._client.collection_exists(self._name):
            return None
        records = self._client.retrieve(self._name, [key], with_payload=True)
        return records[0].payload if records else None

    def count(self) -> int:
        return int(self._client.count(self._name, exact=True).count)

    def optimise(self) -> None:
        """The server does it by itself."""

    def close(self) -> None:
        self._client.close()


class _Edge:
    """The server's engine in this process, over a folder of its own. Vectors are kept as float16, as in our folders.

    It optimises nothing by itself: points are searched one by one until it is told to.
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

    def upsert(self, points: Sequence[_Point]) -> None:
        edge = self._edge
        made = [edge.Point(one.key, _vectors(edge, one), one.payload) for one in points]
        self._shard.update(self._edge.UpdateOperation.upsert_points(made))
        self._new += len(made)
        if self._new >= _OPTIMISED:
            self.optimise()

    def delete(self, keys: Sequence[str]) -> None:
        self._shard.update(self._edge.UpdateOperation.delete_points(list(keys)))

    def search(self, asked: _Asked, topk: int) -> Found:
        edge = self._edge
        halves = [edge.Query.Nearest(query, using=using) for using, query in _vectors(edge, asked).items()]
        prefetches, query = None, halves[0]
        if len(halves) == 2:
            prefetches = [edge.Prefetch(limit=max(DEPTH, topk), query=half) for half in halves]
            query = edge.Fusion.Rrf(k=_K, weights=list(asked.weights))
        points = self._shard.query(edge.QueryRequest(limit=topk, query=query, prefetches=prefetches, with_payload=True))
        return [(point.payload or {}, point.score) for point in points]

    def payload(self, key: str) -> Payload | None:
        records = [] if self._shard is None else self._shard.retrieve([key], True, False)
        return records[0].payload if records else None

    def count(self) -> int:
        return int(self._shard.count(self._edge.CountRequest(exact=True)))

    def optimise(self) -> None:
        self._shard.optimize()
        self._shard.flush()  # which ends the log of what was written, as large as all of it
        self._new = 0

    def close(self) -> None:
        if self._shard is not None:
            self._shard.flush()
            self._shard.close()
            self._shard = None


def _key(one: str) -> str:
    """A UUID, which Qdrant takes as an id; 122 bits of the hash are never the fingerprint's zero."""
    return str(uuid.UUID(bytes=hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def _asked(vector: Matrix | None, query: str, dense_weight: float) -> _Asked:
    sparse = query_terms(query) if dense_weight < 1 and query else None
    dense = vector.tolist() if vector is not None and (dense_weight > 0 or not sparse) else None
    return _Asked(dense, sparse or None, (2 * dense_weight, 2 - 2 * dense_weight))


def _vectors(library: Any, one: _Point | _Asked) -> dict[str, Any]:
    """By name, in the words of either library."""
    made: dict[str, Any] = {} if one.dense is None else {_DENSE: one.dense}
    if one.sparse is not None:
        made[_SPARSE] = library.SparseVector(indices=list(one.sparse), values=list(one.sparse.values()))
    return made


def _point(one: Passage, vector: list[float]) -> _Point:
    return _Point(_key(one.id), _payload(one), vector, passage_terms(one.title, one.text))


def _payload(one: Passage) -> Payload:
    return {
        "id": one.id, "title": one.title, "text": one.text, "source": one.source, "start": one.start, "end": one.end,
    }  # fmt: skip


def _passage(payload: Payload, score: float, part: str) -> Passage:
    one, title, text, source = (str(payload.get(name, "")) for name in ("id", "title", "text", "source"))
    start, end = payload.get("start"), payload.get("end")
    return Passage(one, title, text, score, source, {part: score}, start, end)

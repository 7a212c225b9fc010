"""Store of passages and their vectors in Qdrant: in a cluster, in the embedded engine over a folder, or in memory.

    qdrant:COLLECTION@http://host:6333    a server or cluster (extra `cluster`)
    qdrant:COLLECTION@:memory:            the client's own emulation in Python, which is exact; for tests
    qdrant:COLLECTION@DIR                 the server's engine in this process (the package qdrant-edge-py)

`QdrantStore` decides what is stored and searched; `qdrant_engines` translates it for the libraries. Each passage is the
payload of a point. The point's id is a hash of the passage's id, since Qdrant requires numbers or UUIDs. It has a dense
vector and BM25's sparse vector (`sparse`); the engine fuses both by reciprocal rank for a hybrid query. A separate
point stores the embedder's fingerprint, so that queries embedded by a different model are refused. Sharding and
replication factors are not supported; set them when you create the collection.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pyrag._io.redaction import without_secrets
from pyrag._io.specs import expanded, parse_spec
from pyrag.errors import ConfigError
from pyrag.retrieval.catalogue.scanned import DocumentKey, document_key
from pyrag.retrieval.dense import PART, DenseQuery
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import best_first
from pyrag.retrieval.stores.qdrant_engines import (
    FILE,
    Hits,
    LocalEngine,
    Payload,
    Point,
    QdrantEngine,
    Query,
    RemoteEngine,
)
from pyrag.retrieval.stores.qdrant_filters import FACTS, facts_of
from pyrag.retrieval.stores.sparse import passage_terms, query_terms
from pyrag.retrieval.stores.store import Store, passage_of, payload_of, refuse_difference, store_errors
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

_BATCH = 256
_TIES = 10  # further hits, so that the id decides among equal ranks, of which an engine drops any
_ABOUT = str(uuid.UUID(int=0))  # id of the point with the fingerprint
_MARK = "pyrag_fingerprint"


class QdrantStore(Store):
    """Store of passages in a collection of Qdrant, by id.

    Methods raise `ServiceError` if the server cannot be used, and `ConfigError` if the collection cannot.
    """

    kind = "qdrant"

    def __init__(self, spec: str, *, timeout: float = 10.0) -> None:
        self._spec = without_secrets(spec)
        collection, place = parse_spec(spec).at_place
        if not collection or not place:
            raise ConfigError(f"{spec!r} names no collection: write qdrant:COLLECTION@http://host:6333 or a folder")
        self._engine: QdrantEngine
        if place == ":memory:" or place.startswith(("http://", "https://")):
            self._engine = RemoteEngine(collection, place, timeout)
        else:
            self._engine = LocalEngine(expanded(place) / collection)

    @property
    def name(self) -> str:
        return self._spec

    def create(self, fingerprint: Fingerprint) -> None:
        """Create the collection, or check that the existing one has the same fingerprint."""
        with store_errors(self._spec, "created"):
            about = self._about()
            if about is None:
                self._engine.create(fingerprint.dimension, normalised=fingerprint.normalised)
                self._engine.upsert([Point(_ABOUT, {_MARK: msgspec.to_builtins(fingerprint)})])
                return
        refuse_difference(self._spec, about, fingerprint)

    def check(self, fingerprint: Fingerprint) -> None:
        with store_errors(self._spec, "read"):
            about = self._about()
        if about is None:
            raise ConfigError(f"{self._spec} holds no passages of pyrag: index some into it first")
        refuse_difference(self._spec, about, fingerprint)

    def add(self, passages: Sequence[Passage], vectors: Matrix) -> None:
        """Write passages; passages with an existing id are replaced.

        Args:
            passages: Passages to write.
            vectors: Array of float32 of shape (passages, dimension).
        """
        with store_errors(self._spec, "written"):
            for start in range(0, len(passages), _BATCH):
                some = zip(passages[start : start + _BATCH], vectors[start : start + _BATCH].tolist(), strict=True)
                self._engine.upsert([_point(passage, vector) for passage, vector in some])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete passages; unknown ids are ignored."""
        with store_errors(self._spec, "written"):
            self._engine.delete([_key(key) for key in ids])

    def search_all(self, asked: Sequence[DenseQuery], dense_weight: float = 0.5) -> list[list[Passage]]:
        """Return the best passages for each query, in one request.

        Args:
            asked: Queries with their vectors.
            dense_weight: Weight of the vectors, from 0 to 1.
        """
        queries = [_query(query, dense_weight) for query in asked]
        with store_errors(self._spec, "searched"):
            results = self._engine.search(queries)
            passages = [_passages(*item) for item in zip(asked, queries, results, strict=True)]
            for at, query in enumerate(asked):
                if query.filter is not None and len(passages[at]) < query.topk:
                    passages[at] = self._deeper(query, queries[at], results[at])
        return passages

    def _deeper(self, asked: DenseQuery, query: Query, hits_of_query: Hits) -> list[Passage]:
        """Search deeper while too few hits pass the filter: the engine's own filter may be less strict."""
        while len(hits_of_query) >= query.limit and len(_passages(asked, query, hits_of_query)) < asked.topk:
            query = replace(query, limit=4 * query.limit)
            (hits_of_query,) = self._engine.search([query])
        return _passages(asked, query, hits_of_query)

    def scan(self, where: Filter | None) -> Iterator[Passage]:
        """Yield all passages that pass the engine's own filter, which may be less strict than `where`."""
        with store_errors(self._spec, "read"):
            for payload in self._engine.scan(where):
                if _MARK not in payload:
                    yield passage_of(payload, 0.0, PART)

    def scan_documents(self, keys: Sequence[DocumentKey], where: Filter | None) -> Iterator[Passage]:
        """Yield the passages of documents. Files are found by an index on the payload, other documents by their ids.

        Args:
            keys: Keys of documents. Each is a file or the id of a passage.
            where: Filter of passages. None for no filter.
        """
        with store_errors(self._spec, "read"):
            payloads = [self._engine.payload(_key(passage_id)) for file, passage_id in keys if not file]
            files = [file for file, _ in keys if file]
            payloads += self._engine.scan(where, files) if files else ()
            seen = {payload["id"]: payload for payload in payloads if payload and _MARK not in payload}
        for payload in seen.values():
            yield passage_of(payload, 0.0, PART)

    def optimise(self) -> None:
        """Build the graph now, if it is in this process; a server builds its graph by itself."""
        self._engine.optimise()

    def __len__(self) -> int:
        with store_errors(self._spec, "read"):
            return self._engine.count() - 1

    def close(self) -> None:
        self._engine.close()

    def _about(self) -> Fingerprint | None:
        payload = self._engine.payload(_ABOUT)
        return None if payload is None else msgspec.convert(payload[_MARK], Fingerprint)


def _key(passage_id: str) -> str:
    """Return the UUID of a passage's id, which never equals the id of the fingerprint's point."""
    return str(uuid.UUID(bytes=hashlib.blake2b(passage_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def _query(asked: DenseQuery, dense_weight: float) -> Query:
    sparse = query_terms(asked.query) if dense_weight < 1 and asked.query else None
    dense = asked.vector.tolist() if asked.vector is not None and (dense_weight > 0 or not sparse) else None
    both = dense is not None and sparse
    weights = (2 * dense_weight, 2 - 2 * dense_weight)
    return Query(dense, sparse or None, asked.topk + _TIES * bool(both), asked.filter, weights)


def _point(passage: Passage, vector: list[float]) -> Point:
    return Point(_key(passage.id), _payload(passage), vector, passage_terms(passage.title, passage.text))


def _payload(passage: Passage) -> Payload:
    facts = {FACTS: facts_of(passage.metadata)} if passage.metadata else {}
    return {**payload_of(passage), FILE: document_key(passage)[0], **facts}


def _passages(asked: DenseQuery, query: Query, hits_of_query: Hits) -> list[Passage]:
    part = PART if query.sparse is None else "sparse" if query.dense is None else "fused"
    hits = [passage_of(payload, score, part) for payload, score in hits_of_query]
    if asked.filter is not None:
        hits = [hit for hit in hits if asked.filter.matches(hit.metadata)]
    return sorted(hits, key=best_first)[: asked.topk]

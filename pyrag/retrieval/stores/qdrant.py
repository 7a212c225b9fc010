"""Passages and their vectors in Qdrant: a cluster by its URL, the embedded engine in a folder, or memory.

    qdrant:COLLECTION@http://host:6333    a server or cluster (extra `cluster`)
    qdrant:COLLECTION@:memory:            the client's own stand-in: exact, in Python, for tests
    qdrant:COLLECTION@DIR                 the server's engine in this process (the package qdrant-edge-py)

`QdrantStore` is the same code for all of them: it says what is stored and asked; `qdrant_engines` puts it into the
words of their libraries. A passage is a point with the passage as payload; its id is a hash of the passage's, as Qdrant
wants numbers or UUIDs. It has a dense vector and BM25's sparse one (`sparse`); a hybrid query fuses both by reciprocal
rank within the engine. What made the vectors is kept in a point of its own, so that a collection refuses the queries of
another embedder, as an index folder does. Left out: sharding and replication factors (set them when the collection is
made).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pyrag._io.redaction import without_secrets
from pyrag._io.specs import parse_spec
from pyrag.errors import ConfigError
from pyrag.retrieval.dense import PART, DenseQuery
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import best_first
from pyrag.retrieval.stores.qdrant_engines import Found, LocalEngine, Payload, Point, QdrantEngine, Query, RemoteEngine
from pyrag.retrieval.stores.qdrant_filters import FACTS, facts_of
from pyrag.retrieval.stores.sparse import passage_terms, query_terms
from pyrag.retrieval.stores.store import Store, StoreErrors, passage_of, payload_of, refuse_difference
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

_BATCH = 256
_TIES = 10  # of equal ranks an engine drops any: with some more than were asked for, the id decides
_ABOUT = str(uuid.UUID(int=0))  # the point that holds the fingerprint
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
            self._engine = LocalEngine(Path(place).expanduser() / collection)

    @property
    def name(self) -> str:
        return self._spec

    def create(self, fingerprint: Fingerprint) -> None:
        """Create the collection, or check that the existing one has the same fingerprint."""
        with self._errors("created"):
            about = self._about()
            if about is None:
                self._engine.create(fingerprint.dimension, normalised=fingerprint.normalised)
                self._engine.upsert([Point(_ABOUT, {_MARK: msgspec.to_builtins(fingerprint)})])
                return
        refuse_difference(self._spec, about, fingerprint)

    def check(self, fingerprint: Fingerprint) -> None:
        with self._errors("read"):
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
        with self._errors("written"):
            for start in range(0, len(passages), _BATCH):
                some = zip(passages[start : start + _BATCH], vectors[start : start + _BATCH].tolist(), strict=True)
                self._engine.upsert([_point(one, vector) for one, vector in some])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete passages; unknown ids are ignored."""
        with self._errors("written"):
            self._engine.delete([_key(one) for one in ids])

    def search_all(self, asked: Sequence[DenseQuery], dense_weight: float = 0.5) -> list[list[Passage]]:
        """Return the best passages for each query, in one request.

        Args:
            asked: Queries with their vectors.
            dense_weight: Weight of the vectors, from 0 to 1.
        """
        queries = [_query(one, dense_weight) for one in asked]
        with self._errors("searched"):
            found = self._engine.search(queries)
            passages = [_passages(*one) for one in zip(asked, queries, found, strict=True)]
            for at, one in enumerate(asked):
                if one.filter is not None and len(passages[at]) < one.topk:
                    passages[at] = self._deeper(one, queries[at], found[at])
        return passages

    def _deeper(self, asked: DenseQuery, query: Query, found: Found) -> list[Passage]:
        """Search deeper while the engine's idea of the filter, which may pass too much, leaves too few passages."""
        while len(found) >= query.limit and len(_passages(asked, query, found)) < asked.topk:
            query = replace(query, limit=4 * query.limit)
            (found,) = self._engine.search([query])
        return _passages(asked, query, found)

    def scan(self, where: Filter | None) -> Iterator[Passage]:
        """Yield all passages that the engine's idea of a filter passes, which may be too many."""
        with self._errors("read"):
            for payload in self._engine.scan(where):
                if _MARK not in payload:
                    yield passage_of(payload, 0.0, PART)

    def optimise(self) -> None:
        """Build the graph now; a server does so by itself."""
        self._engine.optimise()

    def __len__(self) -> int:
        with self._errors("read"):
            return self._engine.count() - 1

    def close(self) -> None:
        self._engine.close()

    def _about(self) -> Fingerprint | None:
        payload = self._engine.payload(_ABOUT)
        return None if payload is None else msgspec.convert(payload[_MARK], Fingerprint)

    def _errors(self, doing: str) -> StoreErrors:
        return StoreErrors(self._spec, doing)


def _key(one: str) -> str:
    """A UUID, which Qdrant takes as an id; 122 bits of the hash are never the fingerprint's zero."""
    return str(uuid.UUID(bytes=hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def _query(asked: DenseQuery, dense_weight: float) -> Query:
    sparse = query_terms(asked.query) if dense_weight < 1 and asked.query else None
    dense = asked.vector.tolist() if asked.vector is not None and (dense_weight > 0 or not sparse) else None
    both = dense is not None and sparse
    weights = (2 * dense_weight, 2 - 2 * dense_weight)
    return Query(dense, sparse or None, asked.topk + _TIES * bool(both), asked.filter, weights)


def _point(one: Passage, vector: list[float]) -> Point:
    return Point(_key(one.id), _payload(one), vector, passage_terms(one.title, one.text))


def _payload(one: Passage) -> Payload:
    return {**payload_of(one), **({FACTS: facts_of(one.metadata)} if one.metadata else {})}


def _passages(asked: DenseQuery, query: Query, found: Found) -> list[Passage]:
    part = PART if query.sparse is None else "sparse" if query.dense is None else "fused"
    hits = [passage_of(payload, score, part) for payload, score in found]
    if asked.filter is not None:
        hits = [one for one in hits if asked.filter.matches(one.metadata)]
    return sorted(hits, key=best_first)[: asked.topk]

"""Base of passage stores: their protocol, retriever, payload format, and errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from pyrag._io.excerpts import excerpt
from pyrag._io.threads import in_thread
from pyrag.errors import ConfigError, ServiceError
from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.catalogue.scanned import DocumentKey, ScannedCatalogue
from pyrag.retrieval.dense import DenseQuery
from pyrag.retrieval.embedders.batching import Batcher
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.embedders.protocol import passage_text
from pyrag.retrieval.filters.metadata import encoded
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import Passage, SearchedIndex

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Embedder, Matrix

_AT_ONCE = 64  # queries in a request


class Store(ABC):
    """Store of passages with their vectors. All methods except `add_passages` are synchronous and run in threads."""

    kind: str

    @property
    @abstractmethod
    def name(self) -> str:
        """Spec of the store, without secrets."""

    @abstractmethod
    def check(self, fingerprint: Fingerprint) -> None:
        """Raise `ConfigError` if the store's vectors were computed by an embedder with another fingerprint."""

    @abstractmethod
    def add(self, passages: Sequence[Passage], vectors: Matrix) -> None:
        """Write passages.

        Args:
            passages: Passages to write.
            vectors: Array of float32 of shape (passages, dimension).
        """

    @abstractmethod
    def search_all(self, asked: Sequence[DenseQuery], dense_weight: float = 0.5) -> list[list[Passage]]:
        """Return the best passages for each query.

        Args:
            asked: Queries with their vectors.
            dense_weight: Weight of the vectors, from 0 to 1.
        """

    @abstractmethod
    def scan(self, where: Filter | None) -> Iterator[Passage]:
        """Yield all passages that a filter passes, and possibly others, in any order."""

    def scan_documents(self, keys: Sequence[DocumentKey], where: Filter | None) -> Iterator[Passage]:
        """Yield the passages of documents that a filter passes, and possibly others, in any order.

        Stores that can look up documents override this method: by default, each `open_document` reads all passages.

        Args:
            keys: Keys of documents. Each is a file or the id of a passage.
            where: Filter of passages. None for no filter.
        """
        return self.scan(where)

    @abstractmethod
    def close(self) -> None:
        """Release connections and files."""

    async def add_passages(self, passages: Sequence[Passage], embedder: Embedder) -> None:
        """Embed passages and write them.

        Args:
            passages: Passages to write.
            embedder: Embedder of the store's vectors.
        """
        vectors = await embedder.embed_passages([passage_text(passage.title, passage.text) for passage in passages])
        await in_thread(self.add, passages, vectors)

    def search(self, vector: Matrix | None, topk: int, query: str = "", dense_weight: float = 0.5) -> list[Passage]:
        """Search by a vector, by the words of a query, or by both if both are given and have a weight.

        Args:
            vector: Array of float32 of shape (dimension,), or None.
            topk: Maximum number of passages.
            query: Text whose terms are searched for.
            dense_weight: Weight of the vector, from 0 to 1.
        """
        (passages,) = self.search_all([DenseQuery(query, topk, vector)], dense_weight)
        return passages


class StoreRetriever:
    """Retriever over a store. Its first query checks the embedder. `dense_weight` is the vectors' weight, 0 to 1."""

    def __init__(self, store: Store, embedder: Embedder, *, dense_weight: float = 0.5) -> None:
        self.store = store
        self._embedder = embedder
        self._dense_weight = dense_weight
        self._checked = False
        self._catalogue = ScannedCatalogue(store.scan, store.scan_documents)
        self._searches = Batcher(self._search, window=0, max_batch=_AT_ONCE, cached=0)

    @property
    def name(self) -> str:
        """Spec of the store, without secrets."""
        return self.store.name

    @property
    def searched(self) -> SearchedIndex:
        """Description of the index for traces."""
        return SearchedIndex(self.name, self.store.kind)

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the best passages of the store.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Raises:
            ConfigError: The store's vectors were computed by a different embedder.
            ServiceError: The store cannot be searched.
        """
        if not query.strip() or topk < 1:
            return []
        (vector,) = await self._embedder.embed_queries([query])
        if not self._checked:
            await in_thread(self.store.check, await self._embedder.fingerprint())
            self._checked = True
        return await self._searches.get(DenseQuery.filtered(query, topk, vector, where))

    async def count_documents(self, where: Filter | None) -> int:
        """Return the number of documents. This reads all passages that the filter passes."""
        return await in_thread(self._catalogue.count, where)

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents.

        Args:
            where: Filter that documents must pass; None for all.
            offset: Number of documents to skip.
            limit: Maximum number of documents.
        """
        return await in_thread(self._catalogue.page, where, offset, limit)

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document.

        Args:
            document: Id of the document.
            where: Filter that passages must pass; None for all.
        """
        return await in_thread(self._catalogue.passages, document, where)

    async def _search(self, asked: Sequence[DenseQuery]) -> list[list[Passage]]:
        return await in_thread(self.store.search_all, asked, self._dense_weight)

    async def aclose(self) -> None:
        """Close the embedder and the store."""
        await self._embedder.aclose()
        self.store.close()


@contextmanager
def store_errors(spec: str, doing: str) -> Iterator[None]:
    """Turn errors of a client library into one sentence.

    Args:
        spec: Spec of the store.
        doing: What cannot be done, such as "searched".
    """
    try:
        yield
    except (ConfigError, ServiceError):
        raise
    except Exception as error:
        reason = excerpt(error, 200) or type(error).__name__
        message = f"{spec} cannot be {doing} ({reason}): look whether it runs and the name is right"
        raise ServiceError(message, service=spec) from error


def refuse_difference(spec: str, mine: Fingerprint, fingerprint: Fingerprint) -> None:
    """Refuse an embedder whose vectors cannot be compared with a store's.

    Args:
        spec: Spec of the store.
        mine: Fingerprint of the store's vectors.
        fingerprint: Fingerprint of the embedder.

    Raises:
        ConfigError: The fingerprints differ.
    """
    if difference := mine.difference(fingerprint):
        raise ConfigError(f"{spec} was embedded with {difference} as the embedder has it: name its own with --embedder")


def payload_of(passage: Passage) -> dict[str, Any]:
    """Return a passage as plain values, with its metadata as JSON text."""
    return {
        "id": passage.id, "title": passage.title, "text": passage.text, "source": passage.source,
        "start": passage.start, "end": passage.end,
        **({"metadata": encoded(passage.metadata)} if passage.metadata else {}),
    }  # fmt: skip


def passage_of(payload: Mapping[str, Any], score: float, part: str) -> Passage:
    """Return the passage of a payload.

    Args:
        payload: Plain values, as returned by `payload_of`.
        score: Score of the passage.
        part: Name of the part of the search that computed the score.
    """
    key, title, text, source = (str(payload.get(name, "")) for name in ("id", "title", "text", "source"))
    start, end = payload.get("start"), payload.get("end")
    metadata = msgspec.json.decode(str(payload.get("metadata", "{}")), type=dict[str, Any])
    return Passage(key, title, text, score, source, {part: score}, start, end, metadata)

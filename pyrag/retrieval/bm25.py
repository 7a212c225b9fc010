"""BM25 over a tantivy index: its schema, its search, and the retriever on top.

A passage is indexed twice, as title and as title with text; the title alone counts `TITLE_WEIGHT`. Measured on training
questions (recall@5, mean of HotpotQA, 2Wiki, MuSiQue, SQuAD): 0.5 72.4, 0.75 72.8, 1.0 72.6, without 70.4.

A query is analysed into terms and becomes a disjunction of them: nothing in it is ever read as query syntax. Equal
scores are ordered by id. The score is BM25's (k1 1.2, b 0.75). Files and versions of indexes are `index.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyrag.errors import ServiceError
from pyrag.retrieval.analysis import Analysis, plain
from pyrag.retrieval.filters.metadata import encoded
from pyrag.retrieval.filters.selection import KEY, METADATA, NO_METADATA, PassageSelector, SelectedPassages, key_of
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import FilterVerdict
from pyrag.trace.model import Passage, SearchedIndex

if TYPE_CHECKING:
    import tantivy

TITLE_WEIGHT = 0.75
INLINE_PASSAGES = 20_000
"""Up to here a search takes 0.1-0.4 ms and is done at once; a thread would add jitter and save nothing. Above, it can
take milliseconds, in which the event loop would stand still. (Handing over costs 0.03 ms.)"""

INLINE_TERMS = 500
"""Up to here a search among selected passages takes 2 ms longer than one without a filter."""

_ANALYZER = "pyrag"
_MAX_TIES = 1000
_PAGE = 20_000
_SEVEN = 0x97  # how msgpack opens a list of seven

_Stored = tuple[str, str, str, str, int | None, int | None]
_StoredWithMetadata = tuple[str, str, str, str, int | None, int | None, dict[str, Any]]


def schema() -> tantivy.Schema:
    """`id` and `source` are whole terms, by which passages can be deleted; `stored` holds the passage as msgpack.

    `metadata` is a passage's metadata as one term, and `key` a hash of its id: see `filters.selection`.
    """
    import tantivy

    builder = tantivy.SchemaBuilder()
    for name in ("id", "source"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("title", "body"):
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_bytes_field("stored", stored=True)
    builder.add_text_field(METADATA, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field(KEY, fast=True)
    return builder.build()


def document(passage: Passage, *, words: bool = True) -> tantivy.Document:
    """Return the document of a passage.

    Args:
        passage: Stored whole.
        words: False to store it without making its words searchable.
    """
    import msgspec
    import tantivy

    title = plain(passage.title) if words else ""
    fields = (passage.id, passage.title, passage.text, passage.source, passage.start, passage.end)
    stored = msgspec.msgpack.encode((*fields, passage.metadata) if passage.metadata else fields)
    body = f"{title}\n{plain(passage.text)}" if words else ""
    made = tantivy.Document(id=passage.id, source=passage.source, title=title, body=body, stored=stored)
    made.add_text(METADATA, encoded(passage.metadata) or NO_METADATA)
    made.add_integer(KEY, key_of(passage.id))
    return made


def register(index: tantivy.Index) -> None:
    """Register our analyzer with an index, which stores only its name: needed in every process that opens the index."""
    index.register_tokenizer(_ANALYZER, Analysis().stemming)


class Bm25Index:
    """A searchable index, as it was when opened: what is built at its place later does not change it."""

    def __init__(self, index: tantivy.Index) -> None:
        register(index)
        index.reload()
        self._schema = index.schema
        self._searcher = index.searcher()
        self.selector = PassageSelector(self._searcher, self._schema)
        self._analysis = Analysis()

    def __len__(self) -> int:
        return self._searcher.num_docs

    def search(self, query: str, topk: int, where: Filter | SelectedPassages | None = None) -> list[Passage]:
        """Return the best passages, best first; none for a query without a word.

        Args:
            query: Text, never read as query syntax.
            topk: Maximum number of passages.
            where: Passages to search among, or their filter; scores are those without it.
        """
        parsed = self._query(query)
        if parsed is not None and where is not None:
            selected = where if isinstance(where, SelectedPassages) else self.selector.selection(where)
            parsed = self.selector.restricted(parsed, selected)
        if parsed is None or topk < 1:
            return []
        passages = [self._passage(score, address) for score, address in self._hits(parsed, topk)]
        passages.sort(key=lambda passage: (-passage.score, passage.id))
        return passages[:topk]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages of those ids that exist, in no particular order."""
        import tantivy

        terms = [tantivy.Query.term_query(self._schema, "id", one) for one in ids]
        if not terms:
            return []
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        hits = self._searcher.search(query, len(terms), count=False).hits
        return [self._passage(0.0, address) for _, address in hits]

    def __iter__(self) -> Iterator[Passage]:
        """All passages, in the index's own order."""
        import tantivy

        everything = tantivy.Query.all_query()
        for offset in range(0, len(self), _PAGE):
            for _, address in self._searcher.search(everything, _PAGE, count=False, offset=offset).hits:
                yield self._passage(0.0, address)

    def _query(self, query: str) -> tantivy.Query | None:
        import tantivy

        parts: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for term in self._analysis.query_terms(query):
            title = tantivy.Query.term_query(self._schema, "title", term, "freq")
            body = tantivy.Query.term_query(self._schema, "body", term, "freq")
            parts.append((tantivy.Occur.Should, tantivy.Query.boost_query(title, TITLE_WEIGHT)))
            parts.append((tantivy.Occur.Should, body))
        return tantivy.Query.boolean_query(parts) if parts else None

    def _hits(self, query: tantivy.Query, topk: int) -> list[tuple[float, tantivy.DocAddress]]:
        """The best hits and all that tie with the last of them (to a limit), as tantivy breaks ties by position."""
        limit = topk + 1
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            tied = len(hits) == limit and hits[-1][0] == hits[topk - 1][0]
            if not tied or limit > topk + _MAX_TIES:
                return hits
            limit *= 4

    def _passage(self, score: float, address: tantivy.DocAddress) -> Passage:
        import msgspec

        data = self._searcher.doc(address)["stored"][0]
        if data[0] == _SEVEN:
            key, title, text, source, start, end, metadata = msgspec.msgpack.decode(data, type=_StoredWithMetadata)
            return Passage(key, title, text, score, source, {}, start, end, metadata)
        key, title, text, source, start, end = msgspec.msgpack.decode(data, type=_Stored)
        return Passage(key, title, text, score=score, source=source, start=start, end=end)


def index_of(passages: Iterable[Passage]) -> Bm25Index:
    """Return an index in memory, for corpora of some thousand passages."""
    import tantivy

    index = tantivy.Index(schema())
    register(index)
    writer = index.writer(15_000_000, 1)
    for passage in passages:
        writer.add_document(document(passage))
    writer.commit()
    writer.wait_merging_threads()
    return Bm25Index(index)


class Bm25Retriever:
    """A `Retriever` over an opened index."""

    def __init__(self, index: Bm25Index, name: str = "bm25", searched: SearchedIndex | None = None) -> None:
        self._index = index
        self._name = name
        self.searched = searched or SearchedIndex(name, "bm25", passages=len(index))

    @property
    def name(self) -> str:
        return self._name

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the best passages; searches of large indexes run in a thread.

        Args: those of `Retriever.retrieve`.

        Raises:
            ServiceError: A file of the index is damaged.
        """
        try:
            selected = None if where is None else await self._index.selector.prepared(where)
            if len(self._index) <= INLINE_PASSAGES and (selected is None or len(selected.terms) <= INLINE_TERMS):
                return self._index.search(query, topk, selected)
            return await asyncio.to_thread(self._index.search, query, topk, selected)
        except (ValueError, OSError) as error:  # what tantivy raises for a file that went bad under it
            message = f"index {self._name} cannot be searched ({error}): build it again with pyrag index and --rebuild"
            raise ServiceError(message, service=self._name) from error

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Return what can be said of a filter before a search. Args: those of `FilterJudge.judge_filter`."""
        return await self._index.selector.judged(where, within)

    async def fetch(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages of those ids that exist. Raises `ServiceError` if a file of the index is damaged."""
        try:
            return self._index.passages(ids)
        except (ValueError, OSError) as error:
            message = f"index {self._name} cannot be read ({error}): build it again with pyrag index and --rebuild"
            raise ServiceError(message, service=self._name) from error

    async def aclose(self) -> None:
        """Nothing to close: the index is unmapped with the object."""

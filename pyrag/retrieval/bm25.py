"""BM25 over a tantivy index: its schema, its search, and the retriever on top.

A passage is indexed twice: its title, with the weight `TITLE_WEIGHT`, and its title together with its text.

A query is analysed into terms, which are joined by OR; it is never parsed as query syntax. Terms whose order matters
(in codes and quotations, and next to numbers) score again if a passage has them in the same order. If scores are equal,
passages with more of the query's words in the query's order come first, then passages that come earlier in their
source. The score is BM25's (k1 1.2, b 0.75). `index.py` handles files and versions of indexes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyrag.errors import ServiceError
from pyrag.retrieval.catalogue.delegating import IndexDocuments
from pyrag.retrieval.filters.metadata import encoded
from pyrag.retrieval.filters.selection import KEY, METADATA, NO_METADATA, PassageSelector, SelectedPassages, key_of
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import FilterVerdict
from pyrag.retrieval.protocol import best_first
from pyrag.retrieval.words.analysis import Analysis, QueryTerms
from pyrag.retrieval.words.forms import analysed, plain
from pyrag.retrieval.words.languages import ENGLISH
from pyrag.trace.model import Passage, SearchedIndex

if TYPE_CHECKING:
    import tantivy

    from pyrag.retrieval.catalogue.index_catalogue import IndexCatalogue

TITLE_WEIGHT = 0.75
CODE_WEIGHT = 0.5
QUOTATION_WEIGHT = 0.3
PAIR_WEIGHT = 0.2
MAX_IN_ORDER = 64  # words of a query
ORDER_WEIGHT = 1e-4  # per pair of neighbours in a query, to order passages with equal scores

INLINE_PASSAGES = 20_000
"""Largest index that is searched in the event loop, which takes 0.1-0.4 ms. A search of a larger index can take
milliseconds, so it runs in a thread, which costs 0.03 ms."""

INLINE_TERMS = 500
"""Most terms of a filter with which a search runs in the event loop; so many add 2 ms to it."""

_HEAP = 64_000_000  # bytes that tantivy may use before it starts another segment, each of which slows down a search
_MAX_TIES = 1000
_PAGE = 20_000
_SEVEN = 0x97  # first byte of a list of seven in msgpack

_Stored = tuple[str, str, str, str, int | None, int | None]
_StoredWithMetadata = tuple[str, str, str, str, int | None, int | None, dict[str, Any]]


def analyzer_of(language: str) -> str:
    """Return the name of a language's analyzer, which an index stores."""
    return f"pyrag-{language}"


def schema(analyzer: str) -> tantivy.Schema:
    """Return the schema of an index.

    `id` and `source` are whole terms, used to delete passages; `stored` holds the passage as msgpack. `metadata` is a
    passage's metadata as a single term, and `key` is a hash of its id; see `filters.selection`.
    """
    import tantivy

    builder = tantivy.SchemaBuilder()
    for name in ("id", "source"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name=analyzer, index_option="freq")
    builder.add_text_field("body", tokenizer_name=analyzer, index_option="position")
    builder.add_bytes_field("stored", stored=True)
    builder.add_text_field(METADATA, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field(KEY, fast=True)
    return builder.build()


def document(passage: Passage, analysis: Analysis, *, words: bool = True) -> tantivy.Document:
    """Return the index document for a passage.

    Args:
        passage: Passage to store.
        analysis: Analysis of the index.
        words: False to store the passage without making its words searchable.
    """
    import msgspec
    import tantivy

    fields = (passage.id, passage.title, passage.text, passage.source, passage.start, passage.end)
    stored = msgspec.msgpack.encode((*fields, passage.metadata) if passage.metadata else fields)
    made = tantivy.Document()
    made.add_text("id", passage.id)
    made.add_text("source", passage.source)
    made.add_bytes("stored", stored)
    if words:
        body, forms = analysed(f"{passage.title}\n{passage.text}", transcribe=analysis.transcribes)
        title = body.partition("\n")[0] if "\n" not in passage.title else plain(passage.title)
        made.add_text("title", title)
        made.add_text("body", body)
        if forms:
            made.add_text("body", forms)  # a value of its own, so that no phrase reaches into it
    made.add_text(METADATA, encoded(passage.metadata) or NO_METADATA)
    made.add_integer(KEY, key_of(passage.id))
    return made


def register(index: tantivy.Index, analyzer: str) -> Analysis:
    """Register an analyzer with an index, which stores only the analyzer's name. Every process must do this.

    Args:
        index: The index.
        analyzer: Name of the analyzer in the schema of the index.

    Returns:
        The analysis of texts and queries.
    """
    analysis = Analysis(analyzer.partition("-")[2] or ENGLISH)
    index.register_tokenizer(analyzer, analysis.stemming)
    return analysis


class Bm25Index:
    """Searchable snapshot of an index. Later builds in the same place do not change it.

    Args:
        index: The index.
        analyzer: Name of the index's analyzer.
    """

    def __init__(self, index: tantivy.Index, analyzer: str) -> None:
        import msgspec

        self._analysis = register(index, analyzer)
        index.reload()
        self._schema = index.schema
        self._searcher = index.searcher()
        self.selector = PassageSelector(self._searcher, self._schema)
        self._decoder = msgspec.msgpack.Decoder(_Stored)
        self._decoder_with_metadata = msgspec.msgpack.Decoder(_StoredWithMetadata)

    def __len__(self) -> int:
        return self._searcher.num_docs

    @cached_property
    def catalogue(self) -> IndexCatalogue:
        """The documents of the index."""
        from pyrag.retrieval.catalogue.index_catalogue import IndexCatalogue

        return IndexCatalogue(self._searcher, self._schema, self.selector, lambda address: self._passage(0.0, address))

    def search(self, query: str, topk: int, where: Filter | SelectedPassages | None = None) -> list[Passage]:
        """Return the best passages, best first; no passages for a query without words.

        Args:
            query: Text to search for; never parsed as query syntax.
            topk: Maximum number of passages.
            where: Passages to search, or a filter for them. It does not change scores.
        """
        if topk < 1:
            return []
        terms = self._analysis.query(query)
        hits = self._matches(self._query(terms), topk, where)
        if not _has_ties(hits):
            return [self._passage(score, address) for score, address in hits[:topk]]
        order = self._order(terms, topk, where)
        ranked = [
            (-score, order.get((address.segment_ord, address.doc), 0.0), self._passage(score, address))
            for score, address in hits
        ]
        ranked.sort(key=lambda hit: (*hit[:2], best_first(hit[2])))
        return [passage for _, _, passage in ranked[:topk]]

    def _order(
        self, terms: QueryTerms, topk: int, where: Filter | SelectedPassages | None
    ) -> dict[tuple[int, int], float]:
        """Return a rank by address. It is lower if the passage has more of the query's words in the query's order."""
        if len(terms.sequence) < 2:
            return {}
        hits = self._matches(self._query(terms, in_order=True), topk, where)
        return {(address.segment_ord, address.doc): -score for score, address in hits}

    def _matches(
        self, query: tantivy.Query | None, topk: int, where: Filter | SelectedPassages | None
    ) -> list[tuple[float, tantivy.DocAddress]]:
        if query is not None and where is not None:
            selected = where if isinstance(where, SelectedPassages) else self.selector.selection(where)
            query = self.selector.restricted(query, selected)
        return [] if query is None else self._hits(query, topk)

    def sample(self, count: int) -> list[Passage]:
        """Return a sample of passages that does not depend on how the index was built.

        Args:
            count: Maximum number of passages.
        """
        import tantivy

        if not len(self):
            return []
        hits = self._searcher.search(tantivy.Query.all_query(), count, count=False, order_by_field=KEY).hits
        return [self._passage(0.0, address) for _, address in hits]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids that exist, in any order."""
        import tantivy

        terms = [tantivy.Query.term_query(self._schema, "id", key) for key in ids]
        if not terms:
            return []
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        hits = self._searcher.search(query, len(terms), count=False).hits
        return [self._passage(0.0, address) for _, address in hits]

    def __iter__(self) -> Iterator[Passage]:
        """Yield all passages, in the index's own order."""
        import tantivy

        everything = tantivy.Query.all_query()
        for offset in range(0, len(self), _PAGE):
            for _, address in self._searcher.search(everything, _PAGE, count=False, offset=offset).hits:
                yield self._passage(0.0, address)

    def _query(self, query: QueryTerms, *, in_order: bool = False) -> tantivy.Query | None:
        import tantivy

        parts: list[tantivy.Query] = []
        for term in query.terms:
            title = tantivy.Query.term_query(self._schema, "title", term, "freq")
            parts.append(tantivy.Query.boost_query(title, TITLE_WEIGHT))
            body = tantivy.Query.term_query(self._schema, "body", term, "freq")
            if alternatives := query.alternatives.get(term):
                body = tantivy.Query.disjunction_max_query([body, *map(self._sequence, alternatives)])
            parts.append(body)
        parts += [self._phrase(code, CODE_WEIGHT) for code in query.codes]
        parts += [self._phrase(quotation, QUOTATION_WEIGHT) for quotation in query.quotations]
        parts += [self._phrase(pair, PAIR_WEIGHT) for pair in query.pairs]
        if in_order:
            neighbours = dict.fromkeys(pairwise(query.sequence[:MAX_IN_ORDER]))
            parts += [self._phrase(pair, ORDER_WEIGHT) for pair in neighbours]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts]) if parts else None

    def _sequence(self, terms: Sequence[str]) -> tantivy.Query:
        """Return the query for another spelling of a word. A phrase scores like one word, not like all its words."""
        import tantivy

        if len(terms) > 1:
            return self._phrase(terms, 1.0 / len(terms))
        return tantivy.Query.term_query(self._schema, "body", terms[0], "freq")

    def _phrase(self, terms: Sequence[str], weight: float) -> tantivy.Query:
        import tantivy

        words: list[str | tuple[int, str]] = [*terms]
        return tantivy.Query.boost_query(tantivy.Query.phrase_query(self._schema, "body", words), weight)

    def _hits(self, query: tantivy.Query, topk: int) -> list[tuple[float, tantivy.DocAddress]]:
        """Return the best hits, plus those that tie with the last one, since tantivy breaks ties by position."""
        limit = topk + 1
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            tied = len(hits) == limit and hits[-1][0] == hits[topk - 1][0]
            if not tied or limit > topk + _MAX_TIES:
                return hits
            limit *= 4

    def _passage(self, score: float, address: tantivy.DocAddress) -> Passage:
        data: Any = self._searcher.doc(address).get_first("stored")
        if data[0] == _SEVEN:
            key, title, text, source, start, end, metadata = self._decoder_with_metadata.decode(data)
            return Passage(key, title, text, score, source, {}, start, end, metadata)
        key, title, text, source, start, end = self._decoder.decode(data)
        return Passage(key, title, text, score=score, source=source, start=start, end=end)


def _has_ties(hits: Sequence[tuple[float, tantivy.DocAddress]]) -> bool:
    return len({score for score, _ in hits}) < len(hits)


def index_of(passages: Iterable[Passage], language: str = ENGLISH) -> Bm25Index:
    """Return an in-memory index, for corpora of some thousand passages.

    Args:
        passages: Passages of the index.
        language: Language of the passages.
    """
    import tantivy

    analyzer = analyzer_of(language)
    index = tantivy.Index(schema(analyzer))
    analysis = register(index, analyzer)
    writer = index.writer(_HEAP, 1)
    for passage in passages:
        writer.add_document(document(passage, analysis))
    writer.commit()
    writer.wait_merging_threads()
    return Bm25Index(index, analyzer)


class Bm25Retriever(IndexDocuments):
    """Retriever over an open index."""

    def __init__(self, index: Bm25Index, name: str = "bm25", searched: SearchedIndex | None = None) -> None:
        self._index = index
        self._name = name
        self.searched = searched or SearchedIndex(name, "bm25", passages=len(index))

    @property
    def name(self) -> str:
        return self._name

    @property
    def catalogue(self) -> IndexCatalogue:
        """The documents of the index."""
        return self._index.catalogue

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the best passages; large indexes are searched in a thread.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Raises:
            ServiceError: A file of the index is damaged.
        """
        try:
            selected = None if where is None else await self._index.selector.prepared(where)
            if len(self._index) <= INLINE_PASSAGES and (selected is None or len(selected.terms) <= INLINE_TERMS):
                return self._index.search(query, topk, selected)
            return await asyncio.to_thread(self._index.search, query, topk, selected)
        except (ValueError, OSError) as error:  # tantivy's errors for a damaged file
            message = f"index {self._name} cannot be searched ({error}): build it again with pyrag index and --rebuild"
            raise ServiceError(message, service=self._name) from error

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Judge a filter before a search; see `FilterJudge.judge_filter`.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see. None for all.
        """
        return await self._index.selector.judged(where, within)

    async def fetch(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages with these ids that exist.

        Raises:
            ServiceError: A file of the index is damaged.
        """
        try:
            return self._index.passages(ids)
        except (ValueError, OSError) as error:
            message = f"index {self._name} cannot be read ({error}): build it again with pyrag index and --rebuild"
            raise ServiceError(message, service=self._name) from error

    async def aclose(self) -> None:
        """Do nothing, since the index is unmapped when the object is deleted."""

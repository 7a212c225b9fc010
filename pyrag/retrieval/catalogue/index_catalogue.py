"""Catalogue of an index folder, from the BM25 part that every kind of index contains.

Documents are counted by the sources in the term dictionary, without reading texts from the disk. A page of documents
reads the stored passages of its documents.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from pyrag._io.threads import Stop, never
from pyrag.retrieval.catalogue.grouping import common_folder, document_of, file_of, reading_order, records_of
from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.filters.selection import PassageSelector
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    import tantivy

MAX_SORTED = 100_000
"""Records of one file that are listed in the order of the file; a longer file is listed in the index's own order."""

_QUICK = 20_000  # passages
_BATCH = 2_000  # passages of files that are in memory at once
_SAME_ID = 100  # passages that may have one id, such as one that was replaced
_REMEMBERED = 8  # filters whose documents stay counted


@dataclass(frozen=True, slots=True)
class _SourceGroup:
    """File of running text with its sources (one per page of a PDF), or a file of records."""

    file: str  # empty for records
    sources: tuple[str, ...]
    passages: int

    @property
    def documents(self) -> int:
        return 1 if self.file else self.passages


@dataclass(slots=True)
class _Listing:
    """Documents that a filter passes, by source. `records` holds the file of records that was read last."""

    groups: list[_SourceGroup]
    ends: list[int]  # number of documents up to each group
    records: dict[str, list[CatalogueDocument]] = field(default_factory=dict)


class IndexCatalogue:
    """Documents of one opened index. It is synchronous, and safe to use from several threads.

    Args:
        searcher: Searcher of the opened index.
        schema: Schema of the index.
        selector: Function that returns the passages that a filter selects.
        read: Function that returns the passage stored at an address.
    """

    def __init__(
        self,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        selector: PassageSelector,
        read: Callable[[tantivy.DocAddress], Passage],
    ) -> None:
        self._searcher, self._schema, self._selector, self._read = searcher, schema, selector, read
        self._lock = threading.Lock()
        self._listings: OrderedDict[str, _Listing] = OrderedDict()
        self._files: dict[str, _SourceGroup] | None = None
        self._folder = ""

    @property
    def is_quick(self) -> bool:
        """True for an index that is so small that opening a document is faster than using a thread."""
        return bool(self._searcher.num_docs <= _QUICK)

    async def prepare(self, where: Filter | None) -> None:
        """Evaluate a filter in a thread, and remember its selection."""
        if where is not None:
            await self._selector.prepared(where)

    def count(self, where: Filter | None, stop: Stop = never) -> int:
        """Return the number of documents.

        Args:
            where: Filter of passages.
            stop: Signal that nobody waits for the result any more.
        """
        ends = self._listing(where, stop).ends
        return ends[-1] if ends else 0

    def page(self, where: Filter | None, offset: int, limit: int, stop: Stop = never) -> list[CatalogueDocument]:
        """Return a page of the documents, sorted by source and by their place in the source.

        Args:
            where: Filter of passages.
            offset: Number of documents to skip.
            limit: Maximum number of documents in the page.
            stop: Signal that nobody waits for the result any more.
        """
        listing = self._listing(where, stop)
        documents: list[CatalogueDocument] = []
        number = bisect_right(listing.ends, offset)
        while len(documents) < limit and number < len(listing.groups):
            stop.check()
            group = listing.groups[number]
            if group.file:
                files = self._run_of_files(listing, number, limit - len(documents))
                documents += self._files_of(files, where, stop)
                number += len(files)
            else:
                before = listing.ends[number - 1] if number else 0
                start = offset + len(documents) - before
                documents += self._records(listing, group, where, start, limit - len(documents), stop)
                number += 1
        return documents

    def passages(self, document: str, where: Filter | None, stop: Stop = never) -> list[Passage]:
        """Return the passages of a document in reading order.

        Args:
            document: Id of the document.
            where: Filter of passages.
            stop: Signal that nobody waits for the result any more.
        """
        import tantivy

        if not is_text(document):
            return []
        record = tantivy.Query.term_query(self._schema, "id", document)
        exact = [passage for passage in self._matching(record, where, stop, _SAME_ID) if not _file(passage)]
        if exact:
            return exact
        files = self._all_files()
        group = files.get(self._folder + document) or files.get(document)
        if group is None:
            return []
        query = tantivy.Query.term_set_query(self._schema, "source", list(group.sources))
        return sorted(self._matching(query, where, stop, group.passages), key=reading_order)

    def _matching(self, query: tantivy.Query, where: Filter | None, stop: Stop, limit: int) -> list[Passage]:
        """Return at most `limit` passages that match a query and pass a filter, in the order of the index."""
        if where is not None:
            restricted = self._selector.restricted(query, self._selector.selection(where, stop))
            if restricted is None:
                return []
            query = restricted
        hits = self._searcher.search(query, limit, count=False).hits
        passages = [self._read(address) for _, address in hits]
        return passages if where is None else [passage for passage in passages if where.matches(passage.metadata)]

    def _run_of_files(self, listing: _Listing, number: int, limit: int) -> list[_SourceGroup]:
        end, passages = number, 0
        while end < len(listing.groups) and end - number < limit and listing.groups[end].file:
            passages += listing.groups[end].passages
            end += 1
            if passages >= _BATCH:
                break
        return listing.groups[number:end]

    def _files_of(self, groups: Sequence[_SourceGroup], where: Filter | None, stop: Stop) -> list[CatalogueDocument]:
        import tantivy

        sources = [source for group in groups for source in group.sources]
        by_file: dict[str, list[Passage]] = {group.file: [] for group in groups}
        query = tantivy.Query.term_set_query(self._schema, "source", sources)
        for passage in self._matching(query, where, stop, sum(group.passages for group in groups)):
            by_file[_file(passage)].append(passage)
        return [document_of(passages, self._folder) for passages in by_file.values() if passages]

    def _records(
        self, listing: _Listing, group: _SourceGroup, where: Filter | None, start: int, limit: int, stop: Stop
    ) -> list[CatalogueDocument]:
        import tantivy

        source = group.sources[0]
        query = tantivy.Query.const_score_query(tantivy.Query.term_query(self._schema, "source", source), 0.0)
        if group.passages > MAX_SORTED:
            if where is not None:
                query = self._selector.restricted(query, self._selector.selection(where, stop)) or query
            hits = self._searcher.search(query, limit, count=False, offset=start).hits
            return records_of([self._read(address) for _, address in hits], source)
        if source not in listing.records:
            passages = self._matching(query, where, stop, group.passages)
            listing.records = {source: records_of(sorted(passages, key=reading_order), source)}
        return listing.records[source][start : start + limit]

    def _listing(self, where: Filter | None, stop: Stop) -> _Listing:
        text = "" if where is None else str(where)
        with self._lock:
            if (known := self._listings.get(text)) is not None:
                self._listings.move_to_end(text)
                return known
        listing = _listing_of(self._counts(where, stop))
        if where is None:
            self._keep_files(listing)
        self._all_files()
        with self._lock:
            self._listings[text] = listing
            if len(self._listings) > _REMEMBERED:
                self._listings.popitem(last=False)
        return listing

    def _counts(self, where: Filter | None, stop: Stop) -> dict[str, int]:
        """Return the number of passages by source, excluding deleted ones."""
        import tantivy

        query: tantivy.Query | None = tantivy.Query.all_query()
        if where is not None:
            query = self._selector.restricted(tantivy.Query.all_query(), self._selector.selection(where, stop))
        terms = [] if query is None else self._searcher.terms_with_prefix("source", "", filter_query=query)
        return {source: count for source, count in terms if count}

    def _all_files(self) -> dict[str, _SourceGroup]:
        """Return the group of each file of running text, regardless of filters, so that ids never change."""
        if self._files is None:
            return self._keep_files(_listing_of(self._counts(None, never)))
        return self._files

    def _keep_files(self, listing: _Listing) -> dict[str, _SourceGroup]:
        files = {group.file: group for group in listing.groups if group.file}
        self._folder = common_folder(files)
        self._files = files
        return files


def _listing_of(counts: dict[str, int]) -> _Listing:
    files: dict[str, list[str]] = {}
    groups: list[_SourceGroup] = []
    for source in counts:
        if file := file_of(source):
            files.setdefault(file, []).append(source)
        else:
            groups.append(_SourceGroup("", (source,), counts[source]))
    groups += [
        _SourceGroup(file, tuple(sources), sum(counts[source] for source in sources)) for file, sources in files.items()
    ]
    groups.sort(key=lambda group: group.file or group.sources[0])
    return _Listing(groups, list(accumulate(group.documents for group in groups)))


def is_text(text: str) -> bool:
    """Return False for a text with a lone surrogate, which no index contains."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _file(passage: Passage) -> str:
    return file_of(passage.source)

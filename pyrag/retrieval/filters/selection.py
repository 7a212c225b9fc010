"""Selections of passages of an index by filters.

tantivy stores each passage's metadata as one term. A filter is evaluated over the distinct terms (`columns`) and
becomes a query for the terms that pass. This is exact for any filter, and cheap if many passages share their metadata.
For vectors, a selection is a list of keys, which are hashes of ids. The selections of recent filters are remembered.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

from pyrag._io.threads import Stop, in_stoppable_thread, never
from pyrag.retrieval.filters.columns import MetadataColumns, opposite
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import FilterVerdict, judge

if TYPE_CHECKING:
    import tantivy

METADATA, KEY = "metadata", "key"
NO_METADATA = "{}"  # term of passages without metadata, which filters such as `not exists team` find
MAX_REMEMBERED = 64  # filters


@dataclass(slots=True, eq=False)
class SelectedPassages:
    """Passages that a filter selects.

    Attributes:
        terms: Distinct metadata of the passages.
        keys: Keys of the passages in ascending order; None until they are needed.
        rows: Rows of the passages in each segment of vectors, by the segment's name.
        clauses: Clauses that restrict a query to the passages.
    """

    terms: list[str]
    keys: Any = None
    rows: dict[str, Any] = field(default_factory=dict)
    clauses: list[tuple[tantivy.Occur, tantivy.Query]] = field(default_factory=list)


class PassageSelector:
    """Selections over an open index, for any number of threads."""

    def __init__(self, searcher: tantivy.Searcher, schema: tantivy.Schema) -> None:
        self._searcher = searcher
        self._schema = schema
        self._lock = threading.Lock()
        self._selections: OrderedDict[str, SelectedPassages] = OrderedDict()

    @cached_property
    def columns(self) -> MetadataColumns:
        """Metadata of the index by field."""
        return MetadataColumns([term for term, _ in self._terms()])

    @cached_property
    def fields(self) -> dict[str, int]:
        """Names of fields with their numbers of passages."""
        counts: dict[str, int] = {}
        terms = self._terms()
        for metadata, (_, count) in zip(MetadataColumns([term for term, _ in terms]).rows(None), terms, strict=True):
            for name in metadata:
                counts[name] = counts.get(name, 0) + count
        return dict(sorted(counts.items()))

    def restricted(self, query: tantivy.Query, selected: SelectedPassages) -> tantivy.Query | None:
        """Return a query restricted to the selected passages; None if no passage is selected.

        Args:
            query: The query, whose scores do not change.
            selected: The selected passages.
        """
        import tantivy

        if not selected.terms:
            return None
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *selected.clauses])

    async def prepared(self, where: Filter) -> SelectedPassages:
        """Return the selection of a filter, evaluated in a thread that stops if the caller is cancelled."""
        if (known := self._remembered(str(where))) is not None:
            return known
        return await in_stoppable_thread(lambda stop: self.selection(where, stop))

    def selection(self, where: Filter, stop: Stop = never) -> SelectedPassages:
        """Return the selection of a filter.

        Args:
            where: The filter.
            stop: Signal that nobody waits for the selection any more.
        """
        text = str(where)
        if (known := self._remembered(text)) is not None:
            return known
        terms, mask = self.columns.terms, self.columns.mask(where, stop)
        passing = list(compress(terms, mask))
        rest = list(compress(terms, opposite(mask))) if len(passing) > len(terms) // 2 else []
        result = SelectedPassages(passing, clauses=self._clauses(passing, rest, len(terms)))
        with self._lock:
            self._selections[text] = result
            if len(self._selections) > MAX_REMEMBERED:
                self._selections.popitem(last=False)
        return result

    async def judged(self, where: Filter, within: Filter | None) -> FilterVerdict:
        """Judge a filter in a thread that stops if the caller is cancelled.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see. None for all.
        """
        return await in_stoppable_thread(lambda stop: judge(where, self.columns, within, stop))

    def selected(self, where: Filter, stop: Stop = never) -> SelectedPassages:
        """Return the selection of a filter with its keys, for vectors.

        Args:
            where: The filter.
            stop: Signal that nobody waits for the selection any more.
        """
        import numpy as np
        import tantivy

        selection = self.selection(where, stop)
        if selection.keys is None:
            stop.check()
            hits: list[tuple[float, tantivy.DocAddress]] = []
            if (query := self.restricted(tantivy.Query.all_query(), selection)) is not None and self._searcher.num_docs:
                hits = self._searcher.search(query, self._searcher.num_docs, count=False).hits
            keys = self._searcher.fast_field_values(KEY, [address for _, address in hits]) if hits else []
            selection.keys = np.unique(np.array(keys, np.int64).view(np.uint64))
        return selection

    def _remembered(self, text: str) -> SelectedPassages | None:
        with self._lock:
            if (known := self._selections.get(text)) is not None:
                self._selections.move_to_end(text)
        return known

    def _clauses(self, passing: list[str], rest: list[str], total: int) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """Return clauses that restrict a query to the passing terms, using the shorter of the two lists."""
        import tantivy

        if len(passing) == total:
            return []
        if rest:
            return [(tantivy.Occur.MustNot, tantivy.Query.term_set_query(self._schema, METADATA, rest))]
        terms_query = tantivy.Query.term_set_query(self._schema, METADATA, passing)
        return [(tantivy.Occur.Must, tantivy.Query.const_score_query(terms_query, 0.0))] if passing else []

    def _terms(self) -> list[tuple[str, int]]:
        """Return the distinct metadata as JSON, with their numbers of passages, including deleted passages."""
        return self._searcher.terms_with_prefix(METADATA, "")


def key_of(passage_id: str) -> int:
    """Return the key of a passage: a hash of its id as a signed 64-bit number. (It is unsigned in `vectors.files`.)"""
    digest = hashlib.blake2b(passage_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)

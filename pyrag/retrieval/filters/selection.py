"""The passages of an index that a filter selects.

tantivy keeps each passage's metadata as one term. A filter is matched against every distinct one of them in Python, and
becomes a query for those that pass: exact whatever the filter says, and cheap where many passages share their metadata.
For vectors, the selected passages are a list of keys, hashes of their ids. Both are remembered for the latest filters.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyrag.retrieval.filters.tree import Filter, fields_of

if TYPE_CHECKING:
    import tantivy

METADATA, KEY = "metadata", "key"
NO_METADATA = "{}"  # which a filter may look for, as `not exists team`
MAX_REMEMBERED = 64  # filters


@dataclass(slots=True, eq=False)
class SelectedPassages:
    """The passages that one filter selects.

    Attributes:
        terms: their metadata, each once.
        keys: their keys in rising order, once they were asked for.
        rows: for each segment of vectors, the rows that hold them.
    """

    terms: list[str]
    keys: Any = None
    rows: dict[str, Any] = field(default_factory=dict)


class PassageSelector:
    """Selections over one opened index, for any number of threads."""

    def __init__(self, searcher: tantivy.Searcher, schema: tantivy.Schema) -> None:
        self._searcher = searcher
        self._schema = schema
        self._lock = threading.Lock()
        self._selections: OrderedDict[str, SelectedPassages] = OrderedDict()
        self._fields: dict[str, int] | None = None

    @property
    def keeps_metadata(self) -> bool:
        """False for an index that was built before metadata was kept."""
        try:
            self._searcher.terms_with_prefix(METADATA, "", limit=1)
        except ValueError:
            return False
        return True

    @property
    def fields(self) -> dict[str, int]:
        """The names of fields, with the number of passages that have each."""
        if self._fields is None:
            counts: dict[str, int] = {}
            for term, count in self._terms():
                for name in _metadata(term):
                    counts[name] = counts.get(name, 0) + count
            self._fields = dict(sorted(counts.items()))
        return self._fields

    def restricted(self, query: tantivy.Query, where: Filter) -> tantivy.Query | None:
        """Return a query for what another one finds among the selected passages; None if none is selected.

        Args:
            query: The query, whose scores stay as they are.
            where: The filter.
        """
        import tantivy

        if (selected := self._query(self.selection(where))) is None:
            return None
        unscored = tantivy.Query.const_score_query(selected, 0.0)
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, unscored)])

    def selection(self, where: Filter) -> SelectedPassages:
        """Return the selection of a filter."""
        text = str(where)
        with self._lock:
            if (known := self._selections.get(text)) is not None:
                self._selections.move_to_end(text)
                return known
        found = SelectedPassages([term for term, _ in self._terms() if where.matches(_metadata(term))])
        with self._lock:
            self._selections[text] = found
            if len(self._selections) > MAX_REMEMBERED:
                self._selections.popitem(last=False)
        return found

    def selected(self, where: Filter) -> SelectedPassages:
        """Return the selection of a filter with its keys, for vectors."""
        import numpy as np

        selection = self.selection(where)
        if selection.keys is None:
            hits: list[tuple[float, tantivy.DocAddress]] = []
            if (query := self._query(selection)) is not None and self._searcher.num_docs:
                hits = self._searcher.search(query, self._searcher.num_docs, count=False).hits
            keys = self._searcher.fast_field_values(KEY, [address for _, address in hits]) if hits else []
            selection.keys = np.unique(np.array(keys, np.int64).view(np.uint64))
        return selection

    def notes(self, where: Filter) -> list[str]:
        """Return sentences on a filter that cannot find anything here."""
        if not self.keeps_metadata:
            return ["it was built before metadata was kept, so no filter finds anything: build it with pyrag index"]
        return [
            f"no passage has the field {name!r}, which the filter names"
            for name in dict.fromkeys(fields_of(where))
            if name not in self.fields
        ]

    def _query(self, selection: SelectedPassages) -> tantivy.Query | None:
        import tantivy

        terms = selection.terms
        return tantivy.Query.term_set_query(self._schema, METADATA, terms) if terms else None

    def _terms(self) -> list[tuple[str, int]]:
        """Return every distinct metadata as JSON, with the number of its passages, deleted ones included."""
        try:
            return self._searcher.terms_with_prefix(METADATA, "")
        except ValueError:  # of an index without the field
            return []


def key_of(passage_id: str) -> int:
    """Return the key of a passage: a signed 64-bit hash of its id, which `vectors.files` has unsigned."""
    digest = hashlib.blake2b(passage_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _metadata(term: str) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.json.decode(term)
    return found

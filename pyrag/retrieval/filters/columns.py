"""Metadata of an index as columns, so that filters can be evaluated by operations on whole columns.

Each distinct metadata of an index is a row. A column holds the values of a field in sorted order, with their rows. A
comparison therefore takes two binary searches and a slice, and `and` and `or` operate on whole masks. The result is
exactly the result of `Filter.matches`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import and_, or_
from threading import Lock
from typing import Any

from pyrag._io.threads import Stop, never
from pyrag.retrieval.filters.tree import (
    Comparison,
    Conjunction,
    Containment,
    Disjunction,
    Existence,
    Filter,
    Membership,
    Scalar,
    kind_of,
)

_PIECE = 4096  # rows between two checks of the stop
_OPPOSITE = bytes.maketrans(b"\0\1", b"\1\0")

Mask = bytes
"""A byte per row: 1 for a row that passes, 0 for others."""

Rows = Sequence[int]
"""Numbers of rows, as an array of 64-bit integers."""


def in_all(*masks: Mask) -> Mask:
    """Return the rows that pass all of one or more masks."""
    return reduce(and_, map(int.from_bytes, masks)).to_bytes(len(masks[0]))


def in_any(*masks: Mask) -> Mask:
    """Return the rows that pass any of one or more masks."""
    return reduce(or_, map(int.from_bytes, masks)).to_bytes(len(masks[0]))


def opposite(mask: Mask) -> Mask:
    """Return the rows that do not pass a mask."""
    return mask.translate(_OPPOSITE)


def passes_any(mask: Mask) -> bool:
    """Return whether any row passes a mask."""
    return 1 in mask


@dataclass(slots=True)
class SortedValues:
    """Values of one kind in ascending order, with their rows."""

    values: list[Any] = field(default_factory=list)
    rows: array[int] = field(default_factory=lambda: array("q"))

    def sort(self) -> None:
        order = sorted(range(len(self.values)), key=self.values.__getitem__)
        self.values = [self.values[place] for place in order]
        self.rows = array("q", [self.rows[place] for place in order])

    def rows_where(self, operator: str, value: Scalar) -> Sequence[Rows]:
        """Return the rows whose value satisfies a comparison, as slices.

        Args:
            operator: Operator of the comparison: `=`, `!=`, `<`, `<=`, `>` or `>=`.
            value: Value to compare with, of the same kind.
        """
        low, high = bisect_left(self.values, value), bisect_right(self.values, value)
        slices = {
            "=": (slice(low, high),), "!=": (slice(0, low), slice(high, None)), "<": (slice(0, low),),
            "<=": (slice(0, high),), ">": (slice(high, None),), ">=": (slice(low, None),),
        }  # fmt: skip
        return [self.rows[piece] for piece in slices[operator]]


@dataclass(slots=True)
class Column:
    """Values of a field: single values by kind, and list elements by kind.

    Attributes:
        rows: Rows that have the field.
        lists: Rows whose value is a list.
    """

    rows: array[int] = field(default_factory=lambda: array("q"))
    lists: array[int] = field(default_factory=lambda: array("q"))
    single: dict[str, SortedValues] = field(default_factory=dict)
    elements: dict[str, SortedValues] = field(default_factory=dict)

    def add(self, row: int, value: Any) -> None:
        """Add the value of a row.

        Args:
            row: Number of the row.
            value: Text, number or boolean, or a list of these.
        """
        self.rows.append(row)
        if isinstance(value, list):
            self.lists.append(row)
            for element in value:
                _append(self.elements, row, element)
        else:
            _append(self.single, row, value)

    def sort(self) -> None:
        for values in chain(self.single.values(), self.elements.values()):
            values.sort()


def _append(by_kind: dict[str, SortedValues], row: int, value: Any) -> None:
    values = by_kind.setdefault(kind_of(value), SortedValues())
    values.values.append(value)
    values.rows.append(row)


class MetadataColumns:
    """Columns of an open index, each built when a filter first uses it. They are safe to use from several threads.

    Args:
        terms: Distinct metadata of the passages, as JSON.
    """

    def __init__(self, terms: Sequence[str]) -> None:
        self.terms = terms
        self._columns: dict[str, Column] = {}
        self._names: frozenset[str] | None = None
        self._lock = Lock()

    def mask(self, where: Filter, stop: Stop = never) -> Mask:
        """Return which rows pass a filter.

        Args:
            where: The filter.
            stop: Signal that nobody waits for the result any more.

        Raises:
            StoppedError: The signal was set.
        """
        columns = self.columns(set(_fields(where)), stop)
        return self._mask(where, columns, stop)

    def columns(self, names: Iterable[str], stop: Stop = never) -> Mapping[str, Column]:
        """Return the columns of the named fields that exist.

        Args:
            names: Names of fields.
            stop: Signal that nobody waits for the result any more.
        """
        with self._lock:
            missing = {name for name in names if name not in self._columns}
            if self._names is not None:
                missing &= self._names
            if missing:
                self._build(missing, stop)
            return {name: self._columns[name] for name in names if name in self._columns}

    def rows(self, mask: Mask | None, stop: Stop = never) -> Iterable[dict[str, Any]]:
        """Yield the metadata of rows.

        Args:
            mask: Rows to yield. None for all.
            stop: Signal that nobody waits for the result any more.
        """
        import msgspec

        decode = msgspec.json.Decoder(dict[str, Any]).decode
        for row, term in enumerate(self.terms):
            if not row % _PIECE:
                stop.check()
            if mask is None or mask[row]:
                yield decode(term)

    def _build(self, names: set[str], stop: Stop) -> None:
        seen: set[str] = set()
        columns = {name: Column() for name in names}
        for row, metadata in enumerate(self.rows(None, stop)):
            seen.update(metadata)
            for name in names & metadata.keys():
                columns[name].add(row, metadata[name])
        for name, column in columns.items():
            stop.check()
            if column.rows:
                column.sort()
                self._columns[name] = column
        self._names = frozenset(seen)

    def _mask(self, where: Filter, columns: Mapping[str, Column], stop: Stop) -> Mask:
        if isinstance(where, Conjunction | Disjunction):
            join = in_all if isinstance(where, Conjunction) else in_any
            return join(*(self._mask(part, columns, stop) for part in where.parts))
        stop.check()
        column = columns.get(where.field)
        if isinstance(where, Existence):
            having = self._marked([] if column is None else [column.rows])
            return having if where.present else opposite(having)
        mask = self._marked([] if column is None else _passing(where, column))
        if isinstance(where, Containment) and not where.inside and column is not None:
            return in_all(self._marked([column.rows]), opposite(mask))
        return mask

    def _marked(self, parts: Iterable[Rows]) -> Mask:
        mask = bytearray(len(self.terms))
        for rows in parts:
            for row in rows:
                mask[row] = 1
        return bytes(mask)


def _passing(where: Comparison | Membership | Containment, column: Column) -> Iterable[Rows]:
    """Return arrays of the rows that pass. For `not contains`, return the rows that contain the value."""
    if isinstance(where, Containment):
        kind = kind_of(where.value)
        matching_values = [some[kind] for some in (column.single, column.elements) if kind in some]
        return chain.from_iterable(values.rows_where("=", where.value) for values in matching_values)
    first = where.value if isinstance(where, Comparison) else where.values[0]
    values = column.single.get(kind_of(first))
    if values is None:
        return ()
    if isinstance(where, Comparison):
        return values.rows_where(where.operator, where.value)
    if where.inside:
        return chain.from_iterable(values.rows_where("=", value) for value in set(where.values))
    return _gaps(values, sorted(set(where.values)))


def _gaps(values: SortedValues, excluded: Sequence[Any]) -> Iterable[Rows]:
    """Yield the rows between the excluded values."""
    start = 0
    for value in excluded:
        yield values.rows[start : bisect_left(values.values, value)]
        start = bisect_right(values.values, value)
    yield values.rows[start:]


def _fields(where: Filter) -> Iterable[str]:
    if isinstance(where, Conjunction | Disjunction):
        return chain.from_iterable(map(_fields, where.parts))
    return (where.field,)

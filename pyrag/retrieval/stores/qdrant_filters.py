"""Filters as Qdrant's conditions, over a form of the metadata that distinguishes value kinds.

    payload.facts.fX    X is a hash of the field's name, which may contain any character
        there           "yes"
        kind            text, number, truth or list
        value           a number
        text, c0 … c3   a text, and its first 24 bytes as four numbers of the same order
        items           the values of a list, or the single value, each as a text with its kind

All comparisons are exact except for the order of texts that are equal in their first 24 bytes, and for whole numbers
beyond 2^53. In these cases, the query returns too much, and the caller drops the surplus.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.retrieval.filters.tree import (
    Comparison,
    Conjunction,
    Containment,
    Disjunction,
    Existence,
    Filter,
    Membership,
    Operator,
    Scalar,
    kind_of,
)

FACTS = "facts"
_THERE = "yes"  # the engine in this process does not match booleans
_MAX_EXACT = 1 << 53
_CHUNK = 6  # bytes, which a float64 holds exactly
_CHUNKS = 4
_BOUNDS: dict[Operator, str] = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


@dataclass(frozen=True, slots=True)
class QdrantWords:
    """Classes of a client library. `qdrant_client.models` and `qdrant_edge` use a different name for one of them."""

    library: Any
    range_type: Any

    def filter(self, where: Filter) -> Any:
        """Return the library's form of a filter."""
        if isinstance(where, Conjunction):
            return self._all(*map(self.filter, where.parts))
        if isinstance(where, Disjunction):
            return self.library.Filter(should=[self.filter(part) for part in where.parts])
        key = _key(where.field)
        if isinstance(where, Existence):
            there = self._is(f"{key}.there", _THERE)
            return self._all(there) if where.present else self._none(there)
        if isinstance(where, Containment):
            item = self._is(f"{key}.items", _item(where.value))
            return self._all(item) if where.inside else self._all(self._is(f"{key}.there", _THERE), self._none(item))
        kind = self._is(f"{key}.kind", kind_of(where.values[0] if isinstance(where, Membership) else where.value))
        if isinstance(where, Membership):
            values = where.values if where.inside else [value for value in where.values if not _is_rounded(value)]
            membership = self.library.Filter(should=[self._equal(key, value) for value in values])
            return (
                self._all(kind, membership if where.inside else self._none(membership)) if values else self._all(kind)
            )
        if where.operator == "!=" and _is_rounded(where.value):
            return self._all(kind)
        return self._all(kind, self._compared(key, where))

    def of_files(self, where: Filter | None, field: str, files: Sequence[str]) -> Any:
        """Return a filter of points whose file is one of some files.

        Args:
            where: Filter that points must pass too. None for no filter.
            field: Field of the payload with the file.
            files: Files of the points.
        """
        known = self.library.FieldCondition(key=field, match=self.library.MatchAny(any=list(files)))
        return self._all(known) if where is None else self._all(known, self.filter(where))

    def _compared(self, key: str, where: Comparison) -> Any:
        if where.operator in ("=", "!="):
            equal = self._equal(key, where.value)
            return equal if where.operator == "=" else self._none(equal)
        if not isinstance(where.value, str):
            return self._range(f"{key}.value", where.operator, where.value, exact=not _is_rounded(where.value))
        return self._ordered(key, where.operator, _chunks(where.value), 0)

    def _equal(self, key: str, value: Scalar) -> Any:
        if isinstance(value, str):
            return self._is(f"{key}.text", value)
        if isinstance(value, bool):
            return self._is(f"{key}.items", _item(value))
        bounds = self.range_type(gte=float(value), lte=float(value))
        return self.library.FieldCondition(key=f"{key}.value", range=bounds)

    def _ordered(self, key: str, operator: Operator, chunks: Sequence[int], at: int) -> Any:
        """Return the condition that compares texts by their chunks of six bytes, from the first chunk on."""
        strict: Operator = "<" if operator in ("<", "<=") else ">"
        here = self._range(f"{key}.c{at}", strict, chunks[at])
        same = self.library.FieldCondition(
            key=f"{key}.c{at}", range=self.range_type(gte=float(chunks[at]), lte=float(chunks[at]))
        )
        if at + 1 == _CHUNKS:
            return self.library.Filter(should=[here, same])
        return self.library.Filter(should=[here, self._all(same, self._ordered(key, operator, chunks, at + 1))])

    def _range(self, key: str, operator: Operator, value: Scalar, *, exact: bool = True) -> Any:
        bound = _BOUNDS[operator] if exact else _BOUNDS[operator][:2] + "e"
        return self.library.FieldCondition(key=key, range=self.range_type(**{bound: float(value)}))

    def _is(self, key: str, value: Scalar) -> Any:
        return self.library.FieldCondition(key=key, match=self.library.MatchValue(value=value))

    def _all(self, *conditions: Any) -> Any:
        return self.library.Filter(must=list(conditions))

    def _none(self, condition: Any) -> Any:
        return self.library.Filter(must_not=[condition])


def _is_rounded(value: Scalar) -> bool:
    """Return True for a whole number that the engines' floats may not represent exactly."""
    return isinstance(value, int) and abs(value) >= _MAX_EXACT


def facts_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the payload that filters use."""
    return {_hashed(name): _fact(value) for name, value in metadata.items()}


def _fact(value: Any) -> dict[str, Any]:
    kind = kind_of(value)
    items = [_item(item) for item in value] if kind == "list" else [_item(value)]
    fact: dict[str, Any] = {"there": _THERE, "kind": kind, "items": items}
    if kind == "text":
        return fact | {"text": value, **{f"c{at}": chunk for at, chunk in enumerate(_chunks(value))}}
    return fact | {"value": value} if kind == "number" else fact


def _item(value: Scalar) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{kind_of(value)}:{value}"


def _chunks(text: str) -> list[int]:
    data = text.encode()[: _CHUNK * _CHUNKS].ljust(_CHUNK * _CHUNKS, b"\0")
    return [int.from_bytes(data[at : at + _CHUNK], "big") for at in range(0, len(data), _CHUNK)]


def _key(field: str) -> str:
    return f"{FACTS}.{_hashed(field)}"


def _hashed(name: str) -> str:
    return "f" + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

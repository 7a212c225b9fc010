"""Filters as trees: comparisons of a passage's fields, joined by `and` and `or`.

A filter has no `not`: `negated` turns each comparison into its opposite, and both are false for a field that is missing
or of another kind (number, text, truth). So no passage passes by what it does not say; only `not exists field` finds
those without a field. A list is compared by `contains` alone, to which any other value is a list of one.
`str(filter)` is its canonical text, which `pyrag.retrieval.filters.language` reads back. Two filters are the same if
their texts are; their equality is Python's, to which `1` and `true` are the same.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Scalar = str | int | float | bool
Metadata = Mapping[str, Scalar | Sequence[Scalar]]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]
KEYWORDS = frozenset(("and", "or", "not", "in", "contains", "exists", "true", "false", "null"))

_PLAIN_NAME = re.compile(r"[^\W\d][\w.-]*")
_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_OPPOSITE: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`year >= 2020`. Texts are ordered by their characters, as ISO dates are."""

    field: str
    operator: Operator
    value: Scalar

    def matches(self, metadata: Metadata) -> bool:
        held = metadata.get(self.field)
        return kind_of(held) == kind_of(self.value) and _COMPARE[self.operator](held, self.value)

    def negated(self) -> Filter:
        return replace(self, operator=_OPPOSITE[self.operator])

    def __str__(self) -> str:
        return f"{_name(self.field)} {self.operator} {value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Membership:
    """`team in ("ops", "sales")`. The values are of one kind."""

    field: str
    values: tuple[Scalar, ...]
    inside: bool = True
    _distinct: frozenset[Scalar] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distinct", frozenset(self.values))

    def matches(self, metadata: Metadata) -> bool:
        held = metadata.get(self.field)
        return kind_of(held) == kind_of(self.values[0]) and (held in self._distinct) == self.inside

    def negated(self) -> Filter:
        return replace(self, inside=not self.inside)

    def __str__(self) -> str:
        return f"{_name(self.field)} {'' if self.inside else 'not '}in ({', '.join(map(value_text, self.values))})"


@dataclass(frozen=True, slots=True)
class Containment:
    """`tags contains "draft"`."""

    field: str
    value: Scalar
    inside: bool = True

    def matches(self, metadata: Metadata) -> bool:
        if (held := metadata.get(self.field)) is None:
            return False
        items: Sequence[object] = held if isinstance(held, list | tuple) else (held,)
        return any(kind_of(one) == kind_of(self.value) and one == self.value for one in items) == self.inside

    def negated(self) -> Filter:
        return replace(self, inside=not self.inside)

    def __str__(self) -> str:
        return f"{_name(self.field)} {'' if self.inside else 'not '}contains {value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Existence:
    """`exists team`."""

    field: str
    present: bool = True

    def matches(self, metadata: Metadata) -> bool:
        return (metadata.get(self.field) is not None) == self.present

    def negated(self) -> Filter:
        return replace(self, present=not self.present)

    def __str__(self) -> str:
        return f"{'' if self.present else 'not '}exists {_name(self.field)}"


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of some filters; at least two."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Metadata) -> bool:
        return all(part.matches(metadata) for part in self.parts)

    def negated(self) -> Filter:
        return Disjunction(tuple(part.negated() for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Disjunction) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Any of some filters; at least two."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Metadata) -> bool:
        return any(part.matches(metadata) for part in self.parts)

    def negated(self) -> Filter:
        return Conjunction(tuple(part.negated() for part in self.parts))

    def __str__(self) -> str:
        return " or ".join(f"({part})" if isinstance(part, Conjunction) else str(part) for part in self.parts)


Filter = Comparison | Membership | Containment | Existence | Conjunction | Disjunction


def all_of(*filters: Filter | None) -> Filter | None:
    """Return the filter that passes what all of some filters pass; None, which passes everything, if all are None."""
    return _joined(Conjunction, [one for one in filters if one is not None])


def any_of(*filters: Filter) -> Filter:
    """Return the filter that passes what one of some filters passes."""
    joined = _joined(Disjunction, filters)
    assert joined is not None
    return joined


def _joined(kind: type[Conjunction | Disjunction], filters: Sequence[Filter]) -> Filter | None:
    """Join filters in one level, equal ones once."""
    flat = [part for one in filters for part in (one.parts if isinstance(one, kind) else (one,))]
    distinct = tuple({str(one): one for one in flat}.values())
    return kind(distinct) if len(distinct) > 1 else next(iter(distinct), None)


def comparisons_of(where: Filter) -> Iterator[Filter]:
    """Yield the comparisons of a filter."""
    if isinstance(where, Conjunction | Disjunction):
        for part in where.parts:
            yield from comparisons_of(part)
    else:
        yield where


def kind_of(value: object) -> str:
    """Return the kind of a field's value: values of different kinds are never compared."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list | tuple) else "nothing"


def _name(field: str) -> str:
    plain = _PLAIN_NAME.fullmatch(field) and field.lower() not in KEYWORDS
    return field if plain else "`" + field.replace("`", "``") + "`"


def value_text(value: Scalar) -> str:
    """Return a value as filters write it."""
    return json.dumps(value, ensure_ascii=False)

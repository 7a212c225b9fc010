"""Filters as trees: comparisons of a passage's fields, joined by `and` and `or`.

A filter has no `not`: `negated` turns each comparison into its opposite, and both are false for a field that is missing
or of another kind (number, text, boolean). A missing field therefore never makes a passage pass; only `not exists
field` finds passages without a field. Only `contains` compares lists; it treats any other value as a list of one item.
`str(filter)` is its canonical text, which `pyrag.retrieval.filters.language` can parse. Two filters are the same if
their texts are equal; `==` compares as Python does, for which `1` and `true` are equal.
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
    """Comparison such as `year >= 2020`. Texts are compared character by character, which suits ISO dates."""

    field: str
    operator: Operator
    value: Scalar

    def matches(self, metadata: Metadata) -> bool:
        value = metadata.get(self.field)
        return kind_of(value) == kind_of(self.value) and _COMPARE[self.operator](value, self.value)

    def negated(self) -> Filter:
        return replace(self, operator=_OPPOSITE[self.operator])

    def __str__(self) -> str:
        return f"{_name(self.field)} {self.operator} {value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Membership:
    """Membership such as `team in ("ops", "sales")`. All values have the same kind."""

    field: str
    values: tuple[Scalar, ...]
    inside: bool = True
    _distinct: frozenset[Scalar] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distinct", frozenset(self.values))

    def matches(self, metadata: Metadata) -> bool:
        value = metadata.get(self.field)
        return kind_of(value) == kind_of(self.values[0]) and (value in self._distinct) == self.inside

    def negated(self) -> Filter:
        return replace(self, inside=not self.inside)

    def __str__(self) -> str:
        return f"{_name(self.field)} {'' if self.inside else 'not '}in ({', '.join(map(value_text, self.values))})"


@dataclass(frozen=True, slots=True)
class Containment:
    """Containment such as `tags contains "draft"`."""

    field: str
    value: Scalar
    inside: bool = True

    def matches(self, metadata: Metadata) -> bool:
        if (value := metadata.get(self.field)) is None:
            return False
        items: Sequence[object] = value if isinstance(value, list | tuple) else (value,)
        return any(kind_of(item) == kind_of(self.value) and item == self.value for item in items) == self.inside

    def negated(self) -> Filter:
        return replace(self, inside=not self.inside)

    def __str__(self) -> str:
        return f"{_name(self.field)} {'' if self.inside else 'not '}contains {value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Existence:
    """Existence of a field, such as `exists team`."""

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
    """Conjunction of at least two filters."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Metadata) -> bool:
        return all(part.matches(metadata) for part in self.parts)

    def negated(self) -> Filter:
        return Disjunction(tuple(part.negated() for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Disjunction) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Disjunction of at least two filters."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Metadata) -> bool:
        return any(part.matches(metadata) for part in self.parts)

    def negated(self) -> Filter:
        return Conjunction(tuple(part.negated() for part in self.parts))

    def __str__(self) -> str:
        return " or ".join(f"({part})" if isinstance(part, Conjunction) else str(part) for part in self.parts)


Filter = Comparison | Membership | Containment | Existence | Conjunction | Disjunction


def all_of(*filters: Filter | None) -> Filter | None:
    """Return the conjunction of the filters that are not None; None, which passes everything, if all are None."""
    return _joined(Conjunction, [item for item in filters if item is not None])


def any_of(*filters: Filter) -> Filter:
    """Return the disjunction of some filters, at least one."""
    joined = _joined(Disjunction, filters)
    assert joined is not None
    return joined


def _joined(kind: type[Conjunction | Disjunction], filters: Sequence[Filter]) -> Filter | None:
    """Join filters without nesting, and without repeating equal filters."""
    flat = [part for item in filters for part in (item.parts if isinstance(item, kind) else (item,))]
    distinct = tuple({str(item): item for item in flat}.values())
    return kind(distinct) if len(distinct) > 1 else next(iter(distinct), None)


def comparisons_of(where: Filter) -> Iterator[Filter]:
    """Yield the comparisons of a filter."""
    if isinstance(where, Conjunction | Disjunction):
        for part in where.parts:
            yield from comparisons_of(part)
    else:
        yield where


def kind_of(value: object) -> str:
    """Return the kind of a value. Values of different kinds are never compared."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list | tuple) else "nothing"


def _name(field: str) -> str:
    plain = _PLAIN_NAME.fullmatch(field) and field.lower() not in KEYWORDS
    return field if plain else "`" + field.replace("`", "``") + "`"


def value_text(value: Scalar) -> str:
    """Return a value in the language of filters."""
    return json.dumps(value, ensure_ascii=False)

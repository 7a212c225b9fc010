"""Filters as SQL over the facts of a passage: its metadata as a `jsonb` object, which distinguishes value kinds.

Names and values are parameters, never parts of a statement. All comparisons are exact: numbers are written as exact
decimal fractions, texts are compared character by character (`COLLATE "C"`), and NUL, which PostgreSQL does not allow
in texts, is escaped in a way that preserves their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

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

_JSON_KINDS = {"text": "string", "number": "number", "truth": "boolean", "list": "array"}
_ESCAPES = str.maketrans({"\0": "\1\1", "\1": "\1\2"})


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a statement, with the values of its placeholders in order."""

    text: str
    values: tuple[Any, ...] = ()


def condition_of(where: Filter | None) -> Condition:
    """Return the condition of a filter over the column `facts`; for None, a condition that is always true."""
    if where is None:
        return Condition("true")
    if isinstance(where, Conjunction | Disjunction):
        parts = [condition_of(part) for part in where.parts]
        word = " AND " if isinstance(where, Conjunction) else " OR "
        joined = word.join(part.text for part in parts)
        return Condition(f"({joined})", tuple(value for part in parts for value in part.values))
    name = _escaped(where.field)
    if isinstance(where, Existence):
        return Condition("facts ? %s::text" if where.present else "NOT facts ? %s::text", (name,))
    if isinstance(where, Containment):
        negation = "" if where.inside else "NOT "
        text = f"(facts ? %s::text AND {negation}(facts -> %s::text) @> %s::jsonb)"
        return Condition(text, (name, name, encoded_value(where.value)))
    if isinstance(where, Membership):
        values = [encoded_value(value) for value in where.values]
        negation = "" if where.inside else "NOT "
        text = f"{negation}(facts -> %s::text) = ANY(%s::text[]::jsonb[])"
        return _of_kind(name, where.values[0], Condition(text, (name, values)))
    return _of_kind(name, where.value, _compared(name, where))


def _compared(name: str, where: Comparison) -> Condition:
    """Return the condition that compares a field with a value of its kind. Only `!=` is spelled differently in SQL."""
    sign = "<>" if where.operator == "!=" else where.operator
    if isinstance(where.value, str) and where.operator not in ("=", "!="):
        return Condition(f'(facts ->> %s::text) COLLATE "C" {sign} %s', (name, _escaped(where.value)))
    return Condition(f"(facts -> %s::text) {sign} %s::jsonb", (name, encoded_value(where.value)))


def _of_kind(name: str, value: Scalar, test: Condition) -> Condition:
    kind = _JSON_KINDS[kind_of(value)]
    return Condition(f"(jsonb_typeof(facts -> %s::text) = %s AND {test.text})", (name, kind, *test.values))


def encoded_facts(metadata: Mapping[str, Any]) -> str:
    """Return the facts of a passage's metadata, as JSON."""
    return f"{{{', '.join(f'{_text(name)}: {encoded_value(value)}' for name, value in metadata.items())}}}"


def encoded_value(value: Scalar | Iterable[Scalar]) -> str:
    """Return a value as exact JSON: a float becomes the decimal fraction that it is equal to."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return format(Decimal(value), "f")
    return f"[{', '.join(map(encoded_value, value))}]"


def _text(text: str) -> str:
    return json.dumps(_escaped(text), ensure_ascii=False)


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)

"""Arguments of a primitive: bound and checked as Python would, with errors that its author understands."""

from __future__ import annotations

from typing import Any

import pyrag_sandbox
from pyrag_sandbox import Call, PrimitiveError, Record, Text

MAX_TOPK = 100
MAX_QUERY_BYTES = 8 * 1024


def bind(call: Call, name: str, parameters: tuple[str, str], defaults: dict[str, Any]) -> tuple[Any, Any]:
    """Arguments by Python's rules for `def name(first, second=default)`; raises what Python would."""
    values = pyrag_sandbox.bind(call, parameters, defaults)
    return values[parameters[0]], values[parameters[1]]


def check_query(query: Any, name: str) -> str:
    text = query.text if isinstance(query, Text) else query
    if not isinstance(text, str):
        raise PrimitiveError(f"{name}() needs a query of type str, not {kind_of(query)}", "TypeError")
    if not text.strip():
        raise PrimitiveError(f"{name}() needs a query that is not empty", "ValueError")
    if len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise PrimitiveError(f"{name}() takes a query of at most {MAX_QUERY_BYTES} bytes", "ValueError")
    return text


def check_topk(topk: Any) -> int:
    if isinstance(topk, bool) or not isinstance(topk, int):
        raise PrimitiveError(f"topk must be a whole number, not {kind_of(topk)}", "TypeError")
    if not 1 <= topk <= MAX_TOPK:
        raise PrimitiveError(f"topk must be between 1 and {MAX_TOPK}, not {topk}", "ValueError")
    return topk


def kind_of(value: Any) -> str:
    return "str" if isinstance(value, Text) else "a passage" if isinstance(value, Record) else type(value).__name__

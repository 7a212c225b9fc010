"""Formats of replies that OpenAI's requests may ask for: text, any JSON object, or values of a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyrag.agents.typed.contract import Contract
from pyrag.server.bodies import contract_in
from pyrag.server.errors import ApiError
from pyrag.trace.model import Trace

_NO_VALUE = "The documents do not hold the answer."


def contract_of_format(value: Any, param: str) -> Contract | None:
    """Return the type of value that a request's format specifies; None for text.

    Args:
        value: `response_format`, which has the schema in `json_schema`, or `text.format`, which contains it directly.
        param: Field of the request.

    Raises:
        ApiError: The format is unknown, or has no schema that can be checked.
    """
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return contract_in({"type": "object"}, param)
    if kind != "json_schema":
        message = f"{param} must be of the type text, json_object or json_schema, not {str(kind)[:40]!r}"
        raise ApiError(400, "unsupported_parameter", message, param=param)
    named = value.get("json_schema", value)
    schema = named.get("schema") if isinstance(named, Mapping) else None
    if not isinstance(schema, dict):
        raise ApiError(400, "invalid_request", f"{param} needs the JSON schema as an object in schema", param=param)
    return contract_in(schema, param, strict=named.get("strict") is True)


def refusal_of(trace: Trace) -> str:
    """Return the reason why a trace has no value of the requested type; empty if it has one, or none was requested."""
    if trace.returns is None or trace.answer.known:
        return ""
    return trace.error.message if trace.error else trace.remark or _NO_VALUE


def value_text(trace: Trace) -> str:
    """Return the value of the requested type as JSON."""
    return json.dumps(trace.value, ensure_ascii=False)

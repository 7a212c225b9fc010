"""Metadata of a passage: the additional fields of its record, in a bounded and comparable form.

A value is a text, a number, a boolean or a list of these. Nested fields get names such as `author.name`, values that
cannot be compared become their JSON, and `null` is the same as no field. A value that is too large is dropped, never
cut, so that filters only see original values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyrag.retrieval.filters.tree import Scalar

MAX_FIELDS = 64
MAX_NAME = 128  # characters
MAX_VALUE = 2048  # bytes of one value as JSON
MAX_SIZE = 16_384  # bytes of all values; an index takes at most 65,530
_MAX_NESTED = 4
_MAX_INTEGER = 1 << 63
_LIFTED = "metadata"  # a record's object of this name holds fields as if they were its own
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,15})\.\d{1,15}")
_TRUTHS = {"true": True, "false": False}


def metadata_of(fields: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata of some fields, sorted by name, and the names of omitted fields.

    Args:
        fields: JSON values by name.
    """
    metadata: dict[str, Any] = {}
    left_out: list[str] = []
    room = MAX_SIZE
    for name, value in sorted(_flat(fields, 0), key=lambda item: item[0]):
        plain = _plain(value)
        if plain is None:
            continue
        size = _size(name) + _size(plain)
        if size > MAX_VALUE or size > room or len(metadata) >= MAX_FIELDS or not 0 < len(name) <= MAX_NAME:
            left_out.append(name[:MAX_NAME])
            continue
        metadata[name] = plain
        room -= size
    return metadata, left_out


def value_of_text(text: str) -> Scalar | None:
    """Return the value that a text represents: a number, a boolean, None if it is blank, or else the text itself."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return _TRUTHS.get(text.lower(), text or None)


def encoded(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON, which is the same for equal metadata; empty without metadata."""
    import msgspec

    return msgspec.json.encode(metadata, order="sorted").decode() if metadata else ""


def _flat(fields: Mapping[Any, object], depth: int) -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        if not isinstance(value, Mapping):
            yield str(name), value
        elif depth >= _MAX_NESTED:
            yield str(name), _json(value)
        elif depth == 0 and name == _LIFTED:
            yield from ((inner, item) for inner, item in _flat(value, 1) if inner not in fields)
        else:
            yield from ((f"{name}.{inner}", item) for inner, item in _flat(value, depth + 1))


def _plain(value: object) -> Any:
    """Return a value in a form that can be compared; None for a missing value."""
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -_MAX_INTEGER <= value < _MAX_INTEGER else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        values = (item if not isinstance(item, list | tuple | Mapping) else _json(item) for item in value)
        return [item for item in map(_plain, values) if item is not None]
    return _text(_json(value))


def _text(value: str) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _json(value: object) -> str:
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return ""


def _size(value: object) -> int:
    import msgspec

    return len(msgspec.json.encode(value))

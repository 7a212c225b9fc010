"""The metadata of a passage: the further fields of the record that it came from, in a bounded and comparable form.

A value is a text, a number, a truth or a list of these. What is nested becomes fields of its own (`author.name`), what
cannot be compared its JSON; `null` is the same as no field. What is too large is left out as a whole, never cut: a
filter must not see a value that nobody wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyrag.retrieval.filters.tree import Scalar

MAX_FIELDS = 64
MAX_NAME = 128  # characters
MAX_VALUE = 2048  # bytes of one value as JSON
MAX_SIZE = 16_384  # bytes of all of them; an index takes no more than 65,530
_MAX_NESTED = 4
_MAX_INTEGER = 1 << 63
_LIFTED = "metadata"  # a record's object of this name holds fields as if they were its own
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,15})\.\d{1,15}")
_TRUTHS = {"true": True, "false": False}


def metadata_of(fields: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata that fields make, in the order of their names, and the names of those left out.

    Args:
        fields: Values by name, as JSON has them.
    """
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    room = MAX_SIZE
    for name, value in sorted(_flat(fields, 0), key=lambda one: one[0]):
        plain = _plain(value)
        if plain is None:
            continue
        size = _size(name) + _size(plain)
        if size > MAX_VALUE or size > room or len(kept) >= MAX_FIELDS or not 0 < len(name) <= MAX_NAME:
            left_out.append(name[:MAX_NAME])
            continue
        kept[name] = plain
        room -= size
    return kept, left_out


def metadata_of_cells(cells: Iterable[tuple[str, str]]) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata that texts make: those that look like numbers and truths become such.

    Args:
        cells: Names with texts, as tables and front matter have them.
    """
    return metadata_of({name: value_of_text(text) for name, text in cells})


def value_of_text(text: str) -> Scalar | None:
    """Return a text as the value it shows: a number, `true` or `false`, nothing if empty, else the text itself."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return _TRUTHS.get(text.lower(), text or None)


def encoded(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON, equal for equal metadata; empty without any."""
    import msgspec

    return msgspec.json.encode(metadata, order="sorted").decode() if metadata else ""


def _flat(fields: Mapping[Any, object], depth: int) -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        if not isinstance(value, Mapping):
            yield str(name), value
        elif depth >= _MAX_NESTED:
            yield str(name), _json(value)
        elif depth == 0 and name == _LIFTED:
            yield from ((inner, one) for inner, one in _flat(value, 1) if inner not in fields)
        else:
            yield from ((f"{name}.{inner}", one) for inner, one in _flat(value, depth + 1))


def _plain(value: object) -> Any:
    """Return a value in a form that can be compared; None for nothing."""
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -_MAX_INTEGER <= value < _MAX_INTEGER else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        found = (one if not isinstance(one, list | tuple | Mapping) else _json(one) for one in value)
        return [one for one in map(_plain, found) if one is not None]
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

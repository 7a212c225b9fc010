"""Any Python value as JSON, so that every trace can be written, whatever a program or a caller's object contains.

None, True, numbers, text   unchanged; a lone surrogate becomes U+FFFD
nan, inf, -inf              the texts "nan", "inf" and "-inf"
numbers over 4,200 digits   the text of `hex`
tuples, ranges, sets        lists; a set's items are sorted
keys of dicts               texts: "True", "None", "1.5", "(1, 2)"; a duplicate is followed by its type
bytes                       the text of `repr`
dataclasses                 objects with their fields
models of pydantic          objects with their fields
other objects               the text of `str`, or the type's name
deeper than 100 levels      the text "…", also for values inside themselves
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

MAX_DEPTH = 100
_MAX_BITS = 14_000  # bits of an integer; Python refuses to write more than 4,300 digits
_DEEPER = "…"


def encoded(value: Any) -> bytes:
    """Encode any value as JSON: directly with msgspec (nan becomes null), or else in the forms of `jsonable`."""
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=_of_model)
    except (TypeError, ValueError, OverflowError, RecursionError):  # a UnicodeEncodeError is a ValueError
        return msgspec.json.encode(jsonable(value))


def jsonable(value: Any, depth: int = 0) -> Any:
    """Convert a value to JSON types, in the forms that the module's docstring lists.

    Args:
        value: Any object.
        depth: Number of enclosing containers.
    """
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str):
        return whole_text(value)
    if kind is int:
        return value if value.bit_length() <= _MAX_BITS else hex(value)
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if depth >= MAX_DEPTH:
        return _DEEPER
    if isinstance(value, Mapping):
        return _object(value, depth + 1)
    if isinstance(value, Set):
        return sorted((jsonable(item, depth + 1) for item in value), key=repr)
    if isinstance(value, list | tuple | range | deque):
        return [jsonable(item, depth + 1) for item in value]
    if (own := _fields_of(value)) is not None:
        return {name: jsonable(item, depth + 1) for name, item in own.items()}
    return _shown(value, repr if isinstance(value, bytes | bytearray) else str)


def whole_text(text: str) -> str:
    """Replace each lone surrogate in a text, which cannot be encoded, by U+FFFD."""
    try:
        text.encode()
        return str(text)
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _fields_of(value: object) -> dict[str, Any] | None:
    """Return the fields of a dataclass or pydantic model; None for any other object."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    dump = getattr(type(value), "model_dump", None)
    return None if dump is None else dict(dump(value, mode="json"))


def _of_model(value: object) -> dict[str, Any]:
    """Return the fields of a model, for msgspec. Raises `TypeError` for any other object."""
    if (own := _fields_of(value)) is None:
        raise TypeError(f"no JSON form of {type(value).__name__}")
    return own


def _object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    written: dict[str, Any] = {}
    own = {whole_text(key) for key in value if isinstance(key, str)}
    for key, item in value.items():
        name = whole_text(key) if isinstance(key, str) else _shown(key, str)
        while name in written or (name in own and not isinstance(key, str)):
            name = f"{name} ({type(key).__name__})"
        written[name] = jsonable(item, depth)
    return written


def _shown(value: object, show: Any) -> str:
    """Return an object's own text, or its type's name if the object fails to give one."""
    try:
        return whole_text(show(value))
    except Exception:
        return type(value).__name__

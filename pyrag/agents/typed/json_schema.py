"""JSON schemas: the keywords that are checked, references inside a schema, and the check of a value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

MAX_PARTS = 2_000
"""Maximum number of schemas inside a schema, with its references in place."""

_MAX_DEPTH = 12
_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_ANNOTATIONS = frozenset(("title", "description", "default", "examples", "$schema", "$id", "$comment"))
_CHECKED = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "minItems",
    "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "format",
))  # fmt: skip
_SIZES = (
    "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength",
)  # fmt: skip
_FORMATS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "date": (date.fromisoformat, "a date as YYYY-MM-DD"),
    "date-time": (datetime.fromisoformat, "a date and time as YYYY-MM-DDTHH:MM:SS"),
    "time": (time.fromisoformat, "a time as HH:MM:SS"),
    "uuid": (UUID, "a UUID"),
}
_REFERENCES = ("$defs", "definitions")
_ROUNDING = 1e-9
_CONTAINERS = (("properties", dict), ("required", list), ("enum", list), ("anyOf", list))


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the schemas that it refers to in place of the references.

    Args:
        schema: JSON schema, whose references are `#/$defs/NAME` or `#/definitions/NAME`.

    Raises:
        ValueError: A reference leads nowhere, or to itself, or the result has more than `MAX_PARTS` schemas.
    """
    return dict(_Inlining(schema).of(schema, ()))


class _Inlining:
    """References of a schema in progress; the number of parts is limited, since references multiply."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._count = root, 0

    def of(self, part: Any, inside: tuple[str, ...]) -> Any:
        self._count += 1
        if self._count > MAX_PARTS:
            raise ValueError(f"the schema in returns has more than {MAX_PARTS:,} parts: simplify it")
        if isinstance(part, list):
            return [self.of(item, inside) for item in part]
        if not isinstance(part, Mapping):
            return part
        hidden = _REFERENCES if part is self._root else ()
        own = {name: item for name, item in part.items() if name not in hidden}
        if not isinstance(reference := own.get("$ref"), str):
            return {name: self.of(item, inside) for name, item in own.items()}
        if reference in inside or reference == "#":
            raise ValueError(f"the schema in returns refers to itself by {reference[:80]!r}: write the levels out")
        del own["$ref"]
        return {**self.of(self._target(reference), (*inside, reference)), **self.of(own, inside)}

    def _target(self, reference: str) -> Mapping[str, Any]:
        place: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            place = place.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
        if not isinstance(place, Mapping) or not reference.startswith("#/"):
            raise ValueError(f"the schema in returns refers to {reference[:80]!r}, which it does not hold")
        return place


def is_number(value: Any) -> bool:
    """Return True for a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def check_schema(schema: Any, place: str, *, strict: bool = True, depth: int = 0) -> None:
    """Check that a schema can be checked against.

    Args:
        schema: The schema, without references.
        place: Words for it in messages.
        strict: Whether keywords that `check` does not know are refused.
        depth: Number of schemas around it.

    Raises:
        ValueError: The schema is malformed, nested too deeply, or has a keyword that is refused.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        raise ValueError(f"{place} is not a JSON schema of at most {_MAX_DEPTH} levels")
    if strict and (unknown := sorted(map(str, schema.keys() - _CHECKED - _ANNOTATIONS))):
        known = ", ".join(sorted(_CHECKED))
        raise ValueError(f"{place} has the keyword {unknown[0]!r}, which is not supported: use {known}")
    _check_keywords(schema, place)
    for part, where in _parts(schema):
        check_schema(part, f"{place}, {where}", strict=strict, depth=depth + 1)


def _check_keywords(schema: Mapping[str, Any], place: str) -> None:
    for name in types_of(schema):
        if not isinstance(name, str) or name not in _JSON_TYPES:
            raise ValueError(f"{place} has the unknown type {name!r}: use {', '.join(_JSON_TYPES)}")
    for name, kind in _CONTAINERS:
        if not isinstance(schema.get(name, kind()), kind):
            raise ValueError(f"{place}: {name} must be a {kind.__name__}")
    for name in _SIZES:
        if name in schema and not is_number(schema[name]):
            raise ValueError(f"{place}: {name} must be a number")


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield the schemas inside a schema, with their places."""
    yield from ((part, f"property {name}") for name, part in schema.get("properties", {}).items())
    yield from ((part, "anyOf") for part in schema.get("anyOf", []))
    if "items" in schema:
        yield schema["items"], "items"
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield schema["additionalProperties"], "additionalProperties"


def types_of(schema: Mapping[str, Any]) -> list[Any]:
    """Return the names of the types that a schema allows; empty for all types."""
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Return True if null satisfies a schema."""
    return fits(None, schema)


def check(value: Any, schema: Mapping[str, Any], place: str) -> None:
    """Check a value.

    Args:
        value: The value, as JSON.
        schema: Schema that `check_schema` accepted.
        place: Word for the value in messages.

    Raises:
        ValueError: The value does not satisfy the schema; the message names the place in the value.
    """
    if not schema:
        return
    names = types_of(schema)
    if names and not any(_has_type(value, name) for name in names):
        shown = "null, which stands for unknown" if value is None else json.dumps(value, ensure_ascii=False)[:60]
        raise ValueError(f"{place} must be of type {' or '.join(names)}, not {shown}")
    if "enum" in schema and not any(_equal(value, choice) for choice in schema["enum"]):
        raise ValueError(f"{place} must be one of {json.dumps(schema['enum'], ensure_ascii=False)[:200]}")
    if "const" in schema and not _equal(value, schema["const"]):
        raise ValueError(f"{place} must be {json.dumps(schema['const'], ensure_ascii=False)[:200]}")
    if schema.get("anyOf") and not any(fits(value, part) for part in schema["anyOf"]):
        raise ValueError(_fault_of_forms(value, schema["anyOf"], place))
    _check_inside(value, schema, place)


def _equal(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _fault_of_forms(value: Any, forms: Any, place: str) -> str:
    """Return the fault of a value in the only form besides null, or that it has none of several forms."""
    others = [form for form in forms if not takes_null(form)]
    if len(others) == 1 and value is not None:
        try:
            check(value, others[0], place)
        except ValueError as error:
            return str(error)
    return f"{place} fits none of the forms in anyOf"


def _check_inside(value: Any, schema: Mapping[str, Any], place: str) -> None:
    if is_number(value):
        _check_number(value, schema, place)
    elif isinstance(value, str):
        _within(len(value), schema.get("minLength"), schema.get("maxLength"), f"the length of {place}")
        _check_format(value, schema.get("format"), place)
    elif isinstance(value, list):
        _within(len(value), schema.get("minItems"), schema.get("maxItems"), f"the number of items of {place}")
        if schema.get("uniqueItems") is True and any(item in value[:number] for number, item in enumerate(value)):
            raise ValueError(f"{place} holds an item twice")
        for number, item in enumerate(value):
            check(item, schema.get("items", {}), f"{place}[{number}]")
    elif isinstance(value, dict):
        _check_object(value, schema, place)


def _check_number(value: float, schema: Mapping[str, Any], place: str) -> None:
    _within(value, schema.get("minimum"), schema.get("maximum"), place)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if (above is not None and value <= above) or (below is not None and value >= below):
        raise ValueError(f"{place} is {value:g}, not between {above} and {below}")
    if (step := schema.get("multipleOf")) and abs(value / step - round(value / step)) > _ROUNDING:
        raise ValueError(f"{place} is {value:g}, which is not a multiple of {step:g}")


def _check_format(text: str, name: Any, place: str) -> None:
    parse, words = _FORMATS.get(name, (None, "")) if isinstance(name, str) else (None, "")
    try:
        if parse is not None:
            parse(text)
    except ValueError:
        raise ValueError(f"{place} must be {words}, not {json.dumps(text, ensure_ascii=False)[:60]}") from None


def _check_object(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> None:
    parts, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        raise ValueError(f"{place} lacks {missing[0]!r}")
    for name, item in value.items():
        if name not in parts and others is False:
            raise ValueError(f"{place} has the field {name!r}, which the schema does not know")
        check(item, parts.get(name, others if isinstance(others, dict) else {}), f"{place}.{name}")


def _has_type(value: Any, name: str) -> bool:
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _JSON_TYPES[name]) and (name == "boolean") == isinstance(value, bool)


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return True if a value satisfies a schema.

    Args:
        value: The value, as JSON.
        schema: Schema that `check_schema` accepted.
    """
    try:
        check(value, schema, "value")
    except ValueError:
        return False
    return True


def _within(size: float, smallest: float | None, largest: float | None, place: str) -> None:
    if (smallest is not None and size < smallest) or (largest is not None and size > largest):
        raise ValueError(f"{place} is {size:g}, outside of {smallest} to {largest}")

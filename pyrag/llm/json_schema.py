"""JSON schemas: the keywords that are checked, and the check of a value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

_MAX_DEPTH = 32
_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_ANNOTATIONS = frozenset(("title", "description", "default", "examples", "$schema", "$id", "$comment", "discriminator"))
_CHECKED = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "minItems",
    "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "format", "prefixItems", "oneOf",
))  # fmt: skip
_SIZES = (
    "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength",
)  # fmt: skip
_DAY, _TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d.*"
_FORMATS: Mapping[str, tuple[str, Callable[[str], object], str]] = {
    "date": (_DAY, date.fromisoformat, "a date as YYYY-MM-DD"),
    "date-time": (f"{_DAY}[Tt ]{_TIME}", datetime.fromisoformat, "a date and time as YYYY-MM-DDTHH:MM:SS"),
    "time": (_TIME, time.fromisoformat, "a time as HH:MM:SS"),
    "uuid": (".*", UUID, "a UUID"),
}
"""Pattern, parser and description of each format that is checked."""

_ROUNDING = 1e-9
_CONTAINERS = (
    ("properties", dict), ("required", list), ("enum", list), ("anyOf", list), ("oneOf", list), ("prefixItems", list),
)  # fmt: skip


def is_number(value: Any) -> bool:
    """Return True for a finite number that all JSON readers read as the same value."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def check_schema(schema: Any, place: str, *, strict: bool = True, depth: int = 0) -> None:
    """Check that `check` can use a schema.

    Args:
        schema: The schema, without references.
        place: Description of the schema in messages.
        strict: Whether keywords that `check` does not know are refused.
        depth: Number of enclosing schemas.

    Raises:
        ValueError: The schema is malformed, nested too deeply, or has a keyword that is refused.
    """
    if not isinstance(schema, dict):
        raise ValueError(f"{place} is not a JSON schema")
    if depth > _MAX_DEPTH:
        raise ValueError(f"{place} is nested too deeply: at most {_MAX_DEPTH} levels are possible")
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
    if not all(isinstance(name, str) for name in schema.get("required", ())):
        raise ValueError(f"{place}: required must hold names")
    for name in _SIZES:
        if name in schema and not is_number(schema[name]):
            raise ValueError(f"{place}: {name} must be a number")


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield the schemas inside a schema, with their places."""
    yield from ((part, f"property {name}") for name, part in schema.get("properties", {}).items())
    for name in ("anyOf", "oneOf", "prefixItems"):
        yield from ((part, name) for part in schema.get(name, []))
    if "items" in schema:
        yield schema["items"], "items"
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield schema["additionalProperties"], "additionalProperties"


def types_of(schema: Mapping[str, Any]) -> list[Any]:
    """Return the names of the types that a schema allows; empty for all types."""
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def forms_of(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a schema (`anyOf` or `oneOf`); empty for a schema without them."""
    forms: list[Mapping[str, Any]] = schema.get("anyOf") or schema.get("oneOf") or []
    return forms


def item_schema(schema: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """Return the schema of an item of an array.

    Args:
        schema: Schema of the array.
        number: Position of the item, from 0.
    """
    first = schema.get("prefixItems", ())
    item: Mapping[str, Any] = first[number] if number < len(first) else schema.get("items", {})
    return item


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
    _check_forms(value, schema, place)
    _check_inside(value, schema, place)


def _equal(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _check_forms(value: Any, schema: Mapping[str, Any], place: str) -> None:
    """Check that a value has one of several forms. Each form is checked only once, since forms may contain forms."""
    for name, fault in (("anyOf", "fits none of the forms in anyOf"), ("oneOf", "does not fit one form in oneOf")):
        forms = schema.get(name)
        if not forms:
            continue
        faults = [_fault(value, form, place) for form in forms]
        fitting = faults.count("")
        if fitting == 1 or (fitting and name == "anyOf"):
            continue
        others = [text for text, form in zip(faults, forms, strict=True) if value is None or not takes_null(form)]
        raise ValueError(others[0] if len(others) == 1 and not fitting else f"{place} {fault}")


def _fault(value: Any, schema: Mapping[str, Any], place: str) -> str:
    """Return a description of a value's fault; empty if the value satisfies the schema."""
    try:
        check(value, schema, place)
    except ValueError as error:
        return str(error)
    return ""


def _check_inside(value: Any, schema: Mapping[str, Any], place: str) -> None:
    if is_number(value):
        _check_number(value, schema, place)
    elif isinstance(value, str):
        _within(len(value), schema.get("minLength"), schema.get("maxLength"), f"the length of {place}")
        _check_format(value, schema.get("format"), place)
    elif isinstance(value, list):
        _within(len(value), schema.get("minItems"), schema.get("maxItems"), f"the number of items of {place}")
        if schema.get("uniqueItems") is True and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
            raise ValueError(f"{place} holds an item twice")
        for number, item in enumerate(value):
            check(item, item_schema(schema, number), f"{place}[{number}]")
    elif isinstance(value, dict):
        _check_object(value, schema, place)


def _check_number(value: float, schema: Mapping[str, Any], place: str) -> None:
    _within(value, schema.get("minimum"), schema.get("maximum"), place)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if (above is not None and value <= above) or (below is not None and value >= below):
        raise ValueError(f"{place} is {value:g}, not between {above} and {below}")
    times = value / step if (step := schema.get("multipleOf")) else 0.0
    if not math.isfinite(times) or abs(times - round(times)) > _ROUNDING:
        raise ValueError(f"{place} is {value:g}, which is not a multiple of {step:g}")


def _check_format(text: str, name: Any, place: str) -> None:
    if not isinstance(name, str) or name not in _FORMATS:
        return
    pattern, parse, words = _FORMATS[name]
    try:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(text)
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
    if name in ("integer", "number") and not isinstance(value, bool):
        return is_number(value) and (name == "number" or float(value).is_integer())
    return isinstance(value, _JSON_TYPES[name]) and (name == "boolean") == isinstance(value, bool)


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return True if a value satisfies a schema.

    Args:
        value: The value, as JSON.
        schema: Schema that `check_schema` accepted.
    """
    return not _fault(value, schema, "value")


def _within(size: float, smallest: float | None, largest: float | None, place: str) -> None:
    if (smallest is not None and size < smallest) or (largest is not None and size > largest):
        raise ValueError(f"{place} is {size:g}, outside of {smallest} to {largest}")

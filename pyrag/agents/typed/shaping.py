"""Conversion of a program's values to a type: answers are parsed, and missing fields that allow null are filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrag.agents.typed.returns import Returns, is_missing, is_scalar, read_scalar
from pyrag.llm.json_schema import check, fits, forms_of, is_number, item_schema, takes_null, types_of
from pyrag_helpers.names import split_list

PLACE = "final_answer"
"""Word for the value in messages."""

ANSWER = "answer"
"""Field that holds a single text if the schema allows any object."""


def shaped(value: Any, returns: Returns) -> Any:
    """Convert a value to the form of a type.

    Args:
        value: JSON, with None for unknown answers. A text may be read as a number, a date, yes or no, a choice or a
            list; a single value becomes the object that has no other field to fill.
        returns: The type.

    Raises:
        ValueError: The value does not fit. The message names the place and the fault.
    """
    if returns.name == "json":
        value = _shaped(value, returns.schema)
        check(value, returns.schema, PLACE)
        return value
    value = _shaped(value, returns.schema) if returns.name in ("str", "list[str]") else _as_text(value, returns)
    try:
        return returns.checked(value)
    except ValueError as error:
        raise ValueError(f"{PLACE} does not fit: {error}") from None


def fills_from_text(returns: Returns) -> bool:
    """Return True if a single short text can supply a value of a type."""
    if returns.name != "json":
        return True
    schema = _without_null(returns.schema)
    if "object" in types_of(schema):
        name = _only_field(schema)
        return name is not None and _is_readable(_field(schema, name))
    return _is_readable(schema)


def _as_text(value: Any, returns: Returns) -> Any:
    """Convert a number to a text if a date is expected: 1950 is a year."""
    return str(value) if returns.name == "date" and is_number(value) else value


def _is_readable(schema: Mapping[str, Any]) -> bool:
    schema = _without_null(schema)
    if "array" in types_of(schema):
        return not schema.get("items") or is_scalar(_without_null(schema["items"]))
    return not schema or is_scalar(schema)


def _shaped(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert a value to the form of a schema as far as possible; the result may not fit."""
    if isinstance(value, float) and value.is_integer() and "integer" in types_of(schema):
        return int(value)
    if fits(value, schema) and not (is_missing(value) and takes_null(schema)):
        return value
    if is_missing(value):
        return None if takes_null(schema) else _choice_of_unknown(schema, value)
    if forms := [form for form in forms_of(schema) if not takes_null(form)]:
        candidates = [_shaped(value, form) for form in forms]
        return next((item for item, form in zip(candidates, forms, strict=True) if fits(item, form)), candidates[0])
    types = types_of(schema)
    if "object" in types:
        return _object(value, schema)
    if isinstance(value, list) and ("array" in types or not types):
        return [_shaped(item, item_schema(schema, number)) for number, item in enumerate(value)]
    if isinstance(value, str) and "array" in types:
        return [_shaped(item, item_schema(schema, number)) for number, item in enumerate(split_list(value))]
    return _scalar(value, schema)


def _choice_of_unknown(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the choice that itself means "unknown"; the value if there is no such choice."""
    return next((choice for choice in schema.get("enum", ()) if choice and is_missing(choice)), value)


def _scalar(value: Any, schema: Mapping[str, Any]) -> Any:
    types = types_of(schema)
    if "string" in types and isinstance(value, bool):
        value = "yes" if value else "no"
    elif is_number(value) and "string" in types:
        value = str(value)
    elif is_number(value) and "integer" in types and value == int(value):
        value = int(value)
    if not isinstance(value, str) or not is_scalar(schema):
        return value
    try:
        return read_scalar(value, schema)
    except ValueError:
        return value  # the check of the whole value names the place


def _object(value: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        name = None if isinstance(value, list) and len(value) > 1 and not _takes_list(schema) else _only_field(schema)
        if name is None or is_missing(value):
            return value
        value = {name: value}
    fields = {name: _shaped(item, _field(schema, name)) for name, item in value.items()}
    required = [name for name in schema.get("required", ()) if name not in fields]
    return {**fields, **{name: None for name in required if takes_null(_field(schema, name))}}


def _takes_list(schema: Mapping[str, Any]) -> bool:
    name = _only_field(schema)
    return name is not None and "array" in types_of(_without_null(_field(schema, name)))


def _only_field(schema: Mapping[str, Any]) -> str | None:
    """Return the field of an object that is still to be filled; None if this is not clear."""
    names = list(schema.get("properties", ()))
    needed = [name for name in schema.get("required", ()) if not takes_null(_field(schema, name))]
    if len(needed) == 1:
        return str(needed[0])
    if needed or len(names) > 1:
        return None
    if names:
        return str(names[0])
    return None if schema.get("additionalProperties", True) is False else ANSWER


def _field(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    others = schema.get("additionalProperties")
    field: Mapping[str, Any] = schema.get("properties", {}).get(name, others if isinstance(others, Mapping) else {})
    return field


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the only form of a schema other than null; the schema itself if it has several."""
    forms = [form for form in forms_of(schema) if not takes_null(form)]
    return forms[0] if len(forms) == 1 else schema

"""Types of answers: a number, a date, yes or no, a list of texts, or a value of a JSON schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyrag_helpers.date_forms import find_dates
from pyrag_helpers.dates import parse_date
from pyrag_helpers.names import split_list
from pyrag_helpers.numbers import parse_number
from pyrag_helpers.unknown import is_unknown

MAX_SCHEMA_BYTES = 16 * 1024
_MAX_DEPTH = 12
_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_ANNOTATIONS = frozenset(("title", "description", "default", "examples", "format", "$schema", "$id", "$comment"))
_CHECKED = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "minItems",
    "maxItems", "minimum", "maximum", "minLength", "maxLength",
))  # fmt: skip
_SCALARS = frozenset(("string", "number", "integer", "boolean"))
_SIZES = ("minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength")
_TRUE, _FALSE = frozenset(("yes", "true", "y")), frozenset(("no", "false", "n"))


@dataclass(frozen=True, slots=True)
class Returns:
    """Type of an answer.

    Attributes:
        name: "number", "date", "bool", "list[str]", or "json" for a schema.
        schema: JSON schema of the value.
    """

    name: str
    schema: Mapping[str, Any] = field(hash=False)

    @classmethod
    def of(cls, value: Any) -> Returns:
        """Return the type that a program or caller names.

        Args:
            value: Name of a type, or a JSON schema as a dict.

        Raises:
            ValueError: The value is neither, or the schema uses a keyword that cannot be checked.
        """
        if isinstance(value, str) and value in _NAMED:
            return cls(value, _NAMED[value][0])
        if not isinstance(value, dict):
            names = ", ".join(f'"{name}"' for name in _NAMED)
            raise ValueError(f"returns must be {names} or a JSON schema as a dict, not {str(value)[:40]!r}")
        try:
            size = len(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the schema in returns is not JSON ({error})") from None
        if size > MAX_SCHEMA_BYTES:
            raise ValueError(f"the schema in returns has {size:,} bytes: at most {MAX_SCHEMA_BYTES:,} are possible")
        _check_schema(value, "the schema in returns", 0)
        return cls("json", value)

    @property
    def key(self) -> str:
        """Text that is equal for equal types, for the memo."""
        return self.name if self.name != "json" else json.dumps(self.schema, sort_keys=True)

    @property
    def wanted(self) -> str:
        """Description of the type for a prompt."""
        if self.name != "json":
            return _NAMED[self.name][1]
        return f"a value of this JSON schema: {json.dumps(self.schema, ensure_ascii=False)}"

    @property
    def reads_text(self) -> bool:
        """False for a schema whose values cannot be read from a short text."""
        return (
            self.name != "json" or "enum" in self.schema or self._scalar in ("string", "number", "integer", "boolean")
        )

    @property
    def _scalar(self) -> str:
        """The schema's type, without null."""
        types = [name for name in _types(self.schema) if name != "null"]
        return str(types[0]) if len(types) == 1 else ""

    def checked(self, value: Any) -> Any:
        """Return a value of a reply in this type's form. Raises `ValueError`, which says what is wrong with it."""
        if self.name == "json":
            _check(value, self.schema, "value")
            return value
        if isinstance(value, str):
            return self.read(value)
        if self.name == "list[str]" and isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        if self.name == "bool" and isinstance(value, bool):
            return value
        if self.name == "number" and _is_number(value):
            return value
        raise ValueError(f"it is not {self.wanted}: {json.dumps(value, ensure_ascii=False)[:80]}")

    def read(self, text: str) -> Any:
        """Return the value in a short text. Raises `ValueError` if the text has none."""
        if self.name != "json":
            return _NAMED[self.name][2](text)
        if "enum" in self.schema:
            return _choice(text, self.schema["enum"])
        value = _READERS.get(self._scalar, str)(text)
        _check(value, self.schema, "value")
        return value

    def text(self, value: Any) -> str:
        """Return a value as the text of an answer."""
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def value(self, text: str) -> Any:
        """Return the value of an answer's text, which `text` wrote."""
        if self.name == "date" or (self.name == "json" and not _is_json(text, self.schema)):
            return text
        return json.loads(text)


def is_missing(value: Any) -> bool:
    """Return True for a value that stands for an unknown answer."""
    return value is None or (isinstance(value, str) and (not value.strip() or is_unknown(value)))


def _date(text: str) -> str:
    """Return a date as YYYY-MM-DD, or as YYYY-MM or YYYY if the text says no more."""
    day = parse_date(text)
    form = next(iter(find_dates(text)))
    written = day.isoformat()
    return written if form.day else written[:7] if form.month else written[:4]


def _number(text: str) -> int | float:
    value = parse_number(text)
    return int(value) if isinstance(value, int) else float(value)


def _truth(text: str) -> bool:
    word = text.strip().strip(".!").split(",")[0].split(" ")[0].casefold()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"it is neither yes nor no: {text[:80]!r}")


def _whole(text: str) -> int:
    value = _number(text)
    if value != int(value):
        raise ValueError(f"it is not a whole number: {text[:80]!r}")
    return int(value)


def _choice(text: str, choices: Any) -> Any:
    folded = text.strip().strip(".").casefold()
    for choice in choices:
        if str(choice).casefold() == folded:
            return choice
    raise ValueError(f"it is not one of {', '.join(map(str, choices))}: {text[:80]!r}")


_NAMED: dict[str, tuple[dict[str, Any], str, Callable[[str], Any]]] = {
    "number": (
        {"type": "number"},
        "one number in digits, without unit and separators: 1.5 million is 1500000",
        _number,
    ),
    "date": (
        {"type": "string"},
        "a date as text, YYYY-MM-DD, or YYYY-MM or YYYY if the documents do not tell more",
        _date,
    ),
    "bool": ({"type": "boolean"}, "true or false", _truth),
    "list[str]": ({"type": "array", "items": {"type": "string"}}, "a list of short texts", split_list),
}
_READERS: dict[str, Callable[[str], Any]] = {"number": _number, "integer": _whole, "boolean": _truth}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_json(text: str, schema: Mapping[str, Any]) -> bool:
    """Return True if an answer's text is the JSON of a value, and False if it is the value itself."""
    try:
        value = json.loads(text)
        _check(value, schema, "value")
    except (ValueError, RecursionError):
        return False
    return not isinstance(value, str)


def _check_schema(schema: Any, place: str, depth: int) -> None:
    """Raise `ValueError` for a schema that `_check` would not check in full."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        raise ValueError(f"{place} is not a JSON schema of at most {_MAX_DEPTH} levels")
    if unknown := sorted(map(str, schema.keys() - _CHECKED - _ANNOTATIONS)):
        known = ", ".join(sorted(_CHECKED))
        raise ValueError(f"{place} has the keyword {unknown[0]!r}, which is not supported: use {known}")
    _check_keywords(schema, place)
    for part, where in _parts(schema):
        _check_schema(part, f"{place}, {where}", depth + 1)


def _check_keywords(schema: Mapping[str, Any], place: str) -> None:
    for name in _types(schema):
        if not isinstance(name, str) or name not in _JSON_TYPES:
            raise ValueError(f"{place} has the unknown type {name!r}: use {', '.join(_JSON_TYPES)}")
    for name, kind in (("properties", dict), ("required", list), ("enum", list), ("anyOf", list)):
        if not isinstance(schema.get(name, kind()), kind):
            raise ValueError(f"{place}: {name} must be a {kind.__name__}")
    for name in _SIZES:
        if name in schema and not _is_number(schema[name]):
            raise ValueError(f"{place}: {name} must be a number")


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield the schemas inside a schema, with their places."""
    yield from ((part, f"property {name}") for name, part in schema.get("properties", {}).items())
    yield from ((part, "anyOf") for part in schema.get("anyOf", []))
    if "items" in schema:
        yield schema["items"], "items"
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield schema["additionalProperties"], "additionalProperties"


def _types(schema: Mapping[str, Any]) -> list[Any]:
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def _check(value: Any, schema: Mapping[str, Any], place: str) -> None:
    """Raise `ValueError` unless a value satisfies a schema that `_check_schema` accepted."""
    if not schema:
        return
    names = _types(schema)
    if names and not any(_has_type(value, name) for name in names):
        raise ValueError(f"{place} must be of type {' or '.join(names)}, not {json.dumps(value)[:60]}")
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{place} must be one of {json.dumps(schema['enum'])[:200]}")
    if "const" in schema and value != schema["const"]:
        raise ValueError(f"{place} must be {json.dumps(schema['const'])[:200]}")
    if schema.get("anyOf") and not any(_fits(value, part) for part in schema["anyOf"]):
        raise ValueError(f"{place} fits none of the forms in anyOf")
    _check_inside(value, schema, place)


def _check_inside(value: Any, schema: Mapping[str, Any], place: str) -> None:
    if _is_number(value):
        _within(value, schema.get("minimum"), schema.get("maximum"), place)
    elif isinstance(value, str):
        _within(len(value), schema.get("minLength"), schema.get("maxLength"), f"the length of {place}")
    elif isinstance(value, list):
        _within(len(value), schema.get("minItems"), schema.get("maxItems"), f"the number of items of {place}")
        for number, item in enumerate(value):
            _check(item, schema.get("items", {}), f"{place}[{number}]")
    elif isinstance(value, dict):
        _check_object(value, schema, place)


def _check_object(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> None:
    parts, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        raise ValueError(f"{place} lacks {missing[0]!r}")
    for name, item in value.items():
        if name not in parts and others is False:
            raise ValueError(f"{place} has the field {name!r}, which the schema does not know")
        _check(item, parts.get(name, others if isinstance(others, dict) else {}), f"{place}.{name}")


def _has_type(value: Any, name: str) -> bool:
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _JSON_TYPES[name]) and (name == "boolean") == isinstance(value, bool)


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    try:
        _check(value, schema, "value")
    except ValueError:
        return False
    return True


def _within(size: float, smallest: float | None, largest: float | None, place: str) -> None:
    if (smallest is not None and size < smallest) or (largest is not None and size > largest):
        raise ValueError(f"{place} is {size:g}, outside of {smallest} to {largest}")

"""Types of answers: a number, a date, yes or no, a text, a list of texts, or a value of a JSON schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyrag.agents.typed.references import inlined
from pyrag.llm.json_schema import check, check_schema, is_number, types_of
from pyrag_helpers.date_forms import find_dates
from pyrag_helpers.dates import parse_date
from pyrag_helpers.measures.amounts import read_amount
from pyrag_helpers.names import split_list
from pyrag_helpers.numbers import parse_number
from pyrag_helpers.unknown import is_unknown

MAX_SCHEMA_BYTES = 16 * 1024
_TRUE = frozenset(("yes", "true", "y"))
_TRUTH = re.compile(  # the word itself, or with a clause: "no information" and "true story" are neither
    r"(yes|no|true|false|y|n)(?:\W*\Z|\s*[,;:!–—]|\s+-|\.\s+(?!\d)|\s+(?:it|he|she|they|this|that|there|these|those)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Returns:
    """Type of an answer.

    Attributes:
        name: "number", "int", "date", "bool", "str", "list[str]", or "json" for a schema.
        schema: JSON schema of the value.
    """

    name: str
    schema: Mapping[str, Any] = field(hash=False)

    @classmethod
    def of(cls, value: Any, *, strict: bool = True) -> Returns:
        """Return the type that a program or caller names.

        Args:
            value: Name of a type, or a JSON schema as a dict.
            strict: Whether keywords that cannot be checked are refused; otherwise they are only shown to the model.

        Raises:
            ValueError: The value is neither a type's name nor a schema, or the schema cannot be checked.
        """
        if isinstance(value, str) and value in _NAMED:
            return cls(value, _NAMED[value][0])
        if not isinstance(value, Mapping):
            names = ", ".join(f'"{name}"' for name in _NAMED)
            raise ValueError(
                f"returns must be {names} or a JSON schema (a dict, or a file for --returns), not {str(value)[:40]!r}"
            )
        try:
            size = len(json.dumps(value, allow_nan=False))
            schema = inlined(value) if size <= MAX_SCHEMA_BYTES else {}
        except (TypeError, RecursionError) as error:
            raise ValueError(f"the schema in returns is not JSON ({error})") from None
        if size > MAX_SCHEMA_BYTES:
            raise ValueError(f"the schema in returns has {size:,} bytes: at most {MAX_SCHEMA_BYTES:,} are possible")
        check_schema(schema, "the schema in returns", strict=strict)
        return cls("json", schema)

    @property
    def key(self) -> str:
        """Text that is the same for equal types, as a key of the memo."""
        return self.name if self.name != "json" else json.dumps(self.schema, sort_keys=True)

    @property
    def wanted(self) -> str:
        """Description of the type for prompts."""
        if self.name != "json":
            return _NAMED[self.name][1]
        return f"a value of this JSON schema: {json.dumps(self.schema, ensure_ascii=False)}"

    @property
    def reads_text(self) -> bool:
        """True unless the type is a schema whose values cannot be read from a short text."""
        return self.name != "json" or is_scalar(self.schema)

    def checked(self, value: Any) -> Any:
        """Convert a value from a reply to this type's form. Raises `ValueError` that describes a fault in the value."""
        if self.name == "json":
            check(value, self.schema, "value")
            return value
        if isinstance(value, str):
            return self.read(value)
        if self.name == "list[str]" and isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        if self.name == "bool" and isinstance(value, bool):
            return value
        if self.name == "number" and is_number(value):
            return value
        if self.name == "int" and is_number(value) and value == int(value):
            return int(value)
        raise ValueError(f"it is not {self.wanted}: {json.dumps(value, ensure_ascii=False)[:80]}")

    def read(self, text: str) -> Any:
        """Read a value from a short text. Raises `ValueError` if the text holds no value of the type."""
        if self.name != "json":
            return _NAMED[self.name][2](text)
        value = read_scalar(text, self.schema)
        check(value, self.schema, "value")
        return value

    def written(self, text: str) -> str:
        """Return the value in a short text as the text of an answer; a number keeps its unit, as in "12 kg".

        Args:
            text: The text.

        Raises:
            ValueError: The text has no value of the type.
        """
        value = self.text(self.read(text))
        unit = unit_in(text) if self.name == "number" else ""
        return f"{value} {unit}" if unit else value

    def text(self, value: Any) -> str:
        """Convert a value to the text of an answer."""
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def value(self, text: str) -> Any:
        """Return the value of an answer's text, which `text` or `written` wrote."""
        if self.name == "number" and unit_in(text):
            return _number(text)
        if self.name in ("date", "str") or (self.name == "json" and not _is_json(text, self.schema)):
            return text
        return json.loads(text)


def unit_in(text: str) -> str:
    """Return the unit of the first amount in a text; empty if there is none."""
    try:
        return read_amount(text)[0].unit.name
    except ValueError:
        return ""


def is_missing(value: Any) -> bool:
    """Return True for a value that stands for an unknown answer."""
    return value is None or (isinstance(value, str) and (not value.strip() or is_unknown(value)))


def is_scalar(schema: Mapping[str, Any]) -> bool:
    """Return True for the schema of a text, a number, a boolean, or a choice between values."""
    return "enum" in schema or "const" in schema or _type_of(schema) in ("string", "number", "integer", "boolean")


def read_scalar(text: str, schema: Mapping[str, Any]) -> Any:
    """Read a value from a short text.

    Args:
        text: The text.
        schema: Schema for which `is_scalar` is true. The value may violate the schema's limits.

    Raises:
        ValueError: The text has no value of the type.
    """
    if "enum" in schema or "const" in schema:
        return _choice(text, schema.get("enum", [schema.get("const")]))
    kind = _type_of(schema)
    return _day(text) if kind == "string" and schema.get("format") == "date" else _READERS.get(kind, str)(text)


def _type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema without null; empty if it has several."""
    types = [name for name in types_of(schema) if name != "null"]
    return str(types[0]) if len(types) == 1 else ""


def _day(text: str) -> str:
    """Return a full date as YYYY-MM-DD."""
    written = _date(text)
    if written.count("-") < 2:
        raise ValueError(f"it is not a date with its day: {text[:80]!r}")
    return written


def _date(text: str) -> str:
    """Return a date as YYYY-MM-DD, or as YYYY-MM or YYYY if the text is less precise."""
    day, forms = parse_date(text), find_dates(text)
    first, *others = ((form.year, form.month, form.day) for form in forms)
    if any(part != own for other in others for part, own in zip(other, first, strict=True) if part and own):
        raise ValueError(f"it holds several dates: {text[:80]!r}")
    if forms[0].span > 1:
        raise ValueError(f"it is a period of {forms[0].span} years, not a date: {text[:80]!r}")
    written = day.isoformat()
    return written if first[2] else written[:7] if first[1] else written[:4]


def _number(text: str) -> int | float:
    if any(form.month for form in find_dates(text)):
        raise ValueError(f"it is a date, not a number: {text[:80]!r}")
    value = parse_number(text)
    return int(value) if isinstance(value, int) else float(value)


def _truth(text: str) -> bool:
    match = _TRUTH.match(text.strip())
    if match is not None:
        return match[1].casefold() in _TRUE
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
    "int": ({"type": "integer"}, "one whole number in digits, without unit and separators", _whole),
    "date": (
        {"type": "string"},
        "a date as text, YYYY-MM-DD, or YYYY-MM or YYYY if the documents do not tell more",
        _date,
    ),
    "bool": ({"type": "boolean"}, "true or false", _truth),
    "str": ({"type": "string"}, "a short text", str.strip),
    "list[str]": ({"type": "array", "items": {"type": "string"}}, "a list of short texts", split_list),
}
_READERS: dict[str, Callable[[str], Any]] = {"number": _number, "integer": _whole, "boolean": _truth}


def _is_json(text: str, schema: Mapping[str, Any]) -> bool:
    """Return True if an answer's text is the JSON form of a value, and False if the text is the value itself."""
    try:
        value = json.loads(text)
        check(value, schema, "value")
    except (ValueError, RecursionError):
        return False
    return not isinstance(value, str)

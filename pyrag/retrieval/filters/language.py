"""Language of filters: texts, and mappings in Python or JSON.

    year >= 2020 and team = "ops"
    access in ("public", "internal") and not (tags contains "draft" or exists expires)
    {"year": {">=": 2020}, "team": "ops"}

    filter      = all {"or" all}
    all         = single {"and" single}
    single      = "not" single | "(" filter ")" | "exists" field | field comparison
    comparison  = ("=" | "!=" | "<" | "<=" | ">" | ">=") value | ["not"] "in" "(" value {"," value} ")"
                | ["not"] "contains" value

Values are texts in quotes, numbers, `true` and `false`; `field = null` means `not exists field`. The name of a field
with characters other than letters, digits, `_`, `.` and `-` is written in backquotes. Error messages give the position
of the character.

All keys of a mapping must hold. A key is a field, whose value is a value, a list of values (`in`) or a mapping of
operators; or `and` or `or` with a list of mappings, or `not` with a mapping.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, cast

from pyrag.errors import FilterError
from pyrag.retrieval.filters.tree import (
    KEYWORDS,
    Comparison,
    Containment,
    Existence,
    Filter,
    Membership,
    Operator,
    Scalar,
    all_of,
    any_of,
    kind_of,
)

MAX_CHARACTERS = 8192
MAX_COMPARISONS = 256
MAX_DEPTH = 32
MAX_JOINED = 8  # filters of this size that may be joined, such as the filters of a server, a key and a request
MAX_VALUES = 1000
_MAX_INTEGER = 1 << 63
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_TOKEN = re.compile(
    r"""(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<word>[^\W\d][\w.-]*)
    | (?P<mark>==|!=|<=|>=|[=<>()\[\],])
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WORDS: dict[str, Scalar | None] = {"true": True, "false": False, "null": None}
_EXAMPLE = 'such as year >= 2020 and team = "ops"'


def filter_of(value: str | Mapping[str, Any] | Filter | None) -> Filter | None:
    """Return a filter in any form as a tree; None stays None.

    Raises:
        FilterError: The filter cannot be read, or is too large.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if len(value) > MAX_CHARACTERS:
            raise FilterError(f"the filter has {len(value)} characters: use at most {MAX_CHARACTERS}")
        return parsed(value)
    if isinstance(value, Mapping):
        result = _Mapping().filter(value, 0)
        if len(str(result)) > MAX_CHARACTERS:
            raise FilterError(f"the filter is longer than {MAX_CHARACTERS} characters: use fewer values")
        return result
    if isinstance(value, Filter):
        return value
    raise FilterError(f"a filter is a text or a mapping, {_EXAMPLE}, not {type(value).__name__}")


def parsed(text: str) -> Filter:
    """Parse the text of a filter, which may be several filters joined by pyrag.

    Raises:
        FilterError: The text cannot be read; the message names the place.
    """
    if len(text) > MAX_JOINED * MAX_CHARACTERS:
        raise FilterError(f"the filters have {len(text)} characters: use at most {MAX_JOINED * MAX_CHARACTERS}")
    if not text.strip():
        raise FilterError(f"the filter is empty: write a comparison, {_EXAMPLE}")
    parser = _Parser(text)
    result = parser.any_of(0)
    parser.end()
    return result


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._comparisons = 0
        self._token = self._next()

    def any_of(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            self._fail(f"brackets and not are nested more than {MAX_DEPTH} deep")
        parts = [self._all_of(depth)]
        while self._took("word", "or"):
            parts.append(self._all_of(depth))
        return any_of(*parts)

    def end(self) -> None:
        if self._token.kind != "end":
            dates = (date[0] for date in _DATE.finditer(self._text) if date.start() < self._token.start < date.end())
            cure = f'; put a date in quotes: "{date}"' if (date := next(dates, "")) else ""
            self._fail(f"expected and, or, or the end{cure}")

    def _all_of(self, depth: int) -> Filter:
        parts = [self._single(depth)]
        while self._took("word", "and"):
            parts.append(self._single(depth))
        return cast(Filter, all_of(*parts))

    def _single(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            self._fail(f"brackets and not are nested more than {MAX_DEPTH} deep")
        if self._took("word", "not"):
            return self._single(depth + 1).negated()
        if self._took("mark", "("):
            inner = self.any_of(depth + 1)
            self._need(")")
            return inner
        self._comparisons += 1
        if self._comparisons > MAX_JOINED * MAX_COMPARISONS:
            self._fail(f"more than {MAX_JOINED * MAX_COMPARISONS} comparisons")
        if self._took("word", "exists"):
            return Existence(self._field())
        return self._comparison(self._field())

    def _comparison(self, field: str) -> Filter:
        negated = self._took("word", "not")
        if self._took("word", "in"):
            return Membership(field, self._values(), not negated)
        if self._took("word", "contains"):
            start = self._token
            value = self._value()
            if value is None:
                self._fail("no list contains null", start)
            return Containment(field, value, not negated)
        mark = self._token
        if negated or mark.kind != "mark" or mark.text.replace("==", "=") not in _OPERATORS:
            self._fail("expected in or contains" if negated else f"expected {', '.join(_OPERATORS)}, in or contains")
        self._token = self._next()
        start = self._token
        value = self._value()
        fault = _fault_of(operator := cast(Operator, mark.text.replace("==", "=")), value)
        if fault:
            self._fail(fault, start)
        return _compared(field, operator, value)

    def _values(self) -> tuple[Scalar, ...]:
        opening = self._token
        if opening.text not in ("(", "[") or opening.kind != "mark":
            self._fail('expected values in brackets, such as ("ops", "sales")')
        self._token = self._next()
        values = [self._value()]
        while self._took("mark", ","):
            values.append(self._value())
        self._need(")" if opening.text == "(" else "]")
        if fault := _fault_of_values(values):
            self._fail(fault, opening)
        return cast("tuple[Scalar, ...]", tuple(values))

    def _value(self) -> Scalar | None:
        token = self._token
        if token.kind == "text":
            value: Scalar | None = self._unquoted(token)
        elif token.kind == "number":
            value = _number(token.text)
            if value is None:
                self._fail("a number that is too large")
        elif token.kind == "word" and token.text.lower() in _WORDS:
            value = _WORDS[token.text.lower()]
        else:
            cure = f'; put a text in quotes: "{token.text}"' if token.kind == "word" else ', such as 2020 or "ops"'
            self._fail(f"expected a value{cure}")
        self._token = self._next()
        return value

    def _unquoted(self, token: _Token) -> str:
        inner = token.text[1:-1]
        if token.text[0] == "'":
            inner = re.sub(r"\\(.)|(\")", lambda match: _requoted(match[0]), inner, flags=re.DOTALL)
        try:
            value = str(json.loads(f'"{inner}"', strict=False))
            value.encode()
        except ValueError:
            self._fail("a text with a wrong \\ in it: write \\\\ for \\")
        return value

    def _field(self) -> str:
        token = self._token
        if token.kind == "quoted":
            self._token = self._next()
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word" or token.text.lower() in KEYWORDS:
            self._fail(
                "expected the name of a field" + (", in backquotes" if token.kind == "word" else ", such as year")
            )
        self._token = self._next()
        return token.text

    def _took(self, kind: str, text: str) -> bool:
        """Take the next token if it has this kind and text; return whether it was taken."""
        if self._token.kind != kind or self._token.text.lower() != text:
            return False
        self._token = self._next()
        return True

    def _need(self, mark: str) -> None:
        if not self._took("mark", mark):
            self._fail(f"expected {mark}")

    def _next(self) -> _Token:
        start = cast("re.Match[str]", _SPACE.match(self._text, self._at)).end()
        if start == len(self._text):
            return _Token("end", "", start)
        match = _TOKEN.match(self._text, start)
        if match is None:
            what = "a text that does not end" if self._text[start] in "\"'`" else "a character that means nothing"
            self._fail(what, _Token("", self._text[start:], start))
        self._at = match.end()
        kind = cast(str, match.lastgroup)
        return _Token(kind, match[kind], match.start(kind))

    def _fail(self, why: str, token: _Token | None = None) -> NoReturn:
        token = token or self._token
        place = "its end" if token.kind == "end" else f"character {token.start + 1}, {_short(token.text)}"
        raise FilterError(f"the filter cannot be read at {place}: {why}")


class _Mapping:
    """Reader of filters from mappings, with the same limits as for texts."""

    def __init__(self) -> None:
        self._comparisons = 0

    def filter(self, mapping: object, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise FilterError(f"the filter is nested more than {MAX_DEPTH} deep")
        if not isinstance(mapping, Mapping) or not mapping or not all(isinstance(key, str) for key in mapping):
            raise FilterError(f"a part of the filter is {_short(mapping)}: write a mapping such as {{'team': 'ops'}}")
        return cast(Filter, all_of(*(self._entry(key, value, depth) for key, value in mapping.items())))

    def _entry(self, key: str, value: object, depth: int) -> Filter:
        if key == "not":
            return self.filter(value, depth + 1).negated()
        if key in ("and", "or"):
            if not isinstance(value, Sequence) or isinstance(value, str) or not value:
                raise FilterError(f"{key!r} of the filter needs a list of mappings, not {_short(value)}")
            parts = [self.filter(part, depth + 1) for part in value]
            return cast(Filter, all_of(*parts)) if key == "and" else any_of(*parts)
        self._check_field(key)
        if isinstance(value, Mapping):
            if not value:
                raise FilterError(f"the filter compares {key!r} with nothing: write {{'=': value}}")
            return cast(Filter, all_of(*(self._operation(key, name, operand) for name, operand in value.items())))
        return self._operation(key, "in" if isinstance(value, list | tuple) else "=", value)

    def _check_field(self, key: str) -> None:
        try:
            key.encode()
        except UnicodeEncodeError:
            raise FilterError("a field of the filter holds half of a character") from None
        if not key:
            raise FilterError("a field of the filter has no name")

    def _operation(self, field: str, name: object, value: object) -> Filter:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise FilterError(f"the filter has more than {MAX_COMPARISONS} comparisons: use fewer")
        if name in ("in", "not in"):
            if not isinstance(value, list | tuple):
                raise FilterError(f"the filter's {name!r} of {field!r} needs a list of values, not {_short(value)}")
            values = [_scalar(field, item) for item in value]
            if fault := _fault_of_values(values):
                raise FilterError(f"the filter's {name!r} of {field!r}: {fault}")
            return Membership(field, cast("tuple[Scalar, ...]", tuple(values)), name == "in")
        if name == "exists":
            if not isinstance(value, bool):
                raise FilterError(f"the filter's 'exists' of {field!r} is true or false, not {_short(value)}")
            return Existence(field, value)
        scalar = _scalar(field, value)
        if name == "contains" and scalar is not None:
            return Containment(field, scalar)
        if name not in _OPERATORS:
            known = ", ".join(map(repr, (*_OPERATORS, "in", "not in", "contains", "exists")))
            raise FilterError(f"the filter has an unknown operator {name!r} for {field!r}: use {known}")
        operator = cast(Operator, name)
        if fault := _fault_of(operator, scalar):
            raise FilterError(f"the filter compares {field!r} with {_short(value)}: {fault}")
        return _compared(field, operator, scalar)


def _compared(field: str, operator: Operator, value: Scalar | None) -> Filter:
    return Existence(field, operator == "!=") if value is None else Comparison(field, operator, value)


def _fault_of(operator: Operator, value: Scalar | None) -> str:
    """Return the fault of a comparison; empty if it has none."""
    unordered = value is None or isinstance(value, bool)
    return "only = and != compare with true, false and null" if unordered and operator not in ("=", "!=") else ""


def _fault_of_values(values: Sequence[Scalar | None]) -> str:
    if not values:
        return "it has no values"
    if len(values) > MAX_VALUES:
        return f"it has more than {MAX_VALUES} values"
    kinds = {kind_of(value) for value in values}
    alike = len(kinds) == 1 and "nothing" not in kinds
    return "" if alike else "its values must be all texts, all numbers or all truths"


def _scalar(field: str, value: object) -> Scalar | None:
    if isinstance(value, float) and not math.isfinite(value):
        raise FilterError(f"the filter compares {field!r} with {value}, which is not a number")
    if isinstance(value, int) and abs(value) >= _MAX_INTEGER:
        raise FilterError(f"the filter compares {field!r} with a number that is too large")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise FilterError(f"the filter compares {field!r} with half of a character") from None
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise FilterError(f"the filter compares {field!r} with {_short(value)}: use a text, a number, true, false or null")


def _number(text: str) -> Scalar | None:
    try:
        value = float(text) if any(mark in text for mark in ".eE") else int(text)
        return value if math.isfinite(value) and (isinstance(value, float) or abs(value) < _MAX_INTEGER) else None
    except (ValueError, OverflowError):  # of thousands of digits
        return None


def _requoted(piece: str) -> str:
    r"""Convert a quote or an escaped character of a text in single quotes to JSON's form in double quotes."""
    return "'" if piece == "\\'" else '\\"' if piece == '"' else piece


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:39] + "…"

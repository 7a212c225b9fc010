"""Answers that replace the real ones while a program is only estimated."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyrag.agents.typed.returns import Returns
from pyrag.llm.json_schema import forms_of, types_of

_TRUTH = re.compile(r"^(?:is|are|was|were|did|does|do|has|have|had|can|could|will|would)\b", re.IGNORECASE)
_DATE = re.compile(r"\b(?:when|date|born on|died on)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\b(?:how (?:many|much|old|long|tall|far|large|big)|number|year|population|age|height|amount)\b", re.IGNORECASE
)
_FIRST = ("Ada", "Bela", "Cora", "Dara", "Edda", "Faro", "Gita", "Hugo", "Ines", "Joss")
MARK = re.compile(rf"\b(?:{'|'.join(_FIRST)}) Xn\d+\b|\b\d+ May 19\d\d\b")
"""Names and dates of placeholders, which `shape_of` recognises."""


class Placeholders:
    """Placeholders of one program. All are different."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count(1)

    def text(self, query: str) -> str:
        """Return a short answer of the kind that a query asks for."""
        number = next(self._numbers)
        if _TRUTH.match(query.strip()):
            return "yes"
        if _DATE.search(query):
            return f"{1 + number % 28} May {1900 + number % 100}"
        if _NUMBER.search(query):
            return str(1900 + number % 100)
        return f"{_FIRST[number % len(_FIRST)]} Xn{number}"

    def value(self, returns: Returns, query: str) -> Any:
        """Return a value of a type.

        Args:
            returns: The type.
            query: Query that requests the value.
        """
        if returns.name == "date":
            return f"19{next(self._numbers) % 90 + 10}-05-01"
        return self._of_schema(returns.schema, query)

    def _of_schema(self, schema: Mapping[str, Any], query: str) -> Any:
        if "const" in schema or schema.get("enum"):
            return schema["const"] if "const" in schema else schema["enum"][0]
        if forms := forms_of(schema):
            return self._of_schema(forms[0], query)
        kind = next((name for name in types_of(schema) if name != "null"), "string")
        if kind == "object":
            return {name: self._of_schema(part, query) for name, part in schema.get("properties", {}).items()}
        if kind == "array":
            return [self._of_schema(schema.get("items", {}), query) for _ in range(max(2, schema.get("minItems", 2)))]
        if kind in ("number", "integer"):
            return max(1900 + next(self._numbers) % 100, schema.get("minimum", 0))
        return True if kind == "boolean" else self.text("")


def shape_of(query: str) -> str:
    """Return a query with all placeholders made equal. Queries with the same shape may turn out to be equal."""
    return MARK.sub("…", query)

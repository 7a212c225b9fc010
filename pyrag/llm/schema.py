"""Servers' support for JSON schemas and patterns, tested once and remembered.

Some servers enforce the requested form, some refuse it with a 400, some accept and ignore it. `Support` is one
client's experience with one endpoint. A reply that ignores the form is used without asking again, since its agent's
parser accepts other forms.

`fits` checks the part of JSON Schema that our agents use; other keywords count as satisfied.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyrag.errors import PermanentServiceError
from pyrag.llm import json_schema
from pyrag.llm.clients.refusals import read_refusal
from pyrag.llm.protocol import Reply, Sampling

PATTERNS = "patterns"
_REFUSES = (400, 404, 415, 422, 500, 501)
_SPECIAL = ".^$*+?{}[]\\|()"


@dataclass(frozen=True, slots=True)
class Constraint:
    """Required form of a reply: `field` of the request holds `value`, and `is_satisfied_by` checks a text.

    If `named` is set, servers name this field when they refuse it, so a refusal that does not name it has another
    reason.
    """

    what: str
    field: str
    value: Mapping[str, Any]
    is_satisfied_by: Callable[[str], bool]
    named: bool

    def is_reason(self, error: PermanentServiceError, *, proven: bool) -> bool:
        """Return True if a refusal may be due to this constraint.

        Args:
            error: The refusal.
            proven: Whether the server satisfied such a constraint before. If so, the refusal must name the field.
        """
        if error.status not in _REFUSES:
            return False
        return not (self.named or proven) or self._is_named(error)

    def _is_named(self, error: PermanentServiceError) -> bool:
        refusal = read_refusal(error)
        named = refusal is not None and bool(refusal.fields({self.field}) or (self.named and refusal.unnamed))
        return named or self.field in error.detail


@dataclass(slots=True)
class Support:
    """Support of a server for a kind of constraint.

    Attributes:
        wanted: False after the server refused or ignored a constraint.
        seen: True after the server satisfied a constraint.
    """

    wanted: bool = True
    seen: bool = False

    def judge(self, reply: Reply, constraint: Constraint, server: str) -> str:
        """Return a warning for the first reply that breaks its constraint, otherwise an empty text.

        Args:
            reply: Reply to a constrained request.
            constraint: Constraint of the request.
            server: Name of the server in the warning.
        """
        if reply.finish_reason == "length" or not self.wanted:
            return ""  # a reply that was cut off proves nothing
        if constraint.is_satisfied_by(reply.text):
            self.seen = True
            return ""
        return self._warning(constraint, server, "ignores")

    def refused(self, constraint: Constraint, server: str) -> str:
        """Record a refusal, and return a warning for the first one.

        Args:
            constraint: Constraint of the request.
            server: Name of the server in the warning.
        """
        return self._warning(constraint, server, "refuses") if self.wanted else ""

    def _warning(self, constraint: Constraint, server: str, what: str) -> str:
        self.wanted = False
        return f"{server} {what} {constraint.what}: its replies are read as plain text instead"


@lru_cache(maxsize=64)  # agents ask with few different parameters
def constraint_of(sampling: Sampling) -> Constraint | None:
    """Return the constraint of a reply, or None."""
    schema, pattern = sampling.schema, sampling.pattern
    if schema is not None:
        value = response_format(schema)
        return Constraint("JSON schemas", "response_format", value, lambda text: fits(text, schema), named=False)
    if pattern is not None:
        # The form of vLLM since 0.12; other servers ignore the field or name it in their refusal.
        return Constraint(
            PATTERNS,
            "structured_outputs",
            {"regex": pattern},
            lambda text: matches(text, pattern),
            named=True,
        )
    return None


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in the form that OpenAI, vLLM, SGLang, llama.cpp and Ollama accept."""
    name = str(schema.get("title", "reply"))
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": dict(schema)}}


def fits(text: str, schema: Mapping[str, Any]) -> bool:
    """Return True if a reply consists of JSON that satisfies a schema.

    Args:
        text: The reply.
        schema: JSON schema; see `pyrag.llm.json_schema`.
    """
    try:
        return json_schema.fits(json.loads(text), schema)
    except (ValueError, RecursionError):
        return False


def matches(text: str, pattern: str) -> bool:
    r"""Return True if a text contains a pattern's literal parts in order. Takes linear time.

    Args:
        text: The reply.
        pattern: Literal parts with `[\s\S]*` or `[\s\S]+` between them; any other pattern counts as satisfied.
    """
    position = 0
    for mark, gap in _marks_of(pattern):
        position = text.find(mark, position + gap) + len(mark)
        if position < len(mark):
            return False
    return True


@lru_cache(maxsize=64)
def _marks_of(pattern: str) -> tuple[tuple[str, bool], ...]:
    """Return the literal parts of a pattern, in order; empty for a pattern of another form.

    Each part comes with True if at least one character must precede it.
    """
    places = re.split(r"\[\\s\\S\]([*+])", pattern)
    marks, gaps = places[::2], [False, *(gap == "+" for gap in places[1::2])]
    known = not any(set(mark) & set(_SPECIAL) for mark in marks)
    return tuple(zip(marks, gaps, strict=True)) if known else ()

"""Final values of the type that the caller requested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyrag.agents.typed.contract import Contract
from pyrag.agents.typed.shaping import PLACE
from pyrag.episode.program_values import is_no_answer, is_passage, plain
from pyrag.trace.model import UNKNOWN, Answer
from pyrag_sandbox import Record, Text

CAUSE = "returns"
"""Cause of the failure of a program whose value does not fit."""

_MAX_SHOWN = 300  # characters of a value in a message


class MisfitError(Exception):
    """Error for a value that does not have the requested type, worded for the program's author."""


def typed_answer(answer: Answer, value: Any, contract: Contract) -> tuple[Answer, Any]:
    """Return an answer and its value, as JSON, in the type of a contract. An unknown answer has the value None.

    Args:
        answer: Answer as text; it is replaced by the value's text, or its JSON.
        value: Value of the program, or the answer's text.
        contract: The type.

    Raises:
        MisfitError: The value does not fit. The message names the fault and the expected value.
    """
    known = _with_null(value)
    if not answer.known or not any(leaf is not None for leaf in _leaves(known)):
        return Answer(UNKNOWN, known=False), None
    try:
        fitting = contract.fitted(known)
    except ValueError as error:
        shown = json.dumps(known, ensure_ascii=False)[:_MAX_SHOWN]
        raise MisfitError(f"{error}. The value was {shown}. Set {PLACE} to {contract.returns.wanted}") from None
    text = answer.text if isinstance(fitting, bool) else contract.returns.text(fitting)
    return replace(answer, text=text), fitting


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the values in lists and dicts; an empty container is a value."""
    if not value or not isinstance(value, dict | list):
        yield value
        return
    for item in value.values() if isinstance(value, dict) else value:
        yield from _leaves(item)


def _with_null(value: Any) -> Any:
    """Return a program's value as JSON, with None in place of unknown answers."""
    match value:
        case Text():
            return None if value.absent is not None or is_no_answer(value.text) else value.text
        case str():
            return None if is_no_answer(value) else value.strip()
        case Record() if is_passage(value):
            return str(value.fields["text"])
        case Record():
            fields = value.fields
            return _with_null(fields["value"] if "value" in fields else dict(fields))
        case list() | tuple():
            return [_with_null(item) for item in value]
        case dict():
            return {str(key): _with_null(item) for key, item in value.items()}
    return plain(value)

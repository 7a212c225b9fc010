"""Reading the fields of a JSON object that a model replied; what is not in form raises `BadOutputError`."""

from __future__ import annotations

from typing import Any

from pyrag.agents.parsing import parse_json
from pyrag.errors import BadOutputError

_YES = frozenset(("yes", "true", "sufficient", "accepted"))
_NO = frozenset(("no", "false", "insufficient", "rejected"))


def object_with(text: str, key: str) -> dict[str, Any]:
    """The likeliest object of a reply that has this key."""
    for value in parse_json(text, "{"):
        if isinstance(value, dict) and key in value:
            return value
    raise BadOutputError(f'it holds no JSON object with the key "{key}"')


def decision_of(said: Any) -> bool:
    """Whether a decision is YES."""
    word = str(said).strip(" .!").casefold()
    if word in _YES or word in _NO:
        return word in _YES
    raise BadOutputError(f'"decision" must be YES or NO, not {repr(said)[:80]}')


def line_of(value: dict[str, Any], key: str) -> str:
    """A text on one line; empty where it is missing."""
    text = value.get(key)
    if text is None:
        return ""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return str(text)
    if not isinstance(text, str):
        raise BadOutputError(f'"{key}" must be a string, not {repr(text)[:80]}')
    return " ".join(text.split())


def positions_of(said: Any, documents: int) -> tuple[int, ...]:
    """Positions of the documents that the reply lists; those that do not exist are left out."""
    numbers = said if isinstance(said, list) else []
    exact = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool) and 1 <= one <= documents]
    return tuple(dict.fromkeys(one - 1 for one in exact))

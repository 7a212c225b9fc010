"""Options of model requests: temperature, reply tokens, seed and extra fields, for all agents or for one role.

    pyrag.toml      [request]                          environment   PYRAG_REQUEST='temperature=0.2; plan.seed=7'
                    temperature = 0.2                  command line  --request temperature=0.2 --request plan.seed=7
                    extra_body.reasoning_effort = "low"
                    [request.plan]
                    temperature = 0.7

The roles are `plan`, `decompose`, `answer` and `rewrite`. `[request]` applies to all roles; a role's own options take
precedence, and the extra fields of both are sent. Options are plain mappings in the form of the TOML table, so that
settings, traces and run configs can hold them.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyrag.errors import ConfigError

ROLES = ("decompose", "plan", "answer", "rewrite")
OPTIONS = ("temperature", "max_tokens", "seed", "extra_body")
EXTRA = "extra_body"
_FORM = "write it like temperature=0.2, plan.max_tokens=2048 or extra_body.reasoning_effort=low"
_OWN = {
    "model": "--llm",
    "temperature": "the option temperature",
    "max_tokens": "the option max_tokens",
    "max_completion_tokens": "the option max_tokens",
    "seed": "the option seed",
    "stream": "--stream or --no-stream",
    "response_format": "the setting structured",
    "structured_outputs": "the setting structured",
}
_FIXED = ("messages", "stream_options", "n")

Requests = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options of one role; None keeps the agents' default."""

    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


def read_requests(value: Any) -> dict[str, Any]:
    """Return validated options from a table, a text, or a list of `KEY=VALUE` texts.

    Args:
        value: Mapping in the form of the TOML table; text with items between semicolons, or a JSON object; or a list
            of items, each `[ROLE.]OPTION=VALUE`.

    Raises:
        ConfigError: A key is unknown or a value has the wrong type.
    """
    if isinstance(value, str):
        value = _from_text(value)
    if isinstance(value, list | tuple):
        table: dict[str, Any] = {}
        for item in value:
            table = merged(table, _from_item(item))
        value = table
    if not isinstance(value, Mapping):
        raise ConfigError(f"request must be a table of options, not {value!r:.80}: {_FORM}")
    return _checked_table(value)


def merged(lower: Requests, upper: Requests) -> dict[str, Any]:
    """Merge the options of two layers, including their tables.

    Args:
        lower: Options with lower precedence.
        upper: Options with higher precedence.
    """
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def options_of(requests: Requests, role: str) -> RequestOptions:
    """Return the options of a role.

    Args:
        requests: Validated options (`read_requests`).
        role: One of `ROLES`; its own options take precedence over the options for all roles.
    """
    common = {key: value for key, value in requests.items() if key in OPTIONS}
    return RequestOptions(**merged(common, requests.get(role, {})))


def _from_text(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigError(f"request is not a JSON object ({error}): {_FORM}") from error
    return [item for item in text.split(";") if item.strip()]


def _from_item(item: Any) -> dict[str, Any]:
    name, equals, text = str(item).partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"the request option {str(item)[:80]!r} has no key and value: {_FORM}")
    try:
        value = json.loads(text)
    except ValueError:
        value = text.strip()
    for key in reversed(keys):
        value = {key: value}
    table: dict[str, Any] = value
    return table


def _checked_table(table: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in table.items():
        if key in ROLES:
            if not isinstance(value, Mapping):
                raise ConfigError(f"request.{key} must be a table of options, not {value!r:.80}: {_FORM}")
            result[key] = {name: _checked_option(f"{key}.{name}", name, option) for name, option in value.items()}
        else:
            result[key] = _checked_option(str(key), key, value, ROLES)
    return result


def _checked_option(shown: str, name: str, value: Any, roles: Iterable[str] = ()) -> Any:
    if name == "temperature":
        return _number(shown, value)
    if name == "max_tokens":
        return _whole(shown, value, minimum=1)
    if name == "seed":
        return _whole(shown, value, minimum=0)
    if name == EXTRA:
        return _extra(shown, value)
    known = (*OPTIONS, *roles)
    close = difflib.get_close_matches(str(name), known, n=1)
    cure = f"did you mean {close[0]!r}" if close else f"choose from {', '.join(known)}"
    raise ConfigError(f"unknown request option {shown!r}: {cure}, or write {EXTRA}.{name} for a field of your server's")


def _number(shown: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ConfigError(f"request.{shown} must be a number from 0 on, not {value!r:.80}")
    return float(value)


def _whole(shown: str, value: Any, minimum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ConfigError(f"request.{shown} must be a whole number from {minimum} on, not {value!r:.80}")
    return value


def _extra(shown: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"request.{shown} must be a table of fields, not {value!r:.80}: {_FORM}")
    for key in value:
        if key in _OWN:
            raise ConfigError(f"request.{shown}.{key} is pyrag's own field: use {_OWN[key]} instead")
        if key in _FIXED:
            raise ConfigError(f"request.{shown}.{key} cannot be set: pyrag writes it itself")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"request.{shown} cannot be sent as JSON ({error}): use texts, numbers and tables") from error
    return copy

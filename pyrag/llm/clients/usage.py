"""Token counts that servers report, validated so that limits and costs can rely on them.

A count that is negative, fractional or impossibly large is treated as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_TOKENS = 100_000_000  # maximum of one request, far above any model's window
_PROMPT = ("prompt_tokens", "input_tokens", "prompt_eval_count")
_COMPLETION = ("completion_tokens", "output_tokens", "eval_count")
_UNCOUNTED = "does not count tokens"


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Numbers of tokens; 0 means unknown."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


def read_usage(usage: Any) -> tuple[TokenCounts, str]:
    """Return the counts in a `usage` object, and a note on any fault; the note is empty if both are valid."""
    if type(usage) is dict and (usual := _usual(usage.get(_PROMPT[0]), usage.get(_COMPLETION[0]))):
        return usual, ""
    if not isinstance(usage, Mapping):
        return TokenCounts(), _UNCOUNTED if usage is None else f"counts tokens in no known form ({_shown(usage)})"
    reported = [_reported(usage, _PROMPT), _reported(usage, _COMPLETION)]
    counts = [None if value is None else _count(value) for value in reported]
    wrong = [value for value, count in zip(reported, counts, strict=True) if count is None and value is not None]
    note = f"counts {_shown(wrong[0])} tokens" if wrong else "" if counts[0] and counts[1] is not None else _UNCOUNTED
    return TokenCounts(*(count or 0 for count in counts)), note


def _usual(prompt: object, completion: object) -> TokenCounts | None:
    """Parse two counts in the usual form; return None for any other form."""
    if type(prompt) is int and type(completion) is int and 0 < prompt <= MAX_TOKENS and 0 <= completion <= MAX_TOKENS:
        return TokenCounts(prompt, completion)
    return None


def _reported(usage: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((usage[name] for name in names if usage.get(name) is not None), None)


def _count(value: Any) -> int | None:
    """Parse a count, which may be text or have a decimal point; return None if it is not a count."""
    if isinstance(value, str):
        value = _number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if 0 <= value <= MAX_TOKENS and value == int(value) else None


def _number(text: str) -> float | None:
    try:
        return float(text[:32])
    except ValueError:
        return None


def _shown(value: Any) -> str:
    return repr(value)[:40]

"""Token counts as servers report them: taken where they are counts, else unknown, and said so.

No count is negative, fractional or larger than any reply can be, so that limits and costs that rest on them hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_TOKENS = 100_000_000  # of one request; nobody serves a window near it
_PROMPT = ("prompt_tokens", "input_tokens", "prompt_eval_count")
_COMPLETION = ("completion_tokens", "output_tokens", "eval_count")
_UNCOUNTED = "does not count tokens"


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """0 stands for unknown."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


def read_usage(usage: Any) -> tuple[TokenCounts, str]:
    """The counts of a `usage` object, and what is wrong with it; empty where it holds both."""
    if not isinstance(usage, Mapping):
        return TokenCounts(), _UNCOUNTED if usage is None else f"counts tokens in no known form ({_shown(usage)})"
    given = [_given(usage, _PROMPT), _given(usage, _COMPLETION)]
    counts = [None if one is None else _count(one) for one in given]
    wrong = [one for one, count in zip(given, counts, strict=True) if count is None and one is not None]
    note = f"counts {_shown(wrong[0])} tokens" if wrong else "" if counts[0] and counts[1] is not None else _UNCOUNTED
    return TokenCounts(*(one or 0 for one in counts)), note


def _given(usage: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((usage[name] for name in names if usage.get(name) is not None), None)


def _count(value: Any) -> int | None:
    """A count, also where it is written as text or as a number with a point; None where it is none."""
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

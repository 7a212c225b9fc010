"""Limits that a request may lower: what a question or program may spend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyrag.methods.own_program import MAX_CALLS
from pyrag.methods.own_program import NAME as OWN_PROGRAM
from pyrag.runtime.run import calls_allowed
from pyrag.settings import Settings

_LOWERED = ("deadline", "max_calls", "max_tokens", "max_cost", "max_tool_calls", "topk")


def limited(settings: Settings, limits: dict[str, Any]) -> Settings:
    """Return settings with a request's limits, as far as they are lower than the server's.

    Args:
        settings: The server's settings, with the request's method.
        limits: Values by the name of a setting; None for the server's own.

    Raises:
        ConfigError: A limit makes no sense.
    """
    requested = {name: value for name, value in limits.items() if value is not None}
    assert requested.keys() <= set(_LOWERED)
    if settings.method == OWN_PROGRAM:
        settings = replace(settings, max_calls=_bound(settings, "max_calls"))
    return replace(settings, **{name: _lower(_bound(settings, name), value) for name, value in requested.items()})


def _lower(bound: Any, value: Any) -> Any:
    return value if bound is None else min(bound, value)


def _bound(settings: Settings, name: str) -> Any:
    if name == "max_calls":
        own = settings.method == OWN_PROGRAM and settings.max_calls is None
        return MAX_CALLS if own else calls_allowed(settings)
    return max(settings.topk, settings.boost_topk) if name == "topk" else getattr(settings, name)

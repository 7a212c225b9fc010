"""Limits and tools that a caller gives a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from pyrag.errors import UsageError, nearest

if TYPE_CHECKING:
    from pyrag.runtime.engines import Engines


class Budget(TypedDict, total=False):
    """Limits on what one program may spend. A missing limit is the settings' limit.

    Attributes:
        calls: Model calls; the default is 100 if the settings have no `max_calls`.
        tokens: Prompt and completion tokens together.
        seconds: Wall time.
        cost: Money, in the currency of the settings' prices.
        tool_calls: Calls of tools.
    """

    calls: int
    tokens: int
    seconds: float
    cost: float
    tool_calls: int


_SETTINGS: Mapping[str, str] = {
    "calls": "max_calls",
    "tokens": "max_tokens",
    "seconds": "deadline",
    "cost": "max_cost",
    "tool_calls": "max_tool_calls",
}


def limits_of(budget: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the limits of a budget by the names of settings.

    Args:
        budget: Limits as in `Budget`; None for the settings' own.

    Raises:
        UsageError: The budget has an unknown limit, or a limit is not a number.
    """
    for name, value in (budget or {}).items():
        if name not in _SETTINGS:
            raise UsageError(f"a budget has no limit {name!r}{nearest(name, _SETTINGS)}")
        whole = name not in ("seconds", "cost")
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise UsageError(f"the budget's {name} must be a {'whole ' if whole else ''}number, not {value!r}")
    return {_SETTINGS[name]: value for name, value in (budget or {}).items()}


def with_tools(engines: Engines, tools: Sequence[Callable[..., Any]]) -> Engines:
    """Return the engines with additional tools for programs.

    Args:
        engines: The engines.
        tools: Typed functions.

    Raises:
        ConfigError: A function cannot be a tool.
    """
    if not tools:
        return engines
    from pyrag.tools.tool import as_tools

    return replace(engines, tools=as_tools([*engines.tools, *as_tools(tools)]))

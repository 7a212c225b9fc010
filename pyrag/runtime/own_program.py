"""Programs of a caller from source to trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from pyrag.agents.typed.contract import Contract, contract_of
from pyrag.errors import UsageError, nearest
from pyrag.methods.own_program import MAX_CALLS, NAME, OwnProgram
from pyrag.runtime.contracts import with_object
from pyrag.runtime.explain.gate import CostGate, gate_of
from pyrag.runtime.journal import finish, resumable
from pyrag.runtime.run import answer_question, with_filter
from pyrag.settings import Settings
from pyrag.trace.events import Observer, check_observer, ignore

if TYPE_CHECKING:
    from pathlib import Path

    from pyrag.episode.ledger import Journal, Recording
    from pyrag.runtime.engines import Engines
    from pyrag.trace.model import Trace


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


def settings_of(settings: Settings, budget: Mapping[str, Any] | None) -> Settings:
    """Return the settings under which a program runs.

    Args:
        settings: The settings.
        budget: Limits as in `Budget`; None for the settings' own.

    Raises:
        UsageError: The budget has an unknown limit, or a limit is not a number.
        ConfigError: A limit makes no sense.
    """
    limits = {} if budget is None else dict(budget)
    for name, value in limits.items():
        if name not in _SETTINGS:
            raise UsageError(f"a budget has no limit {name!r}{nearest(name, _SETTINGS)}")
        whole = name not in ("seconds", "cost")
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise UsageError(f"the budget's {name} must be a {'whole ' if whole else ''}number, not {value!r}")
    values = {_SETTINGS[name]: value for name, value in limits.items()}
    values.setdefault("max_calls", MAX_CALLS if settings.max_calls is None else settings.max_calls)
    return replace(settings, method=NAME, **values)


async def run_own_program(
    program: OwnProgram,
    engines: Engines,
    settings: Settings,
    *,
    observer: Observer = ignore,
    recording: Recording | None = None,
    keep: bool = False,
    journal: Journal | None = None,
    returns: Contract | None = None,
    gate: CostGate | None = None,
) -> Trace:
    """Run a caller's program. Every failure is in `Trace.error`.

    Args:
        program: The program with its inputs.
        engines: Agents, retriever and sandbox; the planner is not asked.
        settings: Result of `settings_of`.
        observer: Called with each event.
        recording: Exchanges that answer the program's requests in place of the engines.
        keep: Whether to keep requests and replies in the trace, so that it can be replayed.
        journal: Exchanges that an earlier process had for this program, to which new ones are added.
        returns: Type that the value must have; None for any value.
        gate: Refuses a program that costs too much; None lets it run.
    """
    return await answer_question(
        program.title, engines, settings, observer=observer, recording=recording, keep=keep, journal=journal,
        method=program.method, returns=returns, gate=gate,
    )  # fmt: skip


async def run_source(
    source: str,
    inputs: Mapping[str, Any] | None,
    engines: Engines,
    settings: Settings,
    *,
    where: str | Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    tools: Sequence[Callable[..., Any]] = (),
    observer: Observer = ignore,
    recording: Recording | None = None,
    keep: bool = False,
    resume: str | Path | None = None,
    returns: Any = None,
) -> Trace:
    """Check a program and its limits, and run it.

    Args:
        source: See `pyrag.PyRAG.run`, also for `inputs`, `where`, `budget`, `tools`, `observer`, `keep`, `resume` and
            `returns`.
        engines: Agents, retriever and sandbox.
        settings: Settings, whose limits hold where the budget has none.
        recording: Exchanges that answer the program's requests in place of the engines.

    Raises:
        UsageError: The program is empty or too long, an input is not a JSON value, or the budget has an unknown limit.
        FilterError: The filter cannot be parsed.
        ConfigError: A limit makes no sense, or a function cannot be a tool.
    """
    check_observer(observer)
    program, contract = OwnProgram(source, inputs or {}), contract_of(returns)
    limited = with_filter(settings_of(settings, budget), where)
    # A caller's budget is spent as far as it goes; the settings' limits refuse a program that exceeds them for sure,
    # unless it is resumed, since nobody knows what it has paid before.
    own_limits = {"calls", "cost"}.intersection(budget or ())
    gate = None if own_limits or recording is not None or resume else gate_of(engines, settings, plans=False)
    request = {"source": program.source, "inputs": program.inputs}
    with resumable(resume, request, limited, engines.retriever) as journal:
        trace = await run_own_program(
            program, with_tools(engines, tools), limited, observer=observer, recording=recording, keep=keep,
            journal=journal, returns=contract, gate=gate,
        )  # fmt: skip
        finish(journal, trace)
    return with_object(trace, contract)


def with_tools(engines: Engines, tools: Sequence[Callable[..., Any]]) -> Engines:
    """Return the engines with further tools for programs.

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

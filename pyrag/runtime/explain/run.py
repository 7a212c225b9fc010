"""Explanations of questions and programs, planned or written by a caller."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyrag.episode.plan_checks import RESULT
from pyrag.errors import ConfigError
from pyrag.methods.method import Method
from pyrag.methods.own_program import OwnProgram
from pyrag.methods.registry import get_method
from pyrag.runtime.explain.explanation import Explanation, Happened
from pyrag.runtime.explain.gate import CostGate
from pyrag.runtime.own_program import settings_of
from pyrag.runtime.run import answer_question, with_filter
from pyrag.settings import Settings
from pyrag.trace.events import Observer, ignore

if TYPE_CHECKING:
    from pyrag.runtime.engines import Engines
    from pyrag.trace.model import Trace


_SETS_RESULT = re.compile(rf"\s*{RESULT}\s*=[^=]")


def is_program(text: str) -> bool:
    """Return True for Python that sets `final_answer`, right or wrong, and False for a question."""
    if RESULT not in text:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "\n" in text.strip() or _SETS_RESULT.match(text) is not None  # its fault is reported
    return True


async def explain(
    text: str,
    inputs: Mapping[str, Any] | None,
    engines: Engines,
    settings: Settings,
    *,
    where: str | Mapping[str, Any] | None = None,
    analyze: bool = False,
    observer: Observer = ignore,
    traces: Sequence[Trace] = (),
) -> Explanation:
    """Return the explanation of a question, which is planned, or of a program.

    Args:
        text: The question, or the source of a program.
        inputs: Values that the program finds by name; None for a text that may be a question.
        engines: Agents, retriever and sandbox. Only the planner is asked, unless `analyze` is set.
        settings: The settings.
        where: Filter of passages, which narrows the settings' own.
        analyze: Whether to run the program too.
        observer: Called with each event.
        traces: Earlier traces, whose recoveries and repairs count.

    Raises:
        UsageError: The question or program is empty or too long, or an input is not a JSON value.
        ConfigError: The method writes no program.
    """
    own = OwnProgram(text, inputs or {}) if inputs is not None or is_program(text) else None
    return await explain_question(
        own.title if own else text, own, engines, with_filter(settings, where), analyze=analyze, observer=observer,
        traces=traces,
    )  # fmt: skip


async def explain_question(
    question: str,
    own: OwnProgram | None,
    engines: Engines,
    settings: Settings,
    *,
    analyze: bool = False,
    observer: Observer = ignore,
    traces: Sequence[Trace] = (),
) -> Explanation:
    """Return the explanation of a question or of a caller's own program.

    Args:
        question: The question, or the program's title.
        own: The program; None to have one planned.
        engines: Agents, retriever and sandbox.
        settings: The settings, with the whole filter.
        analyze: Whether to run the program too.
        observer: Called with each event.
        traces: Earlier traces, whose recoveries and repairs count.

    Raises:
        UsageError: The question is empty, too long or not a text.
        ConfigError: The method writes no program.
    """
    method = own.method if own else _planning(settings)
    if own:
        settings = settings_of(settings, None)
    for trace in traces:
        engines.history.add(trace)
    gate = CostGate(engines, settings, plans=own is None, refuses=False, stops=not analyze)
    trace = await answer_question(question, engines, settings, observer=observer, method=method, gate=gate)
    explanation = gate.explanation
    if explanation is None:
        error = trace.error
        message = error.message if error else "no program was written"
        return Explanation(question, error=message, exit_code=error.exit_code if error else 1)
    return replace(explanation, happened=_happened(explanation, trace)) if analyze else explanation


def _planning(settings: Settings) -> Method:
    """Return the settings' method. Raises `ConfigError` if it does not plan a program that can be estimated."""
    method = get_method(settings.method)
    if not (method.plans and method.calls_tools):
        raise ConfigError(f"the method {method.name} writes no program before its calls: explain with --method pyrag")
    return method


def _happened(explanation: Explanation, trace: Trace) -> Happened:
    used, planned = trace.usage, explanation.planning
    tokens = used.prompt_tokens + used.completion_tokens - planned.prompt_tokens - planned.completion_tokens
    cost = None if used.cost is None else used.cost - (planned.cost or 0.0)
    return Happened(
        calls=used.model_calls - planned.model_calls,
        retrievals=used.retrievals - planned.retrievals,
        tokens=tokens,
        seconds=used.seconds - planned.seconds - explanation.estimated_in,
        cost=cost,
        answer=trace.answer.text,
        error=trace.error.message if trace.error else "",
    )

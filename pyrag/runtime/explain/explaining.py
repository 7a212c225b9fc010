"""Explanations of questions and programs, planned or written by a caller."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyrag.episode.plan_checks import RESULT
from pyrag.errors import ConfigError
from pyrag.methods.own_program import OwnProgram
from pyrag.runtime.answering import answer
from pyrag.runtime.explain.explanation import Explanation, Happened
from pyrag.runtime.explain.gate import CostGate
from pyrag.runtime.question_request import QuestionRequest

if TYPE_CHECKING:
    from pyrag.runtime.engines import Engines
    from pyrag.trace.model import Trace


_SETS_RESULT = re.compile(rf"\s*{RESULT}\s*=[^=]")


def is_program(text: str) -> bool:
    """Return True for Python code that sets `final_answer`, correct or not, and False for a question."""
    if RESULT not in text:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "\n" in text.strip() or _SETS_RESULT.match(text) is not None  # its fault is reported
    return True


def subject_of(text: str, inputs: Mapping[str, Any] | None) -> str | OwnProgram:
    """Return a text as a program of the caller, or unchanged if it is a question.

    Args:
        text: The question, or the source of a program.
        inputs: Values that the program finds by name; None for a text that may be a question.

    Raises:
        UsageError: The program is empty or too long, or an input is not a JSON value.
    """
    return OwnProgram(text, inputs or {}) if inputs is not None or is_program(text) else text


async def explain(
    request: QuestionRequest, engines: Engines, *, analyze: bool = False, traces: Sequence[Trace] = ()
) -> Explanation:
    """Return the explanation of a question, which is planned, or of a program.

    Args:
        request: The question or program.
        engines: Agents, retriever and sandbox. Only the planner is asked, unless `analyze` is set.
        analyze: Whether to run the program too.
        traces: Earlier traces, whose recoveries and repairs count.

    Raises:
        ConfigError: The method writes no program before its calls.
    """
    method, plans = request.method, request.program is None
    if plans and not (method.plans and method.calls_tools):
        raise ConfigError(f"the method {method.name} writes no program before its calls: explain with --method pyrag")
    for trace in traces:
        engines.history.add(trace)
    gate = CostGate(engines, request.settings, plans=plans, refuses=False, stops=not analyze)
    trace = await answer(request, engines, gate=gate)
    explanation = gate.explanation
    if explanation is None:
        error = trace.error
        message = error.message if error else "no program was written"
        return Explanation(request.text, error=message, exit_code=error.exit_code if error else 1)
    return replace(explanation, happened=_happened(explanation, trace)) if analyze else explanation


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

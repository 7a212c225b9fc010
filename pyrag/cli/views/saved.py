"""View of a saved trace on a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from pyrag.cli.views.blocks import (
    answer_view,
    engine_line,
    error_view,
    open_step_view,
    program_view,
    step_view,
    sub_queries_view,
)
from pyrag.methods.registry import view_of
from pyrag.trace.event_codec import events_of
from pyrag.trace.model import Program, SearchedIndex, Trace
from pyrag.trace.reducer import StepState, state_of
from pyrag.trace.view import Line, RejectedProgram, ShownStep, ViewItem
from pyrag.trace.words import counted


def trace_view(trace: Trace) -> Group:
    """Return the view of a trace, in the order of its events."""
    parts: list[RenderableType] = [
        Text(trace.question, style="bold"),
        engine_line(trace.engine, trace.retriever),
        *_origin(trace),
    ]
    if own := view_of(trace):
        return Group(*parts, *(_drawn(item, trace) for item in own), *_warnings_and_answer(trace))
    state = state_of(events_of(trace))
    if state.sub_queries:
        parts.append(sub_queries_view(state.sub_queries))
    for number, program in enumerate(state.programs):
        parts.append(program_view(program.program))
        parts += [_step(step, trace) for step in state.steps.values() if step.round == number]
        if program.error:
            parts.append(error_view(program.error))
    if not state.programs:  # a method without programs
        parts += [_step(step, trace) for step in state.steps.values()]
    return Group(*parts, *_warnings_and_answer(trace))


def _origin(trace: Trace) -> list[Text]:
    """Return a line with time, version and index of a trace, or no line if the trace records none of them."""
    index = trace.index or SearchedIndex()
    parts = [
        f"asked {trace.started_at}" if trace.started_at else "",
        f"pyrag {trace.pyrag_version}" if trace.pyrag_version else "",
        "index " + " ".join(filter(None, (index.generation, index.fingerprint))) if index.fingerprint else "",
        counted(index.passages, "passage") if index.passages is not None else "",
    ]
    text = " · ".join(filter(None, parts))
    return [Text(text, style="dim")] if text else []


def _step(step: StepState, trace: Trace) -> Text:
    return open_step_view(step) if step.step is None else step_view(step.step, trace.passages)


def _drawn(item: ViewItem, trace: Trace) -> RenderableType:
    """Draw an item of a method's own view."""
    match item:
        case Program():
            return program_view(item)
        case ShownStep(step, indent):
            return Padding(step_view(step, trace.passages), (0, 0, 0, indent))
        case RejectedProgram(error):
            return error_view(error)
        case Line(parts, indent):
            text = Text.assemble(*parts)
            text.rstrip()
            return Padding(text, (0, 0, 0, indent)) if indent else text


def _warnings_and_answer(trace: Trace) -> list[RenderableType]:
    return [*(Text(f"! {warning}", style="yellow") for warning in trace.warnings), answer_view(trace)]

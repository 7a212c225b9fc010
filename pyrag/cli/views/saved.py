"""A saved trace on a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from pyrag.cli.views.live import (
    answer_view,
    engine_line,
    error_view,
    program_view,
    step_view,
    sub_queries_view,
)
from pyrag.cli.views.topology import topology_view
from pyrag.cli.views.trajectory import trajectory_view
from pyrag.trace.model import Trace


def trace_view(trace: Trace) -> Group:
    """Return a whole trace, in the order in which it happened."""
    rendered: list[RenderableType] = [
        Text(trace.question, style="bold"),
        engine_line(trace.engine, trace.retriever),
    ]
    if trace.goals:
        return Group(*rendered, trajectory_view(trace), *_ending(trace))
    if trace.topology:
        return Group(*rendered, topology_view(trace), *_ending(trace))
    if trace.sub_queries:
        rendered.append(sub_queries_view(trace.sub_queries))
    for number, program in enumerate(trace.programs):
        rendered.append(program_view(program))
        rendered += [step_view(step, trace.passages) for step in trace.steps if step.round == number]
        if program.error:
            rendered.append(error_view(program.error))
    if not trace.programs:  # a method without programs
        rendered += [step_view(step, trace.passages) for step in trace.steps]
    return Group(*rendered, *_ending(trace))


def _ending(trace: Trace) -> list[RenderableType]:
    return [*(Text(f"! {warning}", style="yellow") for warning in trace.warnings), answer_view(trace)]

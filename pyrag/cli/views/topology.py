"""A question's course as HERA's orchestrator laid it out: each agent with whom it waited for and what it did."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from pyrag.cli.views.live import error_view, program_view, step_view
from pyrag.cli.views.words import shorten
from pyrag.methods.hera.topology import Node
from pyrag.trace.model import Step, Trace
from pyrag.trace.trajectory import node_of


def topology_view(trace: Trace) -> Group:
    """The programs that were given up with what was said of them, then the topology that ran."""
    given_up: list[RenderableType] = []
    for number, program in enumerate(trace.programs[:-1]):
        steps = [step_view(step, trace.passages) for step in trace.steps if step.round == number]
        given_up += [program_view(program), *steps, error_view(program.error)]
    return Group(*given_up, *_head(trace), *_nodes(trace))


def _head(trace: Trace) -> Iterator[RenderableType]:
    assert trace.topology is not None
    profile = trace.topology.profile
    asks = f", asks for: {profile.asks}" if profile.asks else ""
    yield Text.assemble(("Topology", "bold cyan"), f"  {profile.type}, {profile.difficulty}{asks}")
    if trace.topology.rationale:
        yield Text(f"  {trace.topology.rationale}", style="dim")
    if trace.topology.experience:
        shown = ", ".join(map(str, trace.topology.experience))
        yield Text(f"  with experience {shown}", style="dim")


def _nodes(trace: Trace) -> Iterator[RenderableType]:
    assert trace.topology is not None
    steps: dict[str, list[Step]] = {}
    for step in trace.steps:
        if (owner := node_of(trace, step)) is not None:
            steps.setdefault(owner.id, []).append(step)
    for number, node in enumerate(trace.topology.nodes, start=1):
        after = f"  after {', '.join(node.depends_on)}" if node.depends_on else ""
        yield Text.assemble(f"  {number}. ", (node.id, "bold"), f"  {node.agent.replace('_', ' ')}", (after, "dim"))
        own = [step_view(step, trace.passages) for step in steps.get(node.id, ())]
        yield Padding(Group(*own) if own else _without_steps(node, trace), (0, 0, 0, 5))


def _without_steps(node: Node, trace: Trace) -> Text:
    if node.compute:
        value = trace.variables.get(node.id)
        return Text(f"computed {node.compute}" + (f" → {shorten(str(value))}" if value is not None else ""))
    return Text("not needed", style="dim")

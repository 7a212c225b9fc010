"""A question's course as HERA's orchestrator laid it out: each agent with whom it waited for and what it did."""

from __future__ import annotations

from collections.abc import Iterator

from pyrag.methods.hera.topology import STATE, Node, Topology
from pyrag.trace.model import Step, Trace, shorten
from pyrag.trace.view import Line, RejectedProgram, ShownStep, ViewItem, line


def view(trace: Trace) -> list[ViewItem]:
    """Return the programs that were given up with what was said of them, then the topology that ran; empty where the
    trace has none."""
    topology = STATE.read(trace)
    if topology is None:
        return []
    items: list[ViewItem] = []
    for number, program in enumerate(trace.programs[:-1]):
        steps = [ShownStep(step) for step in trace.steps if step.round == number]
        items += [program, *steps, RejectedProgram(program.error)]
    return [*items, *_head(topology), *_nodes(trace, topology)]


def _head(topology: Topology) -> Iterator[Line]:
    profile = topology.profile
    asks = f", asks for: {profile.asks}" if profile.asks else ""
    yield Line((("Topology", "bold cyan"), (f"  {profile.type}, {profile.difficulty}{asks}", "")))
    if topology.rationale:
        yield line(f"  {topology.rationale}", "dim")
    if topology.experience:
        yield line(f"  with experience {', '.join(map(str, topology.experience))}", "dim")


def _nodes(trace: Trace, topology: Topology) -> Iterator[ViewItem]:
    steps: dict[str, list[Step]] = {}
    for step in trace.steps:
        steps.setdefault(trace.variable_of(step), []).append(step)
    for number, node in enumerate(topology.nodes, start=1):
        after = f"  after {', '.join(node.depends_on)}" if node.depends_on else ""
        agent = f"  {node.agent.replace('_', ' ')}"
        yield Line(((f"  {number}. ", ""), (node.id, "bold"), (agent, ""), (after, "dim")))
        own = steps.get(node.id, [])
        yield from (ShownStep(step, 5) for step in own)
        if not own:
            yield _without_steps(node, trace)


def _without_steps(node: Node, trace: Trace) -> Line:
    if node.compute:
        value = trace.variables.get(node.id)
        return line(f"computed {node.compute}" + (f" → {shorten(str(value))}" if value is not None else ""), indent=5)
    return line("not needed", "dim", 5)

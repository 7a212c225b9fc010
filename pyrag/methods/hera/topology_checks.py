"""Plan checks of a topology, which compare what it looks up with what the question asks for.

As with `pyrag.episode.plan_checks`, an orchestrator is shown the objections once, and its next topology runs as it is.
They address the two kinds of failure in the paper's own cases (appendix H): a model has to combine periods in its head,
and things that share the requested property are asked for another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrag.agents.engine import default_rules
from pyrag.agents.goals.goal_types import YES_NO, same_type
from pyrag.episode.plan_checks import Problem
from pyrag.methods.hera.topology import Node, Topology
from pyrag.methods.hera.topology_graph import Graph

_COMPUTED = ("date", "number")
_COMPUTING = ("comparison", "temporal")


def check_topology(topology: Topology, question: str) -> list[Problem]:
    """Return objections to a topology, for its orchestrator to consider. No objection is fatal.

    Args:
        topology: A topology that satisfies the rules.
        question: The question. If it does not state the kind of its answer, the topology's profile is used.
    """
    asked = default_rules().asked_for(question) or topology.profile.asks
    graph = Graph(topology.nodes)
    return [*_wrong_kind(topology, asked), *_not_computed(topology, graph), *_other_property(topology, graph, asked)]


def _wrong_kind(topology: Topology, asked: str) -> Iterator[Problem]:
    last = topology.nodes[-1]
    somewhere = asked == "place" and same_type(last.kind, "organisation")  # "where" may ask for schools and firms
    if asked and last.kind and not same_type(asked, last.kind) and not somewhere:
        yield Problem(f"the question asks for a {asked}, but {last.id}, which comes last, finds a {last.kind}")


def _not_computed(topology: Topology, graph: Graph) -> Iterator[Problem]:
    last = topology.nodes[-1]
    if last.compute or topology.profile.type not in _COMPUTING:
        return
    answers = graph.answers(last)
    kinds = [answer.kind for answer in answers for _ in range(2 if graph.each(answer) else 1)]
    if (
        len(kinds) > 1
        and all(any(same_type(kind, computable) for computable in _COMPUTED) for kind in kinds if kind)
        and any(kinds)
    ):
        names = " and ".join(answer.id for answer in answers)
        yield Problem(
            f'{last.id} is left to work out {names} in its head: let a conclude agent do it, with "compute" '
            "(overlap, years_between, parse_date, parse_number …)"
        )


def _other_property(topology: Topology, graph: Graph, asked: str) -> Iterator[Problem]:
    """Yield an objection if things that share the requested property are asked for another property."""
    if topology.profile.type != "intersection" or not asked or asked == YES_NO:
        return
    for branch in graph.parents(topology.nodes[-1]):
        line, topic = [branch, *graph.ancestors(branch)], graph.topic(branch)
        if topic is not None and not any(_asks(node, asked) for node in line):
            action = f"asked {topic.input!r}" if topic.input else "asked for something else"
            yield Problem(
                f"the question asks for a {asked}, but {branch.id} is {action}: ask each of them for the {asked}, and "
                f'give the agents that look for it the "kind" {asked!r}'
            )


def _asks(node: Node, asked: str) -> bool:
    word = asked.casefold().removesuffix("s").removesuffix("y")
    return bool(node.kind and node.kind != "answer" and same_type(node.kind, asked)) or word in node.input.casefold()

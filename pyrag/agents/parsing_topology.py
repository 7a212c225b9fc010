"""What an orchestrator's reply means: a topology of agents, and what is wrong with it.

    {"type": "bridge", "difficulty": "medium", "asks": "date", "rationale": "…", "agents": [
     {"id": "docs", "agent": "retriever", "input": "Who directed Alpha?", "depends_on": []},
     {"id": "director", "agent": "answer_generator", "input": "Who directed Alpha?", "depends_on": ["docs"]}, …]}

A topology is strict, since it runs as it is: every agent is known, every dependency exists, there is no cycle, every
output is used, and one agent comes last, which gives the answer. Whether it asks for the right thing is a matter of
`pyrag.methods._topology_checks`.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pyrag.agents.fields import line_of
from pyrag.agents.parsing import parse_json
from pyrag.agents.parsing_goals import NAMED, check_expression
from pyrag.agents.parsing_team import agent_named, profile_of
from pyrag.config import nearest
from pyrag.errors import BadOutputError
from pyrag.topology import AGENTS, PRIMITIVE_OF, Agent, Node, Topology
from pyrag.topology_graph import ANSWERS, PASSAGES, VERDICTS, Graph
from pyrag_sandbox.helpers import HELPERS

MAX_NODES = 24
REFERENCE = re.compile(r"\{(\w+)\}")
_QUOTABLE = re.compile(rf"(?P<quote>[\"']?){REFERENCE.pattern}(?P=quote)")
_LIST_KEYS = ("agents", "nodes", "topology")
_TAKEN = frozenset((*dir(builtins), *PRIMITIVE_OF.values(), *HELPERS, *keyword.kwlist, "final_answer"))


def parse_topology(text: str) -> Topology:
    """The topology of a reply. Raises `BadOutputError` with what is wrong first."""
    for value in parse_json(text, "{"):
        listed = next((value[key] for key in _LIST_KEYS if key in value), None) if isinstance(value, dict) else None
        if isinstance(listed, list):
            nodes = tuple(_node(one, number) for number, one in enumerate(listed, start=1))
            return checked(Topology(nodes, profile_of(value), line_of(value, "rationale")))
    raise BadOutputError('it holds no JSON object with a list of "agents"')


def checked(topology: Topology) -> Topology:
    """The topology with each node after those that it depends on, if it keeps all rules. Raises `BadOutputError`."""
    if not topology.nodes:
        raise BadOutputError("the list of agents is empty")
    if len(topology.nodes) > MAX_NODES:
        raise BadOutputError(f"it holds {len(topology.nodes)} agents; {MAX_NODES} are the most allowed")
    nodes = _in_order(topology.nodes)
    for problem in _problems(nodes):
        raise BadOutputError(problem)
    return replace(topology, nodes=nodes)


def written_topology(topology: Topology) -> dict[str, Any]:
    """A topology as an orchestrator writes it."""
    profile = topology.profile
    head = {"type": profile.type, "difficulty": profile.difficulty, "asks": profile.asks}
    return {**head, "rationale": topology.rationale, "agents": [written_node(node) for node in topology.nodes]}


def written_node(node: Node) -> dict[str, Any]:
    work = {"id": node.id, "agent": node.agent, "input": node.input, "depends_on": list(node.depends_on)}
    return {**work, "kind": node.kind, "topk": node.topk, "compute": node.compute}


def in_code(compute: str, name: Callable[[str], str]) -> str:
    """An expression with names in place of its references, quotes right around one left out."""
    return _QUOTABLE.sub(lambda found: name(found[2]), compute)


def _node(value: Any, number: int) -> Node:
    if not isinstance(value, dict):
        raise BadOutputError(f'agent {number} is no object with the keys "id", "agent", "input" and "depends_on"')
    id_ = _name(value.get("id"), f"the id of agent {number}")
    declared = value.get("depends_on", [])
    if not isinstance(declared, list):
        raise BadOutputError(f'"depends_on" of {id_} must be a list of ids')
    depends_on = tuple(dict.fromkeys(_name(one, f'"depends_on" of {id_}') for one in declared))
    return Node(
        id_,
        _agent(line_of(value, "agent"), id_),
        _named(line_of(value, "input")),
        depends_on,
        line_of(value, "kind").casefold(),
        _topk(value.get("topk"), id_),
        _named(line_of(value, "compute")),
    )


def _name(said: Any, what: str) -> str:
    """An id as a Python name that hides nothing."""
    if isinstance(said, bool) or not isinstance(said, str | int) or not str(said).strip():
        raise BadOutputError(f"{what} must be a short name, not {repr(said)[:80]}")
    letters = (char if char.isascii() or not char.isalnum() else f"u{ord(char):x}" for char in str(said).strip())
    name = re.sub(r"\W+", "_", "".join(letters), flags=re.ASCII)
    if not name[0].isalpha():  # programs may not bind names that begin with "_"
        name = f"node_{name.lstrip('_')}"
    return f"{name}_" if name in _TAKEN else name


def _named(text: str) -> str:
    """A text whose references are the names that ids became."""
    return REFERENCE.sub(lambda found: f"{{{_name(found[1], 'a reference')}}}", text)


def _agent(said: str, id_: str) -> Agent:
    found = agent_named(said, AGENTS)
    if found is None:
        raise BadOutputError(f"{id_} is of no known agent {said[:40]!r}{nearest(said, AGENTS)}")
    return found


def _topk(said: Any, id_: str) -> int:
    if said is None:
        return 0
    if isinstance(said, bool) or not isinstance(said, int) or not 0 <= said <= 100:
        raise BadOutputError(f'"topk" of {id_} must be a number from 1 to 100, not {repr(said)[:80]}')
    return said


def _in_order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, each after those that it depends on, else as they were listed."""
    known = {node.id: node for node in nodes}
    if len(known) < len(nodes):
        doubled = next(node.id for place, node in enumerate(nodes) if known[node.id] is not nodes[place])
        raise BadOutputError(f"there are two agents with the id {doubled}: give each its own")
    for node in nodes:
        if missing := [one for one in node.depends_on if one not in known]:
            raise BadOutputError(f"{node.id} depends on {missing[0]}, which does not exist{nearest(missing[0], known)}")
    try:
        TopologicalSorter({node.id: node.depends_on for node in nodes}).prepare()
    except CycleError as error:
        raise BadOutputError(f"there is a cycle: {' → '.join(error.args[1])}: break it") from error
    ordered: dict[str, Node] = {}
    while len(ordered) < len(nodes):
        ready = next(node for node in nodes if node.id not in ordered and ordered.keys() >= set(node.depends_on))
        ordered[ready.id] = ready
    return tuple(ordered.values())


def _problems(nodes: Sequence[Node]) -> Iterator[str]:
    graph = Graph(nodes)
    for node in nodes:
        yield from _references(node, graph)
        yield from _idle_input(node, graph)
        yield from _lacking(node, graph)
    used = {one for node in nodes for one in node.depends_on}
    last = [node for node in nodes if node.id not in used]
    if len(last) > 1:
        yield (
            f"{' and '.join(node.id for node in last)} both come last: end with one agent that gives the answer, such "
            "as a conclude that depends on what it needs"
        )
    if last[0].agent not in ANSWERS or graph.each(last[0]):
        yield f"{last[0].id} comes last, but gives no single answer: end with an answer_generator or conclude"


def _references(node: Node, graph: Graph) -> Iterator[str]:
    """References must be to texts, and to what the node depends on."""
    parents = {parent.id: parent for parent in graph.parents(node)}
    for one in REFERENCE.findall(node.input + node.compute):
        if one not in parents:
            yield f'{node.id} refers to {{{one}}}, on which it does not depend: add it to its "depends_on"'
        elif parents[one].agent in (*PASSAGES, *VERDICTS):
            yield f"{node.id} refers to {{{one}}}, which is no text: refer to an answer_generator or conclude"
        elif f"{{{one}}}" in node.input and (parents[one].agent == "query_decomposer" or graph.each(parents[one])):
            yield f"{node.id} refers to {{{one}}}, which is a list: leave out its input, to work on each one in turn"
    if node.compute and node.agent != "conclude":
        yield f"{node.id} computes, which only conclude does"
    if node.compute:
        check_expression(in_code(node.compute, lambda _: NAMED), node.id)


def _idle_input(node: Node, graph: Graph) -> Iterator[str]:
    """A text that an agent depends on must flow into what it is asked."""
    if not node.input or node.agent == "conclude":
        return
    for parent in graph.parents(node):
        named = f"{{{parent.id}}}" in node.input
        if not named and parent.agent in ("query_rewriter", "query_decomposer"):
            yield f"{node.id} depends on {parent.id} but has an input of its own: leave out that input"
        if not named and parent.agent in ANSWERS and node.agent in ("retriever", "query_rewriter", "query_decomposer"):
            yield f"{node.id} depends on {parent.id} but does not say where: write {{{parent.id}}} in its input"


def _lacking(node: Node, graph: Graph) -> Iterator[str]:
    """What an agent cannot do without."""
    match node.agent:
        case "evidence_selector" | "context_validator":
            if not graph.passages(node):
                yield f"{node.id} has no passages: let it depend on a retriever"
        case "answer_generator":
            if not graph.passages(node) and not graph.answers(node):
                yield f"{node.id} has nothing to answer from: let it depend on a retriever"
            elif any(parent.agent == "reflect" for parent in graph.parents(node)) and not _reads_anew(node, graph):
                yield (
                    f"{node.id} follows a review but reads nothing new: put a query_rewriter and a retriever between "
                    "them, or use conclude"
                )
        case "reflect":
            if len(graph.answers(node)) != 1:
                yield f"{node.id} must depend on the one answer that it reviews"
        case "conclude":
            if not graph.passages(node) and not graph.answers(node):
                yield f"{node.id} has nothing to conclude from: let it depend on the answers that it needs"
        case _:
            return


def _reads_anew(node: Node, graph: Graph) -> bool:
    return any(parent.agent in PASSAGES for parent in graph.parents(node))

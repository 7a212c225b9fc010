"""Parser of an orchestrator's reply: a topology of agents, and what is wrong with it.

    {"type": "bridge", "difficulty": "medium", "asks": "date", "rationale": "…", "agents": [
     {"id": "docs", "agent": "retriever", "input": "Who directed Alpha?", "depends_on": []},
     {"id": "director", "agent": "answer_generator", "input": "Who directed Alpha?", "depends_on": ["docs"]}, …]}

A reply is read leniently (`parsing_nodes`, `team_replies`, `node_references`, `topology_mending`): dependencies are
derived from references, and a field that cannot be read is left out with a warning. What runs keeps all rules: every
agent is known, every dependency exists, there is no cycle, every output is used, and one agent comes last, which gives
the answer. Whether it asks for the right thing is a matter of `pyrag.methods.hera.topology_checks`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pyrag.agents.goals.expressions import NAMED, check_expression
from pyrag.agents.parsing.spellings import line
from pyrag.errors import BadOutputError, nearest
from pyrag.methods.hera.node_references import (
    REFERENCE,
    Ids,
    is_nothing,
    node_name,
    references,
    referring,
    start_of,
    with_braces,
)
from pyrag.methods.hera.team_replies import agent_named, profile_of, text_of
from pyrag.methods.hera.topology import AGENTS, Agent, Node, Topology
from pyrag.methods.hera.topology_graph import ANSWERS, PASSAGES, VERDICTS, Graph
from pyrag.methods.hera.topology_nodes import AGENT_KEYS, RawNode, first, listed_nodes, plain
from pyrag.methods.hera.topology_repair import mended

MAX_NODES = 24
_QUOTABLE = re.compile(rf"(?P<quote>[\"']?){REFERENCE.pattern}(?P=quote)")
_ID_KEYS = ("id", "node_id", "agent_id", "node", "key", "name", "label", "step", "number")
_INPUT_KEYS = (
    "input", "inputs", "query", "question", "task", "prompt", "instruction", "sub_query", "sub_question", "goal",
    "text",
)  # fmt: skip
_NEEDS_KEYS = (
    "depends_on", "dependencies", "depends", "depend_on", "inputs_from", "input_from", "needs", "requires", "parents",
    "after",
)  # fmt: skip
_SEPARATOR = re.compile(r"\s*(?:[,;&]|\band\b)\s*")
_MAX_TOPK = 100
_MAX_INPUT = 4_000  # characters


@dataclass(frozen=True, slots=True)
class TopologyReading:
    """A topology that can run. `warnings` say what was left out, added or assumed."""

    topology: Topology
    warnings: tuple[str, ...] = ()


def read_topology(text: str, question: str = "") -> TopologyReading:
    """The topology of a reply.

    Args:
        text: the reply of an orchestrator.
        question: what it is for, where an input names it.

    Raises:
        BadOutputError: it holds no topology that can run; says what is wrong first.
    """
    found = listed_nodes(text)
    if found is None:
        raise BadOutputError('it holds no JSON object with a list of "agents"')
    head, listed = found
    if len(listed) > MAX_NODES:
        raise BadOutputError(f"it holds {len(listed)} agents; {MAX_NODES} are the most allowed")
    reader = _Reader(listed, question)
    written = reader.nodes()
    nodes, mending = mended(written, reader.silent)
    several = sum(node.agent in ANSWERS for node in nodes) > 1
    profile, said = profile_of(head, "bridge" if several else "single")
    topology = checked(Topology(nodes, profile, text_of(head, "rationale")))
    return TopologyReading(topology, (*said, *reader.warnings, *mending))


class _Reader:
    """Agents from what was written of them. `silent` are those that do not say on whom they depend."""

    def __init__(self, listed: Sequence[RawNode], question: str) -> None:
        self._listed, self._question = [one for place, one in enumerate(listed) if one not in listed[:place]], question
        agents = [_agent_of(one) for one in self._listed]
        named = enumerate(zip(self._listed, agents, strict=True), start=1)
        names = tuple(_id_of(one, agent, place) for place, (one, agent) in named)
        declared = [_declared(one) for one in self._listed]
        self._ids = Ids(names, start_of([one for found in declared for one in found or ()], names))
        self._agents, self._declared = agents, declared
        self.silent = frozenset(name for name, found in zip(names, declared, strict=True) if not found)
        self.warnings: list[str] = []

    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._node(place, one) for place, one in enumerate(self._listed))

    def _node(self, place: int, value: RawNode) -> Node:
        id_ = self._ids.names[place]
        self._ids = replace(self._ids, aliases=self._aliases(place))
        agent = agent_named(self._agents[place], AGENTS)
        if agent is None:
            said = self._agents[place]
            raise BadOutputError(f"{id_} is of no known agent {said[:40]!r}{nearest(said, AGENTS)}")
        text, more = self._input(value)
        compute = self._compute(id_, agent, value.get("compute"))
        named = [one for one in references(text + compute) if one in self._ids.names]
        depends_on = (*self._dependencies(id_, self._declared[place] or ()), *more, *named)
        return Node(
            id_,
            agent,
            text,
            tuple(one for one in dict.fromkeys(depends_on) if one != id_ or one in named),
            text_of(value, "kind").casefold(),
            self._topk(id_, value.get("topk")),
            compute,
        )

    def _aliases(self, place: int) -> dict[str, str]:
        """The agents listed before a place by what they are: the last one of each."""
        found: dict[str, str] = {}
        for said, name in zip(self._agents[:place], self._ids.names, strict=False):
            agent = agent_named(said, AGENTS)
            found[said.casefold()] = name
            if agent:
                found[agent] = name
        return {node_name(said, "an agent"): name for said, name in found.items() if said.strip()}

    def _dependencies(self, id_: str, declared: Sequence[object]) -> Iterator[str]:
        for one in declared:
            name = self._ids.find(one)
            if name is None and not is_nothing(one):
                said = node_name(one, f'"depends_on" of {id_}')
                known = nearest(said, self._ids.names)
                raise BadOutputError(f"{id_} depends on {said}, which does not exist{known}")
            if name is not None:
                yield name

    def _input(self, value: RawNode) -> tuple[str, tuple[str, ...]]:
        """The input of an agent, and the agents whose ids stand in its place."""
        said = first(value, _INPUT_KEYS)
        said = first(plain(said), _INPUT_KEYS) if isinstance(said, dict) else said
        listed = said if isinstance(said, list) else [said]
        ids = [self._ids.find(one) for one in listed if isinstance(one, str)]
        if ids and all(ids):
            return "", tuple(one for one in ids if one)
        texts = [line(one[:_MAX_INPUT]) for one in listed if isinstance(one, str)]
        return referring(texts[0] if texts else "", self._ids, self._question), ()

    def _compute(self, id_: str, agent: Agent, said: object) -> str:
        code = line(said[:_MAX_INPUT]) if isinstance(said, str) else ""
        if is_nothing(code):
            return ""
        code = with_braces(referring(code, self._ids, ""), self._ids.names)
        fault = "" if agent == "conclude" else "only conclude computes"
        try:
            check_expression(in_code(code, lambda _: NAMED), id_)
        except BadOutputError as error:
            fault = fault or str(error)
        if unknown := [one for one in references(code) if one not in self._ids.names]:
            fault = fault or f"it refers to {{{unknown[0]}}}, which does not exist"
        if fault:
            self.warnings.append(f'the "compute" of {id_} is left out: {fault}')
        return "" if fault else code

    def _topk(self, id_: str, said: object) -> int:
        if isinstance(said, str) and said.strip().isdecimal():
            said = int(said.strip()[:4])
        if said is None:
            return 0
        if isinstance(said, bool) or not isinstance(said, int) or not 0 <= said <= _MAX_TOPK:
            self.warnings.append(f'the "topk" of {id_} is left out: it is no number from 1 to {_MAX_TOPK}')
            return 0
        return said


def _agent_of(value: RawNode) -> str:
    """The word for a node's agent: the first that names one, else the first that is there."""
    said = [value[key] for key in AGENT_KEYS if isinstance(value.get(key), str) and value[key].strip()]
    return next((one for one in said if agent_named(one, AGENTS)), said[0] if said else "")


def _id_of(value: RawNode, agent: str, place: int) -> str:
    """A node's id; its place where it has none, or where that is the name of its agent."""
    for key in _ID_KEYS:
        said = value.get(key)
        own = key in _ID_KEYS[:3] or said != agent
        if isinstance(said, str | int) and not isinstance(said, bool) and str(said).strip() and own:
            return node_name(said, f"the id of agent {place}")
    return f"node_{place}"


def _declared(value: Mapping[str, object]) -> list[object] | None:
    """The dependencies that a node names; None where it names none."""
    said = first(value, _NEEDS_KEYS)
    if said is None:
        return None
    if isinstance(said, str):
        said = _SEPARATOR.split(said)
    if isinstance(said, dict):
        said = list(said.values())
    listed = said if isinstance(said, list) else [said]
    return [next(iter(one.values()), None) if isinstance(one, dict) else one for one in listed]


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
    """Return an expression with names in place of its references; quotes right around one are left out.

    Args:
        compute: A Python expression with references as `{id}`.
        name: Returns the text to put for an id.
    """
    return _QUOTABLE.sub(lambda found: name(found[2]), compute)


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
    """Return the inputs that an agent lacks."""
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

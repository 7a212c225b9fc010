"""Parser and rules of an orchestrator's reply: a topology of agents.

    {"type": "bridge", "difficulty": "medium", "asks": "date", "rationale": "…", "agents": [
     {"id": "docs", "agent": "retriever", "input": "Who directed Alpha?", "depends_on": []},
     {"id": "director", "agent": "answer_generator", "input": "Who directed Alpha?", "depends_on": ["docs"]}, …]}

A reply is read leniently (`topology_nodes`, `team_replies`, `node_references`, `topology_repair`): dependencies are
derived from references, and an unreadable field is omitted with a warning. A topology that runs satisfies all rules:
every agent is known, every dependency exists, there is no cycle, every output is used, and the last agent gives the
answer. `pyrag.methods.hera.topology_checks` checks whether it asks for the right things.
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
    NodeIds,
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
from pyrag.methods.hera.topology_repair import repaired

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
    """Topology that can run. `warnings` list omissions, additions and assumptions."""

    topology: Topology
    warnings: tuple[str, ...] = ()


def read_topology(text: str, question: str = "") -> TopologyReading:
    """Return the topology of a reply.

    Args:
        text: Reply of an orchestrator.
        question: The question, which replaces `{question}` in inputs.

    Raises:
        BadOutputError: The reply has no topology that can run; the message names the first fault.
    """
    agents_of_reply = listed_nodes(text)
    if agents_of_reply is None:
        raise BadOutputError('it holds no JSON object with a list of "agents"')
    head, listed = agents_of_reply
    if len(listed) > MAX_NODES:
        raise BadOutputError(f"it holds {len(listed)} agents; at most {MAX_NODES} are allowed")
    reader = _TopologyParser(listed, question)
    written = reader.nodes()
    nodes, repairs = repaired(written, reader.silent)
    several = sum(node.agent in ANSWERS for node in nodes) > 1
    profile, doubts = profile_of(head, "bridge" if several else "single")
    topology = check_rules(Topology(nodes, profile, text_of(head, "rationale")))
    return TopologyReading(topology, (*doubts, *reader.warnings, *repairs))


class _TopologyParser:
    """Parser of a list of agents. `silent` holds the ids of agents that do not state their dependencies."""

    def __init__(self, listed: Sequence[RawNode], question: str) -> None:
        self._listed = [value for place, value in enumerate(listed) if value not in listed[:place]]
        self._question = question
        agents = [_agent_of(value) for value in self._listed]
        named = enumerate(zip(self._listed, agents, strict=True), start=1)
        names = tuple(_id_of(value, agent, place) for place, (value, agent) in named)
        declared = [_declared(value) for value in self._listed]
        self._ids = NodeIds(names, start_of([item for items in declared for item in items or ()], names))
        self._agents, self._declared = agents, declared
        self.silent = frozenset(name for name, items in zip(names, declared, strict=True) if not items)
        self.warnings: list[str] = []

    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._node(place, value) for place, value in enumerate(self._listed))

    def _node(self, place: int, value: RawNode) -> Node:
        id_ = self._ids.names[place]
        self._ids = replace(self._ids, aliases=self._aliases(place))
        agent = agent_named(self._agents[place], AGENTS)
        if agent is None:
            word = self._agents[place]
            raise BadOutputError(f"{id_} names an unknown agent {word[:40]!r}{nearest(word, AGENTS)}")
        text, more = self._input(value)
        compute = self._compute(id_, agent, value.get("compute"))
        named = [id_in_text for id_in_text in references(text + compute) if id_in_text in self._ids.names]
        depends_on = (*self._dependencies(id_, self._declared[place] or ()), *more, *named)
        return Node(
            id_,
            agent,
            text,
            tuple(needed for needed in dict.fromkeys(depends_on) if needed != id_ or needed in named),
            text_of(value, "kind").casefold(),
            self._topk(id_, value.get("topk")),
            compute,
        )

    def _aliases(self, place: int) -> dict[str, str]:
        """Return the names of the agents before a place by alias. An alias is a kind, and means its last agent."""
        names: dict[str, str] = {}
        for word, name in zip(self._agents[:place], self._ids.names, strict=False):
            agent = agent_named(word, AGENTS)
            names[word.casefold()] = name
            if agent:
                names[agent] = name
        return {node_name(word, "an agent"): name for word, name in names.items() if word.strip()}

    def _dependencies(self, id_: str, declared: Sequence[object]) -> Iterator[str]:
        for dependency in declared:
            name = self._ids.find(dependency)
            if name is None and not is_nothing(dependency):
                shown = node_name(dependency, f'"depends_on" of {id_}')
                known = nearest(shown, self._ids.names)
                raise BadOutputError(f"{id_} depends on {shown}, which does not exist{known}")
            if name is not None:
                yield name

    def _input(self, value: RawNode) -> tuple[str, tuple[str, ...]]:
        """Return an agent's input, and the agents whose ids are given instead of an input."""
        content = first(value, _INPUT_KEYS)
        content = first(plain(content), _INPUT_KEYS) if isinstance(content, dict) else content
        listed = content if isinstance(content, list) else [content]
        ids = [self._ids.find(item) for item in listed if isinstance(item, str)]
        if ids and all(ids):
            return "", tuple(id_ for id_ in ids if id_)
        texts = [line(item[:_MAX_INPUT]) for item in listed if isinstance(item, str)]
        return referring(texts[0] if texts else "", self._ids, self._question), ()

    def _compute(self, id_: str, agent: Agent, value: object) -> str:
        code = line(value[:_MAX_INPUT]) if isinstance(value, str) else ""
        if is_nothing(code):
            return ""
        code = with_braces(referring(code, self._ids, ""), self._ids.names)
        fault = "" if agent == "conclude" else "only conclude computes"
        try:
            check_expression(in_code(code, lambda _: NAMED), id_)
        except BadOutputError as error:
            fault = fault or str(error)
        if unknown := [name for name in references(code) if name not in self._ids.names]:
            fault = fault or f"it refers to {{{unknown[0]}}}, which does not exist"
        if fault:
            self.warnings.append(f'the "compute" of {id_} is left out: {fault}')
        return "" if fault else code

    def _topk(self, id_: str, value: object) -> int:
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value.strip()[:4])
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_TOPK:
            self.warnings.append(f'the "topk" of {id_} is left out: it is not a number from 1 to {_MAX_TOPK}')
            return 0
        return value


def _agent_of(value: RawNode) -> str:
    """Return the word for a node's agent: the first word that names a known agent, or else the first word."""
    words = [value[key] for key in AGENT_KEYS if isinstance(value.get(key), str) and value[key].strip()]
    return next((word for word in words if agent_named(word, AGENTS)), words[0] if words else "")


def _id_of(value: RawNode, agent: str, place: int) -> str:
    """Return a node's id; if it has none, or only its agent's name, make an id from its position."""
    for key in _ID_KEYS:
        content = value.get(key)
        own = key in _ID_KEYS[:3] or content != agent
        if isinstance(content, str | int) and not isinstance(content, bool) and str(content).strip() and own:
            return node_name(content, f"the id of agent {place}")
    return f"node_{place}"


def _declared(value: Mapping[str, object]) -> list[object] | None:
    """Return the dependencies that a node states; None if it states none."""
    content = first(value, _NEEDS_KEYS)
    if content is None:
        return None
    if isinstance(content, str):
        content = _SEPARATOR.split(content)
    if isinstance(content, dict):
        content = list(content.values())
    listed = content if isinstance(content, list) else [content]
    return [next(iter(item.values()), None) if isinstance(item, dict) else item for item in listed]


def check_rules(topology: Topology) -> Topology:
    """Return the topology in the order of its dependencies. Raises `BadOutputError` if it breaks a rule."""
    if not topology.nodes:
        raise BadOutputError("the list of agents is empty")
    if len(topology.nodes) > MAX_NODES:
        raise BadOutputError(f"it holds {len(topology.nodes)} agents; at most {MAX_NODES} are allowed")
    nodes = _in_order(topology.nodes)
    for problem in _problems(nodes):
        raise BadOutputError(problem)
    return replace(topology, nodes=nodes)


def written_topology(topology: Topology) -> dict[str, Any]:
    """Return a topology in the form that an orchestrator writes."""
    profile = topology.profile
    head = {"type": profile.type, "difficulty": profile.difficulty, "asks": profile.asks}
    return {**head, "rationale": topology.rationale, "agents": [written_node(node) for node in topology.nodes]}


def written_node(node: Node) -> dict[str, Any]:
    work = {"id": node.id, "agent": node.agent, "input": node.input, "depends_on": list(node.depends_on)}
    return {**work, "kind": node.kind, "topk": node.topk, "compute": node.compute}


def in_code(compute: str, name: Callable[[str], str]) -> str:
    """Return an expression with its references replaced by names. Quotes directly around a reference are removed.

    Args:
        compute: A Python expression with references as `{id}`.
        name: Function that returns the replacement for an id.
    """
    return _QUOTABLE.sub(lambda match: name(match[2]), compute)


def _in_order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes in the order of their dependencies and, apart from that, in the order listed."""
    known = {node.id: node for node in nodes}
    if len(known) < len(nodes):
        doubled = next(node.id for place, node in enumerate(nodes) if known[node.id] is not nodes[place])
        raise BadOutputError(f"there are two agents with the id {doubled}: give each its own")
    for node in nodes:
        if missing := [needed for needed in node.depends_on if needed not in known]:
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
    used = {needed for node in nodes for needed in node.depends_on}
    last = [node for node in nodes if node.id not in used]
    if len(last) > 1:
        yield (
            f"{' and '.join(node.id for node in last)} both come last: end with one agent that gives the answer, such "
            "as a conclude that depends on what it needs"
        )
    if last[0].agent not in ANSWERS or graph.each(last[0]):
        yield f"{last[0].id} comes last, but gives no single answer: end with an answer_generator or conclude"


def _references(node: Node, graph: Graph) -> Iterator[str]:
    """Yield references to something other than texts, and to nodes that the node does not depend on."""
    parents = {parent.id: parent for parent in graph.parents(node)}
    for id_ in REFERENCE.findall(node.input + node.compute):
        if id_ not in parents:
            yield f'{node.id} refers to {{{id_}}}, on which it does not depend: add it to its "depends_on"'
        elif parents[id_].agent in (*PASSAGES, *VERDICTS):
            yield f"{node.id} refers to {{{id_}}}, which is not a text: refer to an answer_generator or conclude"
        elif f"{{{id_}}}" in node.input and (parents[id_].agent == "query_decomposer" or graph.each(parents[id_])):
            yield f"{node.id} refers to {{{id_}}}, which is a list: leave out its input, to work on each one in turn"
    if node.compute and node.agent != "conclude":
        yield f"{node.id} computes, which only conclude does"
    if node.compute:
        check_expression(in_code(node.compute, lambda _: NAMED), node.id)


def _idle_input(node: Node, graph: Graph) -> Iterator[str]:
    """Yield texts that an agent depends on without using them in its input."""
    if not node.input or node.agent == "conclude":
        return
    for parent in graph.parents(node):
        named = f"{{{parent.id}}}" in node.input
        if not named and parent.agent in ("query_rewriter", "query_decomposer"):
            yield f"{node.id} depends on {parent.id} but has an input of its own: leave out that input"
        if not named and parent.agent in ANSWERS and node.agent in ("retriever", "query_rewriter", "query_decomposer"):
            yield f"{node.id} depends on {parent.id} but does not say where: write {{{parent.id}}} in its input"


def _lacking(node: Node, graph: Graph) -> Iterator[str]:
    """Yield the inputs that an agent lacks."""
    match node.agent:
        case "evidence_selector" | "context_validator":
            if not graph.passages(node):
                yield f"{node.id} has no passages: let it depend on a retriever"
        case "answer_generator":
            if not graph.passages(node) and not graph.answers(node):
                yield f"{node.id} has nothing to answer from: let it depend on a retriever"
            elif any(parent.agent == "reflect" for parent in graph.parents(node)) and not _reads_again(node, graph):
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


def _reads_again(node: Node, graph: Graph) -> bool:
    return any(parent.agent in PASSAGES for parent in graph.parents(node))

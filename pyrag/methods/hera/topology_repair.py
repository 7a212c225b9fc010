"""Repair of topologies that cannot run as written: missing passages, impossible inputs, several ends.

Each rule makes the change that the topology's author most likely meant, and adds a warning. Faults that cannot be
repaired are left for `topology_replies.check_rules` to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from pyrag.methods.hera.node_references import references, unbraced
from pyrag.methods.hera.topology import Node
from pyrag.methods.hera.topology_graph import ANSWERS, PASSAGES, VERDICTS, Graph

_ASKING = ("retriever", "query_rewriter", "query_decomposer")  # these see earlier answers only in their input
_REWRITING = ("query_rewriter", "query_decomposer")
_END = "conclusion"


def repaired(nodes: Sequence[Node], silent: frozenset[str]) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """Return the agents of a runnable topology, and warnings.

    Args:
        nodes: Agents whose dependencies exist.
        silent: Ids of the agents that do not state their dependencies.
    """
    if not nodes or not _is_ordered(nodes):
        return tuple(nodes), ()
    repair = _Repair(nodes, silent)
    for rule in (
        repair.connect,
        repair.give_passages,
        repair.answer_reviews,
        repair.drop_inputs,
        repair.say_where,
        repair.drop_unheard,
        repair.end,
    ):
        rule()
    return tuple(repair.nodes), tuple(repair.warnings)


def _is_ordered(nodes: Sequence[Node]) -> bool:
    try:
        TopologicalSorter({node.id: node.depends_on for node in nodes}).prepare()
    except CycleError:
        return False
    known = {node.id for node in nodes}
    return len(known) == len(nodes) and all(needed in known for node in nodes for needed in node.depends_on)


class _Repair:
    def __init__(self, nodes: Sequence[Node], silent: frozenset[str]) -> None:
        self.nodes, self.warnings = list(nodes), list[str]()
        self._silent = silent

    def _graph(self) -> Graph:
        return Graph(self.nodes)

    def _each(self, change: Callable[[Node, Graph], Node]) -> None:
        """Change the agents one after another; each change sees the earlier ones."""
        for place in range(len(self.nodes)):
            self.nodes[place] = change(self.nodes[place], self._graph())

    def _used(self) -> set[str]:
        return {needed for node in self.nodes for needed in node.depends_on}

    def _before(self, node: Node, agents: Sequence[str]) -> tuple[str, ...]:
        """Return the preceding agents that no other agent depends on; if there are none, the last preceding agent."""
        place = self.nodes.index(node)
        earlier = [candidate.id for candidate in self.nodes[:place] if candidate.agent in agents]
        used = self._used()
        return tuple(candidate for candidate in earlier if candidate not in used) or tuple(earlier[-1:])

    def connect(self) -> None:
        """Connect agents that lack passages or answers to agents listed before them."""
        self._each(self._connected)

    def _connected(self, node: Node, graph: Graph) -> Node:
        match node.agent:
            case "evidence_selector" | "context_validator" if not graph.passages(node):
                wanted: Sequence[str] = PASSAGES
            case "answer_generator" if not graph.passages(node) and (node.id in self._silent or not node.depends_on):
                wanted = PASSAGES
            case "conclude" | "reflect" if not graph.answers(node) and not graph.passages(node):
                wanted = ANSWERS
            case "retriever" if node.id in self._silent and not node.input:
                wanted = _REWRITING
            case _:
                return node
        return replace(node, depends_on=tuple(dict.fromkeys((*node.depends_on, *self._before(node, wanted)))))

    def give_passages(self) -> None:
        """Add a search before answers that have nothing to read; before all answers if the topology never searches."""
        nobody = not any(node.agent in PASSAGES for node in self.nodes)
        for node in [candidate for candidate in self.nodes if candidate.agent == "answer_generator"]:
            graph = self._graph()
            if graph.passages(node) or (graph.answers(node) and not nobody):
                continue
            docs = Node(self._new(f"docs_for_{node.id}"), "retriever", node.input, node.depends_on)
            place = self.nodes.index(node)
            self.nodes[place : place + 1] = [docs, replace(node, depends_on=(*node.depends_on, docs.id))]
            self.warnings.append(f"{node.id} has nothing to answer from: {docs.id} searches for what it is asked")

    def answer_reviews(self) -> None:
        """Turn an answer that follows a review and reads nothing new into a conclusion."""
        self._each(self._concluding)

    def _concluding(self, node: Node, graph: Graph) -> Node:
        agents = [parent.agent for parent in graph.parents(node)]
        if node.agent != "answer_generator" or "reflect" not in agents or any(agent in PASSAGES for agent in agents):
            return node
        self.warnings.append(f"{node.id} follows a review but reads nothing new: it is taken for a conclude")
        return replace(node, agent="conclude")

    def drop_inputs(self) -> None:
        """Correct or remove inputs that refer to something other than text, or that conflict with a rewritten query."""
        self._each(self._put_right)

    def _put_right(self, node: Node, graph: Graph) -> Node:
        if not node.input:
            return node
        parents = graph.parents(node)
        words = {parent.id: "the documents" if parent.agent in PASSAGES else "the review"
                 for parent in parents if parent.agent in (*PASSAGES, *VERDICTS)}  # fmt: skip
        text = unbraced(node.input, words) if set(references(node.input)) & words.keys() else node.input
        lists = [parent for parent in parents if parent.agent == "query_decomposer" or graph.each(parent)]
        named = [parent for parent in lists if parent.id in references(text)]
        idle = [parent for parent in parents if parent.agent in _REWRITING and parent.id not in references(text)]
        if named or (idle and node.agent != "conclude"):
            self.warnings.append(f"the input of {node.id} is left out: it works on what {(named or idle)[0].id} gives")
            text = ""
        return replace(node, input=text)

    def say_where(self) -> None:
        """Append answers that a search depends on to its input, unless the input refers to them."""
        self._each(self._saying)

    def _saying(self, node: Node, graph: Graph) -> Node:
        if not node.input or node.agent not in _ASKING:
            return node
        named = references(node.input)
        missing = [parent for parent in graph.parents(node) if parent.agent in ANSWERS and parent.id not in named]
        missing = [parent for parent in missing if not graph.each(parent)]
        return replace(node, input=" ".join([node.input, *(f"{{{parent.id}}}" for parent in missing)]))

    def drop_unheard(self) -> None:
        """Remove agents whose output is not used, unless they give the answer or are the only source of passages."""
        while True:
            used = self._used()
            ends = [node for node in self.nodes if node.id not in used]
            answered = any(node.agent in ANSWERS for node in self.nodes)
            idle = [node for node in ends if node.agent not in ANSWERS and (answered or node.agent in VERDICTS)]
            if not idle or len(idle) == len(self.nodes):
                return
            self.warnings += [f"{node.id} is left out: nobody uses what it gives" for node in idle]
            self.nodes = [node for node in self.nodes if node not in idle]

    def end(self) -> None:
        """Join several ends, or an end without a single answer, with a final agent."""
        used = self._used()
        ends = [node for node in self.nodes if node.id not in used]
        single = len(ends) == 1 and ends[0].agent in ANSWERS and not self._graph().each(ends[0])
        if single or not all(node.agent in (*ANSWERS, *PASSAGES) for node in ends):
            return
        agent = "conclude" if any(node.agent in ANSWERS for node in ends) else "answer_generator"
        last = Node(self._new(_END), agent, "", tuple(node.id for node in ends))  # type: ignore[arg-type]
        self.nodes.append(last)
        self.warnings.append(f"{last.id} is added: it draws on {', '.join(last.depends_on)}, which came last")

    def _new(self, id_: str) -> str:
        known = {node.id for node in self.nodes}
        while id_ in known:
            id_ += "_"
        return id_

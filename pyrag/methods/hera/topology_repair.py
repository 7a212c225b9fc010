"""Mends topologies that cannot run as they are: passages to answer from, inputs that cannot be, a single end.

Each rule does what a topology's author can only have meant, and says so in a warning. What cannot be mended is left as
it is: `topology_replies.checked` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from pyrag.methods.hera.node_references import references, unbraced
from pyrag.methods.hera.topology import Node
from pyrag.methods.hera.topology_graph import ANSWERS, PASSAGES, VERDICTS, Graph

_ASKING = ("retriever", "query_rewriter", "query_decomposer")  # whose input is all they know of an answer
_REWRITING = ("query_rewriter", "query_decomposer")
_END = "conclusion"


def mended(nodes: Sequence[Node], silent: frozenset[str]) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The agents of a topology that can run, and warnings.

    Args:
        nodes: agents whose dependencies exist.
        silent: ids of those that do not say on whom they depend.
    """
    if not nodes or not _is_ordered(nodes):
        return tuple(nodes), ()
    mending = _Mending(nodes, silent)
    for rule in (
        mending.connect,
        mending.give_passages,
        mending.answer_reviews,
        mending.drop_inputs,
        mending.say_where,
        mending.drop_unheard,
        mending.end,
    ):
        rule()
    return tuple(mending.nodes), tuple(mending.warnings)


def _is_ordered(nodes: Sequence[Node]) -> bool:
    try:
        TopologicalSorter({node.id: node.depends_on for node in nodes}).prepare()
    except CycleError:
        return False
    known = {node.id for node in nodes}
    return len(known) == len(nodes) and all(one in known for node in nodes for one in node.depends_on)


class _Mending:
    def __init__(self, nodes: Sequence[Node], silent: frozenset[str]) -> None:
        self.nodes, self.warnings = list(nodes), list[str]()
        self._silent = silent

    def _graph(self) -> Graph:
        return Graph(self.nodes)

    def _each(self, change: Callable[[Node, Graph], Node]) -> None:
        """Changes one agent after the other; each sees what became of those before."""
        for place in range(len(self.nodes)):
            self.nodes[place] = change(self.nodes[place], self._graph())

    def _used(self) -> set[str]:
        return {one for node in self.nodes for one in node.depends_on}

    def _before(self, node: Node, agents: Sequence[str]) -> tuple[str, ...]:
        """Agents listed before a node: those that nobody depends on, or the last one."""
        place = self.nodes.index(node)
        found = [one.id for one in self.nodes[:place] if one.agent in agents]
        used = self._used()
        return tuple(one for one in found if one not in used) or tuple(found[-1:])

    def connect(self) -> None:
        """Agents that lack what they work on get it from those listed before them."""
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
        """An answer without anything to read gets a search for what it is asked; where nobody searches, every one."""
        nobody = not any(node.agent in PASSAGES for node in self.nodes)
        for node in [one for one in self.nodes if one.agent == "answer_generator"]:
            graph = self._graph()
            if graph.passages(node) or (graph.answers(node) and not nobody):
                continue
            docs = Node(self._new(f"docs_for_{node.id}"), "retriever", node.input, node.depends_on)
            place = self.nodes.index(node)
            self.nodes[place : place + 1] = [docs, replace(node, depends_on=(*node.depends_on, docs.id))]
            self.warnings.append(f"{node.id} has nothing to answer from: {docs.id} searches for what it is asked")

    def answer_reviews(self) -> None:
        """An answer after a review that reads nothing new is a conclusion."""
        self._each(self._concluding)

    def _concluding(self, node: Node, graph: Graph) -> Node:
        agents = [one.agent for one in graph.parents(node)]
        if node.agent != "answer_generator" or "reflect" not in agents or any(one in PASSAGES for one in agents):
            return node
        self.warnings.append(f"{node.id} follows a review but reads nothing new: it is taken for a conclude")
        return replace(node, agent="conclude")

    def drop_inputs(self) -> None:
        """Inputs that refer to what is no text, or stand beside a rewritten query, are put right or left out."""
        self._each(self._put_right)

    def _put_right(self, node: Node, graph: Graph) -> Node:
        if not node.input:
            return node
        parents = graph.parents(node)
        words = {one.id: "the documents" if one.agent in PASSAGES else "the review"
                 for one in parents if one.agent in (*PASSAGES, *VERDICTS)}  # fmt: skip
        text = unbraced(node.input, words) if set(references(node.input)) & words.keys() else node.input
        lists = [one for one in parents if one.agent == "query_decomposer" or graph.each(one)]
        named = [one for one in lists if one.id in references(text)]
        idle = [one for one in parents if one.agent in _REWRITING and one.id not in references(text)]
        if named or (idle and node.agent != "conclude"):
            self.warnings.append(f"the input of {node.id} is left out: it works on what {(named or idle)[0].id} gives")
            text = ""
        return replace(node, input=text)

    def say_where(self) -> None:
        """A search whose input does not name the answer that it depends on gets it behind its words."""
        self._each(self._saying)

    def _saying(self, node: Node, graph: Graph) -> Node:
        if not node.input or node.agent not in _ASKING:
            return node
        named = references(node.input)
        missing = [one for one in graph.parents(node) if one.agent in ANSWERS and one.id not in named]
        missing = [one for one in missing if not graph.each(one)]
        return replace(node, input=" ".join([node.input, *(f"{{{one.id}}}" for one in missing)]))

    def drop_unheard(self) -> None:
        """Agents whose output nobody uses are left out, unless they answer or bring all the passages there are."""
        while True:
            used = self._used()
            ends = [node for node in self.nodes if node.id not in used]
            answered = any(node.agent in ANSWERS for node in self.nodes)
            idle = [one for one in ends if one.agent not in ANSWERS and (answered or one.agent in VERDICTS)]
            if not idle or len(idle) == len(self.nodes):
                return
            self.warnings += [f"{one.id} is left out: nobody uses what it gives" for one in idle]
            self.nodes = [node for node in self.nodes if node not in idle]

    def end(self) -> None:
        """Several ends, or one that gives no single answer, are drawn together."""
        used = self._used()
        ends = [node for node in self.nodes if node.id not in used]
        single = len(ends) == 1 and ends[0].agent in ANSWERS and not self._graph().each(ends[0])
        if single or not all(one.agent in (*ANSWERS, *PASSAGES) for one in ends):
            return
        agent = "conclude" if any(one.agent in ANSWERS for one in ends) else "answer_generator"
        last = Node(self._new(_END), agent, "", tuple(one.id for one in ends))  # type: ignore[arg-type]
        self.nodes.append(last)
        self.warnings.append(f"{last.id} is added: it draws on {', '.join(last.depends_on)}, which came last")

    def _new(self, id_: str) -> str:
        known = {node.id for node in self.nodes}
        while id_ in known:
            id_ += "_"
        return id_

"""Compiles a topology to a program: a node becomes a variable, a reference `{id}` an f-string's.

Nodes that do not depend on each other run side by side, as in any program, and so do the calls of a node that works on
every sub-query. A search that waits for a verdict is made where that found fault; its passages then join those from
before. What a conclude agent is to compute is computed, where the answers are known and hold what it takes.
Left out: whether a topology makes sense (`pyrag.methods.hera.topology_replies`, `pyrag.methods.hera.topology_checks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

from pyrag.agents.passages import given
from pyrag.agents.python_text import braced, interpolated, literal
from pyrag.methods.hera.node_references import REFERENCE
from pyrag.methods.hera.topology import PRIMITIVE_OF, Node, Topology
from pyrag.methods.hera.topology_graph import PASSAGES, Graph
from pyrag.methods.hera.topology_replies import in_code
from pyrag.methods.program_text import attempted


def compile_topology(topology: Topology, question: str) -> str:
    """Return the program of a topology.

    Args:
        topology: One that keeps all rules.
        question: The question.
    """
    compiler = _Compiler(topology, question)
    lines = [line for node in topology.nodes for line in compiler.lines(node)]
    return "\n".join([*lines, f"final_answer = {topology.nodes[-1].id}"]) + "\n"


class _Compiler:
    def __init__(self, topology: Topology, question: str) -> None:
        self._graph, self._question, self._asks = Graph(topology.nodes), question, topology.profile.asks
        ids = {node.id for node in topology.nodes}
        self._place = next(one for one in map("i{}".format, chain([""], count())) if one not in ids)

    def lines(self, node: Node) -> list[str]:
        """The statements of a node; every one that calls an agent binds the node's name."""
        if node.agent == "conclude" and self._graph.answers(node):
            return self._concluded(node)
        each = self._graph.each(node)
        if each is None:
            return [f"{node.id} = {self._value(node, '')}"]
        return [f"{node.id} = [{self._value(node, f'[{self._place}]')} {self._all_of(each)}]"]

    def _all_of(self, each: Node) -> str:
        """Goes through the places of a decomposer's sub-queries."""
        return f"for {self._place} in range(len({each.id}))"

    def _value(self, node: Node, at: str) -> str:
        call = self._call(node, at)
        guards = self._graph.guards(node)
        if not guards:
            return call
        sure = " and ".join(f"is_known({self._ref(one, at)})" for one in guards)
        if node.agent == "query_rewriter":
            return f"{self._topic(node, at)} if {sure} else {call}"
        before = self._docs((passage for one in guards for passage in self._graph.passages(one)), at)
        return f"{before} if {sure} else {before} + {call}"

    def _call(self, node: Node, at: str) -> str:
        """The call of a node's agent; `at` says which sub-query it is for."""
        topic, docs = self._topic(node, at), self._docs(self._graph.passages(node), at)
        match node.agent:
            case "query_decomposer":
                arguments = [topic]
            case "retriever":
                rewriter = self._graph.rewriter(node)
                topk = [f"topk={node.topk}"] if node.topk else []
                arguments = [self._ref(rewriter, at) if rewriter else topic, *topk]
            case "query_rewriter":
                arguments = [topic, *self._hints(node, docs, at)]
            case "reflect":
                (reviewed,) = self._graph.answers(node)
                arguments = [topic, self._ref(reviewed, at), docs]
            case _:
                arguments = [topic, docs] if self._graph.passages(node) else [self._facts(node)]
        return f"{PRIMITIVE_OF[node.agent]}({', '.join(arguments)})"

    def _hints(self, node: Node, docs: str, at: str) -> list[str]:
        """Return a rewriter's hints beside the query: what was found, what is missing, what must not get lost."""
        missing = [self._ref(one, at) for one in self._graph.guards(node)][:1]
        topic = self._graph.topic(node)
        asked = (topic.input if topic else "") or self._question
        keep = node.kind or (self._asks if self._asks and self._asks in asked.casefold() else "")
        named = {
            "docs": docs if docs != "[]" else "",
            "missing": "".join(missing),
            "keep": literal(keep) if keep else "",
        }
        return [f"{name}={value}" for name, value in named.items() if value]

    def _concluded(self, node: Node) -> list[str]:
        answers = self._graph.answers(node)
        known = " and ".join(
            f"all(is_known(one) for one in {one.id})" if self._graph.each(one) else f"is_known({one.id})"
            for one in answers
        )
        own = [parent for parent in self._graph.parents(node) if parent.agent in PASSAGES]
        facts = self._facts(node)
        value = in_code(node.compute, str) or f"conclude({facts}{f', {self._docs(own)}' if own else ''})"
        docs = self._docs([*own, *self._graph.behind(node)])
        return attempted(node.id, known, value, f"conclude({facts}{f', {docs}' if docs != '[]' else ''})")

    def _facts(self, node: Node) -> str:
        """The answers that a node is given, each behind its question, and what reviews said of them."""
        facts = [self._fact(one) for one in self._graph.answers(node)]
        reviews = [f"Review: {{{one.id}}}" for one in self._graph.parents(node) if one.agent == "reflect"]
        return f'f"{given("; ".join([*facts, *reviews]), self._inner(node))}"'

    def _fact(self, answer: Node) -> str:
        each = self._graph.each(answer)
        if each is None:
            return f"{self._inner(self._graph.topic(answer))} {{{answer.id}}}"
        pairs = f"{each.id}[{self._place}] + ' ' + {answer.id}[{self._place}] {self._all_of(each)}"
        return f"{{'; '.join([{pairs}])}}"

    def _docs(self, nodes: Iterable[Node], at: str = "") -> str:
        """The passages of nodes, one after the other; a list of lists is one to every agent."""
        return " + ".join(dict.fromkeys(self._ref(one, at) for one in nodes)) or "[]"

    def _ref(self, node: Node, at: str) -> str:
        return f"{node.id}{at}" if at and self._graph.each(node) else node.id

    def _topic(self, node: Node, at: str) -> str:
        """Return the input of a node as an expression."""
        topic = self._graph.topic(node)
        if topic is not None and topic is not node and topic.agent == "query_decomposer":
            return f"{topic.id}{at}"
        if topic is not None and REFERENCE.search(topic.input):
            return f'f"{self._inner(topic)}"'
        return literal(topic.input if topic and topic.input else self._question)

    def _inner(self, topic: Node | None) -> str:
        """A node's input inside an f-string; the question where it has none."""
        if topic is None or not topic.input:
            return braced(self._question)
        return interpolated(topic.input, REFERENCE, lambda found: found[1])

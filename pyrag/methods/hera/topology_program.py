"""Compiler of a topology to a program: nodes become variables, and references `{id}` become parts of f-strings.

Nodes that do not depend on each other run in parallel, as in any program, as do the calls of a node that works on every
sub-query. A search that waits for a verdict is only made if the verdict is negative; its passages are added to the
earlier ones. The expression of a conclude agent is evaluated if the answers in it are known and have usable values.
`pyrag.methods.hera.topology_replies` and `pyrag.methods.hera.topology_checks` check topologies.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

from pyrag.agents.passages import with_facts
from pyrag.agents.python_text import braced, interpolated, literal
from pyrag.methods.hera.node_references import REFERENCE
from pyrag.methods.hera.topology import PRIMITIVE_OF, Node, Topology
from pyrag.methods.hera.topology_graph import PASSAGES, Graph
from pyrag.methods.hera.topology_replies import in_code
from pyrag.methods.program_text import attempted


def compile_topology(topology: Topology, question: str) -> str:
    """Return the program of a topology.

    Args:
        topology: Topology that satisfies all rules.
        question: The question.
    """
    compiler = _Compiler(topology, question)
    lines = [line for node in topology.nodes for line in compiler.lines(node)]
    return "\n".join([*lines, f"final_answer = {topology.nodes[-1].id}"]) + "\n"


class _Compiler:
    def __init__(self, topology: Topology, question: str) -> None:
        self._graph, self._question, self._asks = Graph(topology.nodes), question, topology.profile.asks
        ids = {node.id for node in topology.nodes}
        self._place = next(name for name in map("i{}".format, chain([""], count())) if name not in ids)

    def lines(self, node: Node) -> list[str]:
        """Return the statements of a node. Each statement that calls an agent binds the node's name."""
        if node.agent == "conclude" and self._graph.answers(node):
            return self._conclude_lines(node)
        each = self._graph.each(node)
        if each is None:
            return [f"{node.id} = {self._value(node, '')}"]
        return [f"{node.id} = [{self._value(node, f'[{self._place}]')} {self._all_of(each)}]"]

    def _all_of(self, each: Node) -> str:
        """Return a loop over the positions of a decomposer's sub-queries."""
        return f"for {self._place} in range(len({each.id}))"

    def _value(self, node: Node, at: str) -> str:
        call = self._call(node, at)
        guards = self._graph.guards(node)
        if not guards:
            return call
        sure = " and ".join(f"is_known({self._ref(guard, at)})" for guard in guards)
        if node.agent == "query_rewriter":
            return f"{self._topic(node, at)} if {sure} else {call}"
        before = self._docs((passage for guard in guards for passage in self._graph.passages(guard)), at)
        return f"{before} if {sure} else {before} + {call}"

    def _call(self, node: Node, at: str) -> str:
        """Return the call of a node's agent; `at` is the index of its sub-query."""
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
        """Return a rewriter's arguments besides the query: passages, missing information, and the property to keep."""
        missing = [self._ref(guard, at) for guard in self._graph.guards(node)][:1]
        topic = self._graph.topic(node)
        asked = (topic.input if topic else "") or self._question
        keep = node.kind or (self._asks if self._asks and self._asks in asked.casefold() else "")
        named = {
            "docs": docs if docs != "[]" else "",
            "missing": "".join(missing),
            "keep": literal(keep) if keep else "",
        }
        return [f"{name}={value}" for name, value in named.items() if value]

    def _conclude_lines(self, node: Node) -> list[str]:
        answers = self._graph.answers(node)
        known = " and ".join(
            f"all(is_known(one) for one in {answer.id})" if self._graph.each(answer) else f"is_known({answer.id})"
            for answer in answers
        )
        own = [parent for parent in self._graph.parents(node) if parent.agent in PASSAGES]
        facts = self._facts(node)
        value = in_code(node.compute, str) or f"conclude({facts}{f', {self._docs(own)}' if own else ''})"
        docs = self._docs([*own, *self._graph.behind(node)])
        return attempted(node.id, known, value, f"conclude({facts}{f', {docs}' if docs != '[]' else ''})")

    def _facts(self, node: Node) -> str:
        """Return the answers that a node receives, each after its question, and the reviews of them."""
        facts = [self._fact(answer) for answer in self._graph.answers(node)]
        reviews = [f"Review: {{{parent.id}}}" for parent in self._graph.parents(node) if parent.agent == "reflect"]
        return f'f"{with_facts("; ".join([*facts, *reviews]), self._inner(node))}"'

    def _fact(self, answer: Node) -> str:
        each = self._graph.each(answer)
        if each is None:
            return f"{self._inner(self._graph.topic(answer))} {{{answer.id}}}"
        pairs = f"{each.id}[{self._place}] + ' ' + {answer.id}[{self._place}] {self._all_of(each)}"
        return f"{{'; '.join([{pairs}])}}"

    def _docs(self, nodes: Iterable[Node], at: str = "") -> str:
        """Return the passages of nodes, concatenated. (Agents also accept a list of lists.)"""
        return " + ".join(dict.fromkeys(self._ref(node, at) for node in nodes)) or "[]"

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
        """Return a node's input for use in an f-string; the question if it has none."""
        if topic is None or not topic.input:
            return braced(self._question)
        return interpolated(topic.input, REFERENCE, lambda match: match[1])

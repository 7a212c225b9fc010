"""The flow through a topology: which passages, answers and texts reach a node, and which verdicts it waits for.

Read by the checks of a topology and by its compiler, so that both mean the same. Nothing here looks at texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pyrag.methods.hera.topology import Node

T = TypeVar("T")

PASSAGES = ("retriever", "evidence_selector")
ANSWERS = ("answer_generator", "conclude")
VERDICTS = ("context_validator", "reflect")
SEARCHING = ("query_rewriter", "retriever")  # runs only where a verdict that it depends on found fault


def _remembered(find: Callable[[Graph, Node], T]) -> Callable[[Graph, Node], T]:
    """Found once for each node: as many paths as two to the power of its nodes can lead through a topology."""

    def found(self: Graph, node: Node) -> T:
        key = (find.__name__, node.id)
        if key not in self._found:
            self._found[key] = find(self, node)
        answer: T = self._found[key]
        return answer

    return found


class Graph:
    """The nodes of one topology whose dependencies exist and have no cycle."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._found: dict[tuple[str, str], Any] = {}

    def parents(self, node: Node) -> list[Node]:
        return [self._nodes[one] for one in node.depends_on]

    @_remembered
    def passages(self, node: Node) -> list[Node]:
        """Return the sources of the passages that a node reads: not from beyond an answer, unless it reviews that."""
        return _once(self._passages(node))

    def _passages(self, node: Node) -> Iterator[Node]:
        for parent in self.parents(node):
            if parent.agent in PASSAGES:
                yield parent
            elif parent.agent not in ANSWERS or node.agent == "reflect":
                yield from self.passages(parent)

    @_remembered
    def answers(self, node: Node) -> list[Node]:
        """The answers that a node is given, reviewed ones included."""
        return _once(self._answers(node))

    def _answers(self, node: Node) -> Iterator[Node]:
        for parent in self.parents(node):
            if parent.agent in ANSWERS:
                yield parent
            elif parent.agent in VERDICTS:
                yield from self.answers(parent)

    @_remembered
    def behind(self, node: Node) -> list[Node]:
        """The passages behind all answers that led to a node."""
        return _once(
            passage
            for answer in self.answers(node)
            for passage in (*self.behind(answer), *self.passages(answer))
        )  # fmt: skip

    @_remembered
    def ancestors(self, node: Node) -> list[Node]:
        """All nodes that a node waits for."""
        return _once(one for parent in self.parents(node) for one in (parent, *self.ancestors(parent)))

    @_remembered
    def topic(self, node: Node) -> Node | None:
        """The node whose input is what this one works on; a decomposer where it works on each sub-query in turn; None
        where it is the question itself."""
        if node.input:
            return node
        if node.agent == "conclude":
            return None
        topics = {id(topic): topic for topic in map(self._topic_given_by, self.parents(node))}
        return next(iter(topics.values())) if len(topics) == 1 else None

    def _topic_given_by(self, parent: Node) -> Node | None:
        return parent if parent.agent == "query_decomposer" else self.topic(parent)

    def each(self, node: Node) -> Node | None:
        """The decomposer on whose sub-queries the node works one by one; it has then a value for each of them."""
        topic = self.topic(node)
        return topic if topic is not None and topic.agent == "query_decomposer" and topic is not node else None

    def rewriter(self, node: Node) -> Node | None:
        """The rewriter whose query a retriever without input searches for."""
        rewriters = [one for one in self.parents(node) if one.agent == "query_rewriter"]
        return rewriters[0] if rewriters and node.agent == "retriever" and not node.input else None

    @_remembered
    def guards(self, node: Node) -> list[Node]:
        """The verdicts that decide whether a search is made at all."""
        return _once(self._guards(node))

    def _guards(self, node: Node) -> Iterator[Node]:
        if node.agent in SEARCHING:
            for parent in self.parents(node):
                if parent.agent in VERDICTS:
                    yield parent
                yield from self.guards(parent) if parent.agent == "query_rewriter" else ()


def _once(nodes: Iterator[Node]) -> list[Node]:
    return list({node.id: node for node in nodes}.values())

"""Data flow through a topology: the passages, answers and texts that reach a node, and the verdicts it waits for.

The checks of a topology and its compiler both use this module, so that they agree. It does not examine the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pyrag.methods.hera.topology import Node

T = TypeVar("T")

PASSAGES = ("retriever", "evidence_selector")
ANSWERS = ("answer_generator", "conclude")
VERDICTS = ("context_validator", "reflect")
SEARCHING = ("query_rewriter", "retriever")  # run only if a verdict that they depend on is negative


def _remembered(find: Callable[[Graph, Node], T]) -> Callable[[Graph, Node], T]:
    """Store a method's result per node, because the number of paths grows exponentially with the number of nodes."""

    def remembered(self: Graph, node: Node) -> T:
        key = (find.__name__, node.id)
        if key not in self._results:
            self._results[key] = find(self, node)
        answer: T = self._results[key]
        return answer

    return remembered


class Graph:
    """Nodes of a topology whose dependencies exist and have no cycle."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._results: dict[tuple[str, str], Any] = {}

    def parents(self, node: Node) -> list[Node]:
        return [self._nodes[id_] for id_ in node.depends_on]

    @_remembered
    def passages(self, node: Node) -> list[Node]:
        """Return the sources of the passages that a node reads. Only a review also reads passages behind an answer."""
        return _once(self._passages(node))

    def _passages(self, node: Node) -> Iterator[Node]:
        for parent in self.parents(node):
            if parent.agent in PASSAGES:
                yield parent
            elif parent.agent not in ANSWERS or node.agent == "reflect":
                yield from self.passages(parent)

    @_remembered
    def answers(self, node: Node) -> list[Node]:
        """Return the answers that a node receives, including reviewed ones."""
        return _once(self._answers(node))

    def _answers(self, node: Node) -> Iterator[Node]:
        for parent in self.parents(node):
            if parent.agent in ANSWERS:
                yield parent
            elif parent.agent in VERDICTS:
                yield from self.answers(parent)

    @_remembered
    def behind(self, node: Node) -> list[Node]:
        """Return the sources of the passages behind all answers that led to a node."""
        return _once(
            passage
            for answer in self.answers(node)
            for passage in (*self.behind(answer), *self.passages(answer))
        )  # fmt: skip

    @_remembered
    def ancestors(self, node: Node) -> list[Node]:
        """Return all nodes that a node waits for."""
        return _once(ancestor for parent in self.parents(node) for ancestor in (parent, *self.ancestors(parent)))

    @_remembered
    def topic(self, node: Node) -> Node | None:
        """Return the node whose input this node works on; None if it works on the user's question.

        For a node that works on sub-queries, this is the decomposer.
        """
        if node.input:
            return node
        if node.agent == "conclude":
            return None
        topics = {id(topic): topic for topic in map(self._topic_given_by, self.parents(node))}
        return next(iter(topics.values())) if len(topics) == 1 else None

    def _topic_given_by(self, parent: Node) -> Node | None:
        return parent if parent.agent == "query_decomposer" else self.topic(parent)

    def each(self, node: Node) -> Node | None:
        """Return the decomposer if the node handles its sub-queries separately and so has a value for each."""
        topic = self.topic(node)
        return topic if topic is not None and topic.agent == "query_decomposer" and topic is not node else None

    def rewriter(self, node: Node) -> Node | None:
        """Return the rewriter whose query is the search text of a retriever without input; None if there is none."""
        rewriters = [parent for parent in self.parents(node) if parent.agent == "query_rewriter"]
        return rewriters[0] if rewriters and node.agent == "retriever" and not node.input else None

    @_remembered
    def guards(self, node: Node) -> list[Node]:
        """Return the verdicts that decide whether a search is made."""
        return _once(self._guards(node))

    def _guards(self, node: Node) -> Iterator[Node]:
        if node.agent in SEARCHING:
            for parent in self.parents(node):
                if parent.agent in VERDICTS:
                    yield parent
                yield from self.guards(parent) if parent.agent == "query_rewriter" else ()


def _once(nodes: Iterator[Node]) -> list[Node]:
    return list({node.id: node for node in nodes}.values())

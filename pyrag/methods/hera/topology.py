"""Topology: an orchestrator's decision about which agents work on a question, on which task, and in which order (HERA).

This module has the plain data. `pyrag.methods.hera.topology_replies` reads and checks a topology, and
`pyrag.methods.hera.topology_program` compiles it to a program. A trace keeps the topology that ran last, so that its
graph can be measured later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pyrag.trace.extensions import Extension

Agent = Literal[
    "query_decomposer",
    "retriever",
    "answer_generator",
    "query_rewriter",
    "evidence_selector",
    "context_validator",
    "reflect",
    "conclude",
]
QuestionType = Literal["bridge", "intersection", "comparison", "temporal", "causal", "ambiguous", "single"]
Difficulty = Literal["easy", "medium", "hard"]

AGENTS: tuple[Agent, ...] = get_args(Agent)
QUESTION_TYPES: tuple[QuestionType, ...] = get_args(QuestionType)
DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)
# Names by which programs call the agents.
PRIMITIVE_OF: Mapping[Agent, str] = {
    "query_decomposer": "decompose",
    "retriever": "retrieve",
    "answer_generator": "answer",
    "query_rewriter": "rewrite",
    "evidence_selector": "select",
    "context_validator": "validate",
    "reflect": "reflect",
    "conclude": "conclude",
}


@dataclass(frozen=True, slots=True)
class Characterisation:
    """Kind of a question (paper, appendix D.1). `asks` is the kind of answer, such as "country", "date" or
    "yes/no"; empty if the question does not state it.
    """

    type: QuestionType = "single"
    difficulty: Difficulty = "easy"
    asks: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """Task of an agent. `id` is a Python name, unique in the topology.

    `input` is the agent's question, with `{id}` for the text of another node. If it is empty, the input is the text of
    the node it depends on, or the user's question. `kind` is the kind of an answer, such as "country" or "date". `topk`
    is for retrievers; 0 means the method's default. `compute` is for `conclude`: a Python expression over nodes, which
    gives the answer if it can be computed.
    """

    id: str
    agent: Agent
    input: str = ""
    depends_on: tuple[str, ...] = ()
    kind: str = ""
    topk: int = 0
    compute: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """Nodes in an order in which each follows those it depends on; the last one gives the answer.

    Nodes that do not depend on each other run in parallel. `experience` holds the ids of the library entries that were
    shown to the orchestrator.
    """

    nodes: tuple[Node, ...]
    profile: Characterisation = Characterisation()
    rationale: str = ""
    experience: tuple[int, ...] = ()

    def node(self, id_: str) -> Node:
        return next(node for node in self.nodes if node.id == id_)

    @property
    def edges(self) -> tuple[tuple[Node, Node], ...]:
        """Pairs of a node and a node that depends on it."""
        return tuple((self.node(source), node) for node in self.nodes for source in node.depends_on)


# Part of a trace: the topology that ran last.
STATE = Extension("hera", Topology)

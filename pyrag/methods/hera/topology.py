"""An orchestrator's decision about one question: which agents work on it, on what, and who waits for whom (HERA).

Plain data. `pyrag.methods.hera.topology_replies` reads and checks a topology, `pyrag.methods.hera.topology_program`
compiles it to a program, and a trace keeps the one that ran last, so that its graph can be measured afterwards.
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
# What a program calls an agent by.
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
    """The kind of a question (paper, appendix D.1). `asks` names what its answer is: "country", "date", "yes/no";
    empty where the question does not say."""

    type: QuestionType = "single"
    difficulty: Difficulty = "easy"
    asks: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """One agent at work. `id` is a Python name that no other node of the topology has.

    `input` is what the agent is asked, with `{id}` for the text of a node that it depends on; empty, it is the text of
    the node it depends on, or the question. `kind` is what an answer is: "country", "date". `topk` is for retrievers, 0
    the method's own; `compute`, for `conclude`, a Python expression over nodes that gives the answer where it can.
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
    """Nodes, each after those that it depends on; the last gives the answer. Nodes that do not depend on each other run
    side by side. `experience` holds the ids of the library's entries that the orchestrator was shown."""

    nodes: tuple[Node, ...]
    profile: Characterisation = Characterisation()
    rationale: str = ""
    experience: tuple[int, ...] = ()

    def node(self, id_: str) -> Node:
        return next(node for node in self.nodes if node.id == id_)

    @property
    def edges(self) -> tuple[tuple[Node, Node], ...]:
        """Return the pairs of a node and one that it hands over to."""
        return tuple((self.node(source), node) for node in self.nodes for source in node.depends_on)


# What a trace keeps of HERA: the topology that ran last.
STATE = Extension("hera", Topology)

"""HERA's agents, with their requests and replies, and the team that they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyrag.agents.protocol import AgentReply, Answerer, Decomposer, Rewriter
from pyrag.methods.hera.coach.protocol import Coach
from pyrag.methods.hera.topology import Characterisation, Topology
from pyrag.trace.model import Passage


@dataclass(frozen=True, slots=True)
class Selection(AgentReply):
    """Passages that are relevant to a query, as positions counted from 0, best first."""

    positions: tuple[int, ...]
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Validation(AgentReply):
    """Verdict on whether passages suffice to answer a query; `missing` describes what they lack."""

    sufficient: bool
    missing: str = ""
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Reflection(AgentReply):
    """Verdict on an answer; `critique` describes its fault."""

    accepted: bool
    critique: str = ""


@dataclass(frozen=True, slots=True)
class Characterised(AgentReply):
    """Kind of a question, with the cost of determining it."""

    profile: Characterisation


@dataclass(frozen=True, slots=True)
class Orchestration(AgentReply):
    """Topology that satisfies the rules of `topology_replies`. `warnings` list omissions and assumptions."""

    topology: Topology
    warnings: tuple[str, ...] = ()
    fallback: bool = False  # no reply had a topology that can run: it is one search and one answer


class Selector(Protocol):
    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Choose the passages that are relevant to a query.

        Args:
            query: The question that the passages are for.
            passages: The candidates.
        """
        ...


class Validator(Protocol):
    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation:
        """Judge whether passages suffice to answer a query.

        Args:
            query: The question that the passages are for.
            passages: All of the evidence.
        """
        ...


class Reflector(Protocol):
    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Review an answer.

        Args:
            query: The question.
            answer: The answer.
            passages: Passages behind the answer; empty if it was drawn from earlier answers.
        """
        ...


class Lesson(Protocol):
    """Entry of the experience library, in the form that an orchestrator needs."""

    @property
    def id(self) -> int: ...

    @property
    def insight(self) -> str: ...


class Orchestrator(Protocol):
    async def characterise(self, question: str) -> Characterised: ...

    async def orchestrate(self, question: str, experience: Sequence[Lesson], sample: int = 0) -> Orchestration:
        """Return a complete topology.

        Args:
            question: The question.
            experience: Entries of the library for such questions.
            sample: 0 for the best topology; other numbers give different ones, for comparisons within a group.
        """
        ...

    async def revise(self, question: str, topology: Topology, error: str) -> Orchestration:
        """Return another topology after a topology failed.

        Args:
            question: The question.
            topology: The topology that failed.
            error: How it failed.

        Raises:
            BadOutputError: No other topology is left.
        """
        ...


@dataclass(frozen=True, slots=True)
class HeraTeam:
    """HERA's agents and their orchestrator. The `concluder` answers from facts in its query or from passages; the
    `coach` learns from trajectories.
    """

    orchestrator: Orchestrator
    decomposer: Decomposer
    answerer: Answerer
    rewriter: Rewriter
    selector: Selector
    validator: Validator
    reflector: Reflector
    concluder: Answerer
    coach: Coach | None = None

"""HERA's agents: what each of them is asked and replies, and the team that they make."""

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
    """The passages that bear on a query, by position counted from 0, best first."""

    positions: tuple[int, ...]
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Validation(AgentReply):
    """A verdict on whether passages suffice to answer a query; `missing` says what they lack."""

    sufficient: bool
    missing: str = ""
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Reflection(AgentReply):
    """A verdict on an answer; `critique` says what is wrong with it."""

    accepted: bool
    critique: str = ""


@dataclass(frozen=True, slots=True)
class Characterised(AgentReply):
    """The kind of a question, and the cost of finding it out."""

    profile: Characterisation


@dataclass(frozen=True, slots=True)
class Orchestration(AgentReply):
    """A topology that keeps the rules of `topology_replies`. `warnings`: what of the reply was left out or assumed."""

    topology: Topology
    warnings: tuple[str, ...] = ()
    fallback: bool = False  # no reply held a topology that can run: one search and one answer


class Selector(Protocol):
    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Choose the passages that bear on a query.

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
            query: What was asked.
            answer: The answer.
            passages: What it was drawn from; empty where that were earlier answers.
        """
        ...


class Lesson(Protocol):
    """The part that an orchestrator needs of an entry of the experience library."""

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
            sample: 0 for the best guess; others differ, for comparing groups.
        """
        ...

    async def revise(self, question: str, topology: Topology, error: str) -> Orchestration:
        """Return another topology after one that did not run to an answer.

        Args:
            question: The question.
            topology: The one that failed.
            error: How it failed.

        Raises:
            BadOutputError: none is left.
        """
        ...


@dataclass(frozen=True, slots=True)
class HeraTeam:
    """HERA's agents and their orchestrator. `concluder` answers from facts in its query, or from passages; the `coach`
    learns from trajectories."""

    orchestrator: Orchestrator
    decomposer: Decomposer
    answerer: Answerer
    rewriter: Rewriter
    selector: Selector
    validator: Validator
    reflector: Reflector
    concluder: Answerer
    coach: Coach | None = None

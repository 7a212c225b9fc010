"""The coach: the role that looks at trajectories and says how the team can do better (HERA's reflecting half of
the orchestrator, algorithms 2, 3 and 5). An LLM implements it by prompts (`pyrag.methods.hera.coach.agent`), the
embedded engine by code as far as it can. It raises `ServiceError` where its model cannot be used, and `BadOutputError`
where it cannot be made to reply in form, or what it is shown does not fit its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import Agent, Characterisation, Topology

Operation = Literal["ADD", "MERGE", "PRUNE", "KEEP"]
Axis = Literal["efficiency", "thoroughness", "risk_sensitivity", "error_correction", "heuristic_injection"]

OPERATIONS: tuple[Operation, ...] = get_args(Operation)
AXES: tuple[Axis, ...] = get_args(Axis)


@dataclass(frozen=True, slots=True)
class Settlement:
    """The fate of a new insight: `entries` are ids of the library's, `insight` the text of a merged entry."""

    operation: Operation
    entries: tuple[int, ...] = ()
    insight: str = ""


@dataclass(frozen=True, slots=True)
class Guidance:
    """The lessons of an agent, most important first: operational rules Δρ^op and behavioural principles Δρ^bp (§3.4).

    Both are single sentences.
    """

    rules: tuple[str, ...] = ()
    principles: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self.rules, *self.principles)

    @property
    def characters(self) -> int:
        return sum(map(len, self.lines))


@dataclass(frozen=True, slots=True)
class Seen:
    """A trajectory of a group as a coach sees it: `text` says what happened, and how it scored."""

    topology: Topology
    f1: float
    text: str


class Coach(Protocol):
    """Its methods raise `BadOutputError` where no reply was in form, or a request exceeds the model's window."""

    async def reflect(self, profile: Characterisation, group: Sequence[Seen]) -> tuple[str, ...]:
        """Return insights from comparing a group's trajectories, best first (ReflectOnGroup).

        Args:
            profile: The kind of the question.
            group: Trajectories of that question.
        """
        ...

    async def settle(self, insight: str, entries: Sequence[Experience]) -> Settlement:
        """Decide whether a new insight completes, contradicts or repeats entries like it (Complementary, Conflicts).

        Args:
            insight: The new insight.
            entries: Entries of the library that are like it.
        """
        ...

    async def blame(self, trajectory: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Return the agents that caused a failure (IdentifyFailedAgents).

        Args:
            trajectory: What happened, as text.
            agents: Those that took part.
        """
        ...

    async def vary(self, agent: Agent, axis: Axis, failures: Sequence[str]) -> tuple[str, ...]:
        """Return additional rules that move an agent's behaviour along an axis (GenerateVariant).

        Args:
            agent: The agent.
            axis: The direction.
            failures: Trajectories that it failed in, as text.
        """
        ...

    async def distil(self, agent: Agent, failures: Sequence[str], results: Sequence[str]) -> Guidance:
        """Return additions to an agent's guidance (ExtractOperationalRules, ExtractBehavioralPrinciples).

        Args:
            agent: The agent.
            failures: Trajectories that it failed in, as text.
            results: What its variants came to, best first.
        """
        ...

    async def shorten(self, agent: Agent, guidance: Guidance, characters: int) -> Guidance:
        """Return the same guidance in fewer characters (Π_C).

        Args:
            agent: The agent.
            guidance: Its guidance.
            characters: Maximum length of all lines together.
        """
        ...

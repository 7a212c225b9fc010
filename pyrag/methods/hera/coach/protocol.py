"""Coach: the role that studies trajectories and advises how the team can do better.

It is the reflecting half of HERA's orchestrator (algorithms 2, 3 and 5). `pyrag.methods.hera.coach.agent` implements it
with prompts, the embedded engine with code as far as that is possible. A coach raises `ServiceError` if its model
cannot be used, and `BadOutputError` if no reply has the required form or the request does not fit the model's window.
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
    """Decision about a new insight. `entries` are ids of library entries, `insight` is the text of a merged entry."""

    operation: Operation
    entries: tuple[int, ...] = ()
    insight: str = ""


@dataclass(frozen=True, slots=True)
class Guidance:
    """Lessons for an agent, most important first, in single sentences.

    They are operational rules (Δρ^op) and behavioural principles (Δρ^bp) of §3.4.
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
    """Trajectory in the form shown to a coach. `text` describes the course and the score."""

    topology: Topology
    f1: float
    text: str


class Coach(Protocol):
    """Role of the coach. All methods raise `BadOutputError` for unusable replies and requests that are too long."""

    async def reflect(self, profile: Characterisation, group: Sequence[Seen]) -> tuple[str, ...]:
        """Return insights from comparing a group's trajectories, best first (ReflectOnGroup).

        Args:
            profile: The kind of question.
            group: Trajectories of that question.
        """
        ...

    async def settle(self, insight: str, entries: Sequence[Experience]) -> Settlement:
        """Decide whether a new insight complements, contradicts or repeats similar entries (Complementary, Conflicts).

        Args:
            insight: The new insight.
            entries: Similar entries of the library.
        """
        ...

    async def blame(self, trajectory: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Return the agents that caused a failure (IdentifyFailedAgents).

        Args:
            trajectory: What happened, as text.
            agents: Agents that took part.
        """
        ...

    async def vary(self, agent: Agent, axis: Axis, failures: Sequence[str]) -> tuple[str, ...]:
        """Return additional rules that move an agent's behaviour along an axis (GenerateVariant).

        Args:
            agent: The agent.
            axis: The direction of the change.
            failures: Trajectories in which the agent failed, as text.
        """
        ...

    async def distil(self, agent: Agent, failures: Sequence[str], results: Sequence[str]) -> Guidance:
        """Return additions to an agent's guidance (ExtractOperationalRules, ExtractBehavioralPrinciples).

        Args:
            agent: The agent.
            failures: Trajectories in which the agent failed, as text.
            results: Results of the agent's variants, best first.
        """
        ...

    async def shorten(self, agent: Agent, guidance: Guidance, characters: int) -> Guidance:
        """Return the same guidance in fewer characters (Π_C).

        Args:
            agent: The agent.
            guidance: Guidance of the agent.
            characters: Maximum length of all lines together.
        """
        ...

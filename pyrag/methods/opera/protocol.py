"""OPERA's additions to agents and trace: goals, the agent that plans by them, and the state that a trace keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyrag.agents.goals.goal import Goal
from pyrag.agents.protocol import AgentReply, Answerer
from pyrag.trace.extensions import Extended, Extension


@dataclass(frozen=True, slots=True)
class GoalPlan(AgentReply):
    """Sub-goals in order, the last one giving the answer; they keep the rules of `pyrag.methods.opera.goals`.

    `warnings` say what of the reply was left out or assumed.
    """

    goals: tuple[Goal, ...]
    rationale: str = ""
    warnings: tuple[str, ...] = ()
    fallback: bool = False  # no reply held a plan that can run: the question is its only goal
    composed: bool = False  # a language model composes the final answer from the answers of all goals


class GoalPlanner(Protocol):
    async def plan(self, question: str) -> GoalPlan:
        """Sub-goals of the question; one that a single search settles stays a single goal."""
        ...

    async def revise(self, question: str, goals: Sequence[Goal], error: str) -> GoalPlan:
        """Return another plan after one that did not run to an answer.

        Args:
            question: The question.
            goals: The plan that failed.
            error: How it failed.

        Raises:
            BadOutputError: none is left.
        """
        ...


@dataclass(frozen=True, slots=True)
class OperaAgents:
    """OPERA's own agents. The `analyst` is an answerer that also judges whether the evidence suffices; one with a
    method `about(question)` is told the user's question, beside the queries that lead to it. Without one, the answerer
    reads.
    """

    goal_planner: GoalPlanner
    analyst: Answerer | None = None


@dataclass(frozen=True, slots=True)
class OperaState:
    """The part of a trace that is OPERA's: the goals of the program that ran last."""

    goals: tuple[Goal, ...] = ()


STATE = Extension("opera", OperaState)


def planned_goals(trace: Extended) -> tuple[Goal, ...]:
    """Return the goals of the program that ran last; empty for a method that does not plan by goals."""
    state = STATE.read(trace)
    return state.goals if state else ()

"""OPERA's additions to agents and trace: goals, the agent that plans with them, and the state stored in a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyrag.agents.goals.goal import Goal
from pyrag.agents.protocol import AgentReply, Answerer
from pyrag.trace.extensions import Extended, Extension


@dataclass(frozen=True, slots=True)
class GoalPlan(AgentReply):
    """Plan: sub-goals in order; the last one gives the answer. It satisfies the rules of `pyrag.methods.opera.goals`.

    `warnings` list omissions and assumptions.
    """

    goals: tuple[Goal, ...]
    rationale: str = ""
    warnings: tuple[str, ...] = ()
    fallback: bool = False  # no reply had a plan that can run: the question is the only goal
    composed: bool = False  # a language model composes the final answer from the answers of all goals


class GoalPlanner(Protocol):
    async def plan(self, question: str) -> GoalPlan:
        """Return the sub-goals of a question; a single goal if one search suffices."""
        ...

    async def revise(self, question: str, goals: Sequence[Goal], error: str) -> GoalPlan:
        """Return another plan after a plan failed.

        Args:
            question: The question.
            goals: The plan that failed.
            error: How it failed.

        Raises:
            BadOutputError: No other plan is left.
        """
        ...


@dataclass(frozen=True, slots=True)
class OperaAgents:
    """OPERA's own agents. The `analyst` answers and also judges whether the evidence suffices. If it has a method
    `about(question)`, it is given the user's question in addition to the queries of the steps. Without an analyst, the
    answerer reads the passages.
    """

    goal_planner: GoalPlanner
    analyst: Answerer | None = None


@dataclass(frozen=True, slots=True)
class OperaState:
    """OPERA's part of a trace: the goals of the program that ran last."""

    goals: tuple[Goal, ...] = ()


STATE = Extension("opera", OperaState)


def planned_goals(trace: Extended) -> tuple[Goal, ...]:
    """Return the goals of the program that ran last; empty for a method that does not plan by goals."""
    state = STATE.read(trace)
    return state.goals if state else ()

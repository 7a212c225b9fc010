"""Rewards of OPERA's three agents (section 3, equations 7, 9 and 10), computed by the runtime.

A completion replaces the trained agent's reply, as in `pyrag_rl.rewards.pyrag_agents`; `pyrag_rl.mapgrpo.rewards`
computes the weighted sum of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyrag.agents.goals.goal import Goal
from pyrag.errors import BadOutputError, DataError
from pyrag.methods.opera.agents import opera_agents
from pyrag.methods.opera.protocol import GoalPlan, OperaAgents
from pyrag.trace.model import Trace
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.mapgrpo.plans import read_plan
from pyrag_rl.mapgrpo.rewards import (
    AnalysisWeights,
    PlanWeights,
    RewriteWeights,
    analysis_score,
    plan_score,
    read_rewrite,
    rewrite_score,
    weights_of,
)
from pyrag_rl.rewards.environment import RewardEnvironment
from pyrag_rl.rewards.pyrag_agents import reason_of
from pyrag_rl.rewards.score import OUTSIDE, Score


@dataclass(frozen=True, slots=True)
class GivenGoals:
    """Plan agent with a fixed plan, which it never revises."""

    goals: Sequence[Goal]
    composed: bool = False  # see `GoalPlan`

    async def plan(self, question: str) -> GoalPlan:
        """Return the fixed plan."""
        return GoalPlan(tuple(self.goals), composed=self.composed)

    async def revise(self, question: str, goals: Sequence[Goal], error: str) -> GoalPlan:
        """Raise `BadOutputError`, since the plan itself is scored.

        Args:
            question: Ignored.
            goals: Ignored.
            error: Ignored.
        """
        raise BadOutputError("the plan is what is scored: there is no other one")


async def plan(row: TrainRow, completion: str, environment: RewardEnvironment) -> Score:
    """Score OPERA's Plan agent by equation 7: the plan runs with the frozen agents and is not revised.

    Args:
        row: Row of the question.
        completion: The agent's reply.
        environment: Frozen agents, retriever, sandbox and settings of the run.
    """
    read = read_plan(completion, row.question)
    trace = await run_goals(row.question, read.goals, environment) if read.goals else None
    error = reason_of(trace) if trace else ""
    if error in OUTSIDE:
        return Score(error=error, trace=trace, detail=trace.error.message if trace and trace.error else "")
    weights = weights_of(PlanWeights, environment.config.role_weights)
    score = plan_score(
        read, row.question, row.answers, trace, hops=row.hops, source=row.source, weights=weights
    )  # fmt: skip
    return replace(score, error=score.error or error, calls=float(trace.usage.model_calls if trace else 0))


async def run_goals(question: str, goals: Sequence[Goal], environment: RewardEnvironment) -> Trace:
    """Run a plan in the runtime and return its trace.

    Args:
        question: The user's question.
        goals: Goals of the plan.
        environment: Frozen agents, retriever and sandbox.
    """
    known = environment.engines.agents
    team = known.team(opera_agents)
    analyst = team.analyst if team else None
    agents = known.with_team(opera_agents, OperaAgents(GivenGoals(goals, analyst is not None), analyst))
    return await environment.ask(question, agents, method="opera", repairs=0)


async def answer(row: TrainRow, completion: str, environment: RewardEnvironment) -> Score:
    """Score the Analysis-Answer agent by equation 9.

    Args:
        row: Row of the question.
        completion: The agent's reply.
        environment: Frozen agents, retriever, sandbox and settings of the run.

    Raises:
        DataError: The row does not state whether its documents suffice.
    """
    if row.sufficient is None or row.documents is None:
        raise DataError("the row does not say whether its documents suffice: build it with pyrag train data analysis")
    return analysis_score(
        completion,
        sufficient=row.sufficient,
        golds=row.answers,
        documents=len(row.documents),
        source=row.source,
        weights=weights_of(AnalysisWeights, environment.config.role_weights),
    )


async def rewrite(row: TrainRow, completion: str, environment: RewardEnvironment) -> Score:
    """Score the Rewrite agent by equation 10, after searching for its query.

    Args:
        row: Row of the question.
        completion: The agent's reply.
        environment: Frozen agents, retriever, sandbox and settings of the run.

    Raises:
        ServiceError: The retriever cannot be used.
    """
    k = environment.config.ndcg_k
    query, error = read_rewrite(completion, row.tried)
    passages = await environment.search(query, k) if query else []
    weights = weights_of(RewriteWeights, environment.config.role_weights)
    ranked = [passage.id for passage in passages]
    return rewrite_score(completion, ranked, row.supporting, k=k, error=error, weights=weights)

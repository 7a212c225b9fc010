"""Goal planner over an engine's rules, which needs no language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.goals.goal import Goal
from pyrag.agents.goals.rules import QuestionRules
from pyrag.errors import BadOutputError
from pyrag.methods.opera.protocol import GoalPlan


@dataclass(frozen=True, slots=True)
class RuleGoalPlanner:
    """Goal planner whose plans are the readings of a question by rules."""

    rules: QuestionRules

    async def plan(self, question: str) -> GoalPlan:
        """Return the goals of the best reading."""
        reading = next(self.rules.readings(question))
        return GoalPlan(reading.goals, note=reading.note, doubt=reading.doubt)

    async def revise(self, question: str, goals: Sequence[Goal], error: str) -> GoalPlan:
        """Return the goals of the next reading.

        Args:
            question: The question.
            goals: The plan that failed. After a plan that is not a reading, the best reading is returned.
            error: Not used, since the order of the readings is fixed.

        Raises:
            BadOutputError: No other reading is left.
        """
        plans = list(dict.fromkeys(reading.goals for reading in self.rules.readings(question)))
        position = plans.index(tuple(goals)) if tuple(goals) in plans else -1
        if position + 1 >= len(plans):
            raise BadOutputError("the embedded planner has no further plan for this question: ask it in simpler words")
        return GoalPlan(plans[position + 1], note="the plan failed, so another reading is tried")

"""The embedded planner's reading of a question as sub-goals, for methods that plan by goals.

The reading is the planner's own; only the form differs. What a program computes from two values (which is earlier,
whether they are the same) becomes a last goal over the answers, with the same expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pyrag.agents.python_text import literal
from pyrag.embedded.planner.meaning import (
    Chain,
    Choice,
    Difference,
    Entity,
    Gather,
    Meaning,
    Node,
    Same,
    Shared,
    Step,
    Verdict,
    Whole,
)
from pyrag.embedded.planner.planner import is_doubt, note_of, read_question
from pyrag.embedded.planner.program_text import computed
from pyrag.embedded.planner.readings import other_readings
from pyrag.embedded.planner.wording import fill, name, search_name
from pyrag.errors import BadOutputError
from pyrag.methods.opera.goals import EVIDENCE
from pyrag.methods.opera.protocol import Goal, GoalPlan


class EmbeddedGoalPlanner:
    async def plan(self, question: str) -> GoalPlan:
        meaning = read_question(question)
        note = note_of(question, meaning)
        return GoalPlan(goals_of(question, meaning), note=note, doubt=is_doubt(note))

    async def revise(self, question: str, goals: Sequence[Goal], error: str) -> GoalPlan:
        """Return the next reading after the one that failed; the first after a plan that is none of this planner's.

        Args: those of `GoalPlanner.revise`.

        Raises:
            BadOutputError: none is left.
        """
        plans = list(dict.fromkeys(_plans(question)))
        position = plans.index(tuple(goals)) if tuple(goals) in plans else -1
        if position + 1 >= len(plans):
            raise BadOutputError("the embedded planner has no further plan for this question: ask it in simpler words")
        return GoalPlan(plans[position + 1], note="the plan failed, so another reading is tried")


def _plans(question: str) -> Iterator[tuple[Goal, ...]]:
    meaning = read_question(question)
    yield goals_of(question, meaning)
    yield from (goals_of(question, other) for other in other_readings(question, meaning))
    yield goals_of(question, Whole())


def goals_of(question: str, meaning: Meaning) -> tuple[Goal, ...]:
    """Return one goal for each step of the reading, in the order of the program's steps.

    Args:
        question: The question; it is the only goal where the reading has no steps.
        meaning: Its reading.
    """
    made = _Goals()
    match meaning:
        case Chain(Step() as node):
            made.value(node)
        case Choice():
            values, options = [], []
            for branch, (option, group) in enumerate(zip(meaning.options, meaning.values, strict=True), start=1):
                values += [made.value(part, branch) for part in group]
                options.append(made.value(option, branch))
            made.conclude(question, computed(meaning, values, options))
        case Verdict() | Same() | Shared() | Difference():
            values = [made.value(value, branch) for branch, value in enumerate(meaning.values, start=1)]
            made.conclude(question, computed(meaning, values))
        case Gather(names):
            for entity in names:
                made.add(Goal(0, f"What is known about {name(entity)}?", EVIDENCE, search=search_name(entity)))
            made.conclude(question)
    return tuple(made.goals) or (Goal(1, question, search=question),)


class _Goals:
    def __init__(self) -> None:
        self.goals: list[Goal] = []
        self._steps: dict[tuple[int, Step], Goal] = {}  # by branch: a step used twice in a branch is one goal

    def value(self, node: Node, branch: int = 0) -> str:
        """A node's value as an expression over the goals: a name, or a placeholder for the goal that finds it."""
        return literal(node.text) if isinstance(node, Entity) else placeholder(self._found(node, branch))

    def _found(self, step: Step, branch: int) -> Goal:
        """The goal that finds a step's value, after those that it needs."""
        if (branch, step) not in self._steps:
            needed = [self._found(arg, branch) if isinstance(arg, Step) else arg for arg in step.args]
            self._steps[branch, step] = self.add(_goal(step, needed))
        return self._steps[branch, step]

    def add(self, goal: Goal) -> Goal:
        numbered = replace(goal, step=len(self.goals) + 1)
        self.goals.append(numbered)
        return numbered

    def conclude(self, question: str, compute: str = "") -> None:
        self.add(Goal(0, question, "answer", tuple(goal.step for goal in self.goals), compute=compute))


def placeholder(goal: Goal) -> str:
    return f"[{goal.type} from step {goal.step}]"


def _goal(step: Step, needed: Sequence[Goal | Entity]) -> Goal:
    def filled(template: str, named: Callable[[Entity], str]) -> str:
        return fill(template, [named(one) if isinstance(one, Entity) else placeholder(one) for one in needed])

    return Goal(
        0,
        filled(step.question, name),
        step.variable.replace("_", " "),
        tuple(one.step for one in needed if isinstance(one, Goal)),
        filled(step.query, search_name),
    )

"""The planner's readings of a question as goals, for methods that plan by goals.

Each step of a reading becomes a goal. A computation over two values (which is earlier, whether they are the same)
becomes a last goal that computes its answer from the other goals' answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pyrag.agents.goals.goal import EVIDENCE, Goal, placeholder
from pyrag.agents.goals.rules import QuestionReading, Shape
from pyrag.agents.python_text import literal
from pyrag.embedded.planner.meaning import (
    Chain,
    Choice,
    Difference,
    Entity,
    Gather,
    Meaning,
    Node,
    RelationStep,
    Same,
    Shared,
    Verdict,
    Whole,
)
from pyrag.embedded.planner.planner import is_doubt, note_of, read_question
from pyrag.embedded.planner.program_text import computed
from pyrag.embedded.planner.question_readings import other_readings
from pyrag.embedded.planner.wording import fill, name, search_name


def readings_of(question: str) -> Iterator[QuestionReading]:
    """Yield the planner's first reading as goals, then its other readings, then the question as its only goal."""
    meaning = read_question(question)
    note = note_of(question, meaning)
    yield QuestionReading(goals_of(question, meaning), _shape_of(meaning), note, is_doubt(note))
    for other in (*other_readings(question, meaning), Whole()):
        yield QuestionReading(goals_of(question, other), _shape_of(other))


def _shape_of(meaning: Meaning) -> Shape:
    """Return the shape of a reading, such as "chain" or "comparison"."""
    match meaning:
        case Choice() | Verdict() | Same():
            return "comparison"
        case Difference():
            return "difference"
        case Shared(by="period"):
            return "period"
        case Shared():
            return "shared"
        case Gather():
            return "gathering"
        case Chain():
            return "chain"
        case Whole():
            return "whole"


def goals_of(question: str, meaning: Meaning) -> tuple[Goal, ...]:
    """Return the goals of a reading: one per step, in the program's order, plus one for the computation.

    Args:
        question: The question. It is the only goal if the reading has no steps.
        meaning: Reading of the question.
    """
    goals = _Goals()
    match meaning:
        case Chain(RelationStep() as node):
            goals.value(node)
        case Choice():
            values, options = [], []
            for branch, (option, group) in enumerate(zip(meaning.options, meaning.values, strict=True), start=1):
                values += [goals.value(part, branch) for part in group]
                options.append(goals.value(option, branch))
            goals.conclude(question, computed(meaning, values, options))
        case Verdict() | Same() | Shared() | Difference():
            values = [goals.value(value, branch) for branch, value in enumerate(meaning.values, start=1)]
            goals.conclude(question, computed(meaning, values))
        case Gather(names):
            for entity in names:
                goals.add(Goal(0, f"What is known about {name(entity)}?", EVIDENCE, search=search_name(entity)))
            goals.conclude(question)
    return tuple(goals.goals) or (Goal(1, question, search=question),)


class _Goals:
    """Goals collected so far for a reading."""

    def __init__(self) -> None:
        self.goals: list[Goal] = []
        self._steps: dict[tuple[int, RelationStep], Goal] = {}  # a step used twice in a branch is a single goal

    def value(self, node: Node, branch: int = 0) -> str:
        """Return the expression for a node's value: a name as a literal, or the placeholder of the goal that finds it.

        Args:
            node: Node of the reading.
            branch: Number of the branch that the node belongs to. Zero if the reading has no branches.
        """
        return literal(node.text) if isinstance(node, Entity) else placeholder(self._goal_of(node, branch))

    def _goal_of(self, step: RelationStep, branch: int) -> Goal:
        """Return the goal that finds a step's value, after adding the goals that it depends on."""
        if (branch, step) not in self._steps:
            needed = [self._goal_of(arg, branch) if isinstance(arg, RelationStep) else arg for arg in step.args]
            self._steps[branch, step] = self.add(_goal(step, needed))
        return self._steps[branch, step]

    def add(self, goal: Goal) -> Goal:
        """Add a goal and return it with its number."""
        numbered = replace(goal, step=len(self.goals) + 1)
        self.goals.append(numbered)
        return numbered

    def conclude(self, question: str, compute: str = "") -> None:
        """Add a goal that concludes the answer from all goals so far.

        Args:
            question: The question.
            compute: Expression that computes the answer. Empty if an agent answers instead.
        """
        self.add(Goal(0, question, "answer", tuple(goal.step for goal in self.goals), compute=compute))


def _goal(step: RelationStep, needed: Sequence[Goal | Entity]) -> Goal:
    """Return the goal of a step.

    Args:
        step: Step of the reading.
        needed: Names and goals that fill the step's slots.
    """

    def filled_with(template: str, name_of: Callable[[Entity], str]) -> str:
        return fill(template, [name_of(item) if isinstance(item, Entity) else placeholder(item) for item in needed])

    return Goal(
        0,
        filled_with(step.question, name),
        step.variable.replace("_", " "),
        tuple(item.step for item in needed if isinstance(item, Goal)),
        filled_with(step.query, search_name),
    )

"""The planner's readings of a question as sub-goals, for methods that plan by goals.

The reading is the embedded planner's own. A computation over two values (which is earlier, whether they are the same)
becomes a last goal over the answers, with the same expression.
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
    """Yield the planner's reading, its other readings, and the question as its only goal."""
    meaning = read_question(question)
    note = note_of(question, meaning)
    yield QuestionReading(goals_of(question, meaning), _shape_of(meaning), note, is_doubt(note))
    for other in (*other_readings(question, meaning), Whole()):
        yield QuestionReading(goals_of(question, other), _shape_of(other))


def _shape_of(meaning: Meaning) -> Shape:
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
    """Return one goal per step of a reading, in the order of the program's steps.

    Args:
        question: The question; it is the only goal if the reading has no steps.
        meaning: Reading of the question.
    """
    made = _Goals()
    match meaning:
        case Chain(RelationStep() as node):
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
        self._steps: dict[tuple[int, RelationStep], Goal] = {}  # by branch, where a step that is used twice is one goal

    def value(self, node: Node, branch: int = 0) -> str:
        """Return a node's value as an expression over the goals: a name, or the placeholder of the goal that finds it.

        Args:
            node: Node of the reading.
            branch: Number of the branch that the node belongs to.
        """
        return literal(node.text) if isinstance(node, Entity) else placeholder(self._goal_of(node, branch))

    def _goal_of(self, step: RelationStep, branch: int) -> Goal:
        """Return the goal that finds a step's value, after adding the goals that it needs."""
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
        """Add a goal that draws the answer from all goals.

        Args:
            question: The question.
            compute: Expression that computes the answer; empty if there is none.
        """
        self.add(Goal(0, question, "answer", tuple(goal.step for goal in self.goals), compute=compute))


def _goal(step: RelationStep, needed: Sequence[Goal | Entity]) -> Goal:
    def filled(template: str, named: Callable[[Entity], str]) -> str:
        return fill(template, [named(item) if isinstance(item, Entity) else placeholder(item) for item in needed])

    return Goal(
        0,
        filled(step.question, name),
        step.variable.replace("_", " "),
        tuple(item.step for item in needed if isinstance(item, Goal)),
        filled(step.query, search_name),
    )

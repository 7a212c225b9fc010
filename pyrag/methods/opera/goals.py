"""Parser of the Plan agent's reply: a plan of sub-goals, and what is wrong with it.

    [{"step": 1, "goal": "Which company acquired WhatsApp?", "type": "company", "needs": []},
     {"step": 2, "goal": "Where is [company from step 1] headquartered?", "type": "city", "needs": [1]}]

A plan is read leniently (`parsing_steps`, `goal_fields`, `step_references`): the step number in a placeholder decides,
`needs` is derived from placeholders, and a field that cannot be read is left out with a warning. Refused is only what
cannot run: no goals, and a reference to a step that is missing, comes later, or is the goal itself. The last goal gives
the answer; answers that nothing uses are drawn together by a last goal, the question. A goal with `"search": false`,
or one that only compares what is known, is drawn from the answers it needs, by a Python expression if it has one in
"compute"; a string in "search" is what is searched for. A goal of type "evidence" only collects passages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrag.agents.goals.expressions import NAMED, check_expression
from pyrag.agents.goals.goal import EVIDENCE, PLACEHOLDER, Goal
from pyrag.agents.goals.goal_types import concludes, is_final, kind_of, mentions, same_type
from pyrag.errors import BadOutputError
from pyrag.methods.opera.goal_fields import WrittenGoal, written_goal_of
from pyrag.methods.opera.goal_replies import listed_goals
from pyrag.methods.opera.step_references import ANSWER, Steps, normalised, normalised_code

MAX_GOALS = 12
_QUOTABLE = re.compile(rf"(?P<quote>[\"']?){PLACEHOLDER.pattern}(?P=quote)", re.IGNORECASE)
_NEARLY = re.compile(r"\[(?=[^\[\]]*+\])[^\[\]]*\bstep\b[^\[\]]*\]", re.IGNORECASE)
_OF_A_STEP = re.compile(r"\b(?:from|of|in|to|at|by) (?:the )?steps?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GoalReading:
    """A plan that can run. `warnings` say what was left out or assumed."""

    goals: tuple[Goal, ...]
    rationale: str = ""
    warnings: tuple[str, ...] = ()


def read_goals(text: str, question: str = "") -> GoalReading:
    """The plan of a reply.

    Args:
        text: the reply of a Plan agent.
        question: what is planned for; the goal that draws together answers that nothing uses.

    Raises:
        BadOutputError: it holds no plan that can run; says what is wrong first.
    """
    listed, said = listed_goals(text)
    return replace(checked(listed, question), rationale=said)


def checked(listed: Sequence[Any], question: str = "") -> GoalReading:
    """Return the plan that a list of steps is.

    Args:
        listed: Steps as any JSON values; empty ones are skipped.
        question: The question, for goals that repeat it.

    Raises:
        BadOutputError: it cannot run, is empty, or has more than `MAX_GOALS` goals.
    """
    found = (written_goal_of(value, place) for place, value in enumerate(listed[: MAX_GOALS + 1], start=1))
    written = [one for one in found if one is not None]
    if not written:
        raise BadOutputError("the list of goals is empty")
    if len(written) > MAX_GOALS:
        raise BadOutputError(f"it holds {len(listed)} goals; {MAX_GOALS} are the most allowed")
    return _Plan(written, question).read()


class _Plan:
    """Builds goals from written ones, one rule after another, and gathers warnings."""

    def __init__(self, written: list[WrittenGoal], question: str) -> None:
        self._written, self._numbers = _numbered(written)
        self._question, self._warnings = question, list[str]()
        self._names = {one.name: step for step, one in enumerate(self._written, start=1) if one.name}
        self._types = {step: one.type for step, one in enumerate(self._written, start=1)}

    def read(self) -> GoalReading:
        goals = [self._goal(step, one) for step, one in enumerate(self._written, start=1)]
        goals = _typed(goals)
        goals = self._final(self._linked(goals))
        goals = [self._searching(goal, goals) for goal in goals]
        goals = self._concluded(goals)
        for goal in goals:
            if dangling := [one for one in malformed(texts_of(goal)) if _OF_A_STEP.search(one)]:
                raise BadOutputError(
                    f"step {goal.step} has {dangling[0]}, which is no placeholder: write [TYPE from step N], N a number"
                )
        self._warnings += type_conflicts(goals)
        return GoalReading(tuple(goals), warnings=tuple(self._warnings))

    def _warn(self, step: int, message: str) -> None:
        self._warnings.append(f"goal {step} of the plan: {message}")

    def _goal(self, step: int, one: WrittenGoal) -> Goal:
        own = frozenset(self._numbers.get(number, number) for number in one.needs)
        known = Steps(step, self._numbers, self._names, self._types, own)
        text = normalised(one.text, known)
        search = normalised(one.search, known) if isinstance(one.search, str) else text
        compute = self._compute(step, normalised_code(one.compute, known))
        for fault in one.faults:
            self._warn(step, f"{fault}: left out")
        used = placeholders(f"{text} {search} {compute}")
        for needed in sorted(used):
            _check_reference(needed, step, len(self._written))
        needs = used | self._needs(step, one, used)
        drawn = one.search is False or bool(compute and needs)
        if drawn and not needs:
            self._warn(step, "it needs no earlier answer, so it is searched for")
        return Goal(step, text, one.type, tuple(sorted(needs)), "" if drawn and needs else search, compute)

    def _compute(self, step: int, compute: str) -> str:
        if not compute:
            return ""
        try:
            check_expression(in_code(compute, lambda _: NAMED), f"step {step}")
        except BadOutputError as error:
            self._warn(step, f"{error}: left out")
            return ""
        return compute

    def _needs(self, step: int, one: WrittenGoal, used: set[int]) -> set[int]:
        """The steps that a goal says it needs. Where its placeholders say it too, a wrong number is left out."""
        needs = {self._names[name] for name in one.named if name in self._names}
        for number in one.needs:
            needed = self._numbers.get(number, number)
            if not used:
                _check_reference(needed, step, len(self._written))
            if 0 < needed < step:
                needs.add(needed)
            else:
                self._warn(step, f"it says that it needs step {number}, which cannot be: left out")
        return {needed for needed in needs if needed < step}

    def _linked(self, goals: list[Goal]) -> list[Goal]:
        """With an answer that nothing uses given to the next goal that refers to nothing but speaks of such a thing."""
        for goal in goals[:-1]:
            if any(goal.step in one.needs for one in goals):
                continue
            kind = kind_of(goal.type, goal.text)
            for one in goals[goal.step :]:
                if not one.needs and mentions(one.text, kind):
                    goals[one.step - 1] = replace(one, needs=(goal.step,))
                    self._warn(one.step, f"it is taken to mean the answer of step {goal.step}")
                    break
        return goals

    def _final(self, goals: list[Goal]) -> list[Goal]:
        """With the question in the place of a last goal that only asks for the answer; without it, where one is it."""
        last = goals[-1]
        if len(goals) < 2 or not is_final(last.text) or last.compute:
            return goals
        if last.needs == (last.step - 1,) and goals[-2].type != EVIDENCE:
            return goals[:-1]
        text = self._question or last.text
        return [*goals[:-1], replace(last, text=text, search="" if last.needs else text)]

    def _searching(self, goal: Goal, goals: Sequence[Goal]) -> Goal:
        """A goal that says where the answers stand that it searches with, or that searches for nothing."""
        if not goal.search or not goal.needs:
            return goal
        known = [goals[step - 1] for step in goal.needs]
        where = placeholders(texts_of(goal))
        kinds = [kind_of(one.type, one.text) for one in known]
        if goal.search == goal.text and concludes(goal.text, kinds, says_where=bool(where)):
            return replace(goal, search="")
        idle = [one for one in known if one.step not in where and one.type != EVIDENCE]
        if not idle:
            return goal
        behind = "; ".join(f"[{one.type} from step {one.step}]" for one in idle)
        text = f"{goal.text} ({behind})"
        return replace(goal, text=text, search=text if goal.search == goal.text else f"{goal.search} {behind}")

    def _concluded(self, goals: list[Goal]) -> list[Goal]:
        """With a last goal, the question, where an answer is not used otherwise."""
        needed = {one for goal in goals for one in goal.needs}
        idle = [goal.step for goal in goals[:-1] if goal.step not in needed]
        if not idle:
            return goals
        if not self._question or len(goals) == MAX_GOALS:
            self._warnings += [f"the answer of step {step} of the plan is never used" for step in idle]
            return goals
        last = len(goals) + 1
        self._warn(last, f"added, since nothing uses the answer of step {', '.join(map(str, idle))}")
        return [*goals, Goal(last, self._question, ANSWER, (*idle, last - 1))]


def _numbered(written: list[WrittenGoal]) -> tuple[list[WrittenGoal], Mapping[int, int]]:
    """The goals in the order of their numbers, and the step that each number of the plan means.

    Where goals lack numbers or share one, they are counted as they stand: from 0 where one needs step 0, else from 1.
    """
    numbers = [one.number for one in written if one.number is not None]
    if len(set(numbers)) == len(written):
        written = sorted(written, key=lambda one: one.number or 0)
        meant = {one.number: step for step, one in enumerate(written, start=1) if one.number is not None}
        zero = 0 not in meant and _counts_from_zero(written, first=1)
        return written, {number - zero: step for number, step in meant.items()} if zero else meant
    start = 0 if _counts_from_zero(written, first=0) else 1
    return written, {number: step for step, number in enumerate(range(start, start + len(written)), start=1)}


def _counts_from_zero(written: Sequence[WrittenGoal], first: int) -> bool:
    """True where `needs` count from 0 while goals are counted from 1, or not at all."""
    said = [(step, number) for step, one in enumerate(written, start=1) for number in one.needs]
    references = " ".join(one.text for one in written)
    if first and PLACEHOLDER.search(references):  # these count from 1, and they decide
        return False
    zero = (
        any(number == 0 for _, number in said) or re.search(r"\bstep[\s_]?0\b", references, re.IGNORECASE) is not None
    )
    return zero and all(number + 1 < step for step, number in said)


def in_code(compute: str, name: Callable[[int], str]) -> str:
    """Return an expression with names in place of its placeholders; quotes right around one are left out.

    Args:
        compute: A Python expression with placeholders `[TYPE from step N]`.
        name: Returns the text to put for a step's number.
    """
    return _QUOTABLE.sub(lambda found: name(int(found["step"])), compute)


def _check_reference(needed: int, step: int, steps: int) -> None:
    if not 1 <= needed <= steps:
        raise BadOutputError(f"step {step} needs step {needed}, which does not exist: there are {steps} steps")
    if needed == step:
        raise BadOutputError(f"step {step} needs its own answer: that is a cycle")
    if needed > step:
        raise BadOutputError(f"step {step} needs step {needed}, which comes later: put it first, or break the cycle")


def _typed(goals: list[Goal]) -> list[Goal]:
    """Goals without a type get that of the first placeholder that stands for them; one whose answer is used is none
    that only collects passages."""
    said: dict[int, str] = {}
    for goal in goals:
        for match in PLACEHOLDER.finditer(texts_of(goal)):
            said.setdefault(int(match["step"]), match["type"].casefold())
    return [
        replace(goal, type=said.get(goal.step, ANSWER))
        if not goal.type or (goal.type == EVIDENCE and goal.step in said)
        else goal
        for goal in goals
    ]


def texts_of(goal: Goal) -> str:
    return f"{goal.text} {goal.search} {goal.compute}"


def placeholders(text: str) -> set[int]:
    """The steps whose answers a text has a place for."""
    return {int(match["step"]) for match in PLACEHOLDER.finditer(text)}


def malformed(text: str) -> list[str]:
    """Return the parts of a text that look like placeholders and are none."""
    return _NEARLY.findall(PLACEHOLDER.sub("", text))


def type_conflicts(goals: Sequence[Goal]) -> Iterator[str]:
    """Placeholders whose type is another one than that of the step they name."""
    types = {goal.step: goal.type for goal in goals}
    for goal in goals:
        for match in PLACEHOLDER.finditer(goal.text):
            wanted, given = match["type"].casefold(), types[int(match["step"])]
            if not same_type(wanted, given):
                yield f"goal {goal.step} of the plan takes the {given} of step {match['step']} for a {wanted}"

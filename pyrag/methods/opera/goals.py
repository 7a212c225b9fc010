"""Parser and checks of the Plan agent's reply: a plan of sub-goals.

    [{"step": 1, "goal": "Which company acquired WhatsApp?", "type": "company", "needs": []},
     {"step": 2, "goal": "Where is [company from step 1] headquartered?", "type": "city", "needs": [1]}]

Plans are read leniently (`goal_replies`, `goal_fields`, `step_references`): the step number in a placeholder determines
the answer, `needs` is derived from placeholders, and an unreadable field is omitted with a warning. A plan is refused
only if it cannot run: it has no goals, or refers to a step that is missing, comes later, or is the goal itself. The
last goal gives the answer; if answers remain unused, the question is added as a last goal that combines them. A goal
with `"search": false`, or one that only compares known answers, is answered from the answers it needs, with the Python
expression in "compute" if there is one. A text in "search" is the query. A goal of type "evidence" only collects
passages.
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
    """Plan that can run. `warnings` list omissions and assumptions."""

    goals: tuple[Goal, ...]
    rationale: str = ""
    warnings: tuple[str, ...] = ()


def read_goals(text: str, question: str = "") -> GoalReading:
    """Return the plan of a reply.

    Args:
        text: Reply of a Plan agent.
        question: Question of the plan, which becomes its last goal if answers remain unused.

    Raises:
        BadOutputError: The reply has no plan that can run; the message names the first fault.
    """
    listed, rationale = listed_goals(text)
    return replace(check_goals(listed, question), rationale=rationale)


def check_goals(listed: Sequence[Any], question: str = "") -> GoalReading:
    """Return the plan of a list of steps.

    Args:
        listed: Steps as any JSON values; empty ones are skipped.
        question: Question of the plan, which becomes its last goal if answers remain unused.

    Raises:
        BadOutputError: The plan cannot run, is empty, or has more than `MAX_GOALS` goals.
    """
    goals = (written_goal_of(value, place) for place, value in enumerate(listed[: MAX_GOALS + 1], start=1))
    written = [goal for goal in goals if goal is not None]
    if not written:
        raise BadOutputError("the list of goals is empty")
    if len(written) > MAX_GOALS:
        raise BadOutputError(f"it holds {len(listed)} goals; at most {MAX_GOALS} are allowed")
    return _Plan(written, question).read()


class _Plan:
    """Builder of goals from written ones, which applies one rule after another and collects warnings."""

    def __init__(self, written: list[WrittenGoal], question: str) -> None:
        self._written, self._numbers = _numbered(written)
        self._question, self._warnings = question, list[str]()
        self._names = {goal.name: step for step, goal in enumerate(self._written, start=1) if goal.name}
        self._types = {step: goal.type for step, goal in enumerate(self._written, start=1)}

    def read(self) -> GoalReading:
        goals = [self._goal(step, goal) for step, goal in enumerate(self._written, start=1)]
        goals = _typed(goals)
        goals = self._final(self._linked(goals))
        goals = [self._searching(goal, goals) for goal in goals]
        goals = self._with_final_goal(goals)
        for goal in goals:
            if dangling := [part for part in malformed(texts_of(goal)) if _OF_A_STEP.search(part)]:
                raise BadOutputError(
                    f"step {goal.step} has {dangling[0]}, which is not a placeholder: write [TYPE from step NUMBER]"
                )
        self._warnings += type_conflicts(goals)
        return GoalReading(tuple(goals), warnings=tuple(self._warnings))

    def _warn(self, step: int, message: str) -> None:
        self._warnings.append(f"goal {step} of the plan: {message}")

    def _goal(self, step: int, written: WrittenGoal) -> Goal:
        own = frozenset(self._numbers.get(number, number) for number in written.needs)
        known = Steps(step, self._numbers, self._names, self._types, own)
        text = normalised(written.text, known)
        search = normalised(written.search, known) if isinstance(written.search, str) else text
        compute = self._compute(step, normalised_code(written.compute, known))
        for fault in written.faults:
            self._warn(step, f"{fault}: left out")
        used = placeholders(f"{text} {search} {compute}")
        for needed in sorted(used):
            _check_reference(needed, step, len(self._written))
        needs = used | self._needs(step, written, used)
        drawn = written.search is False or bool(compute and needs)
        if drawn and not needs:
            self._warn(step, "it needs no earlier answer, so it is searched for")
        return Goal(step, text, written.type, tuple(sorted(needs)), "" if drawn and needs else search, compute)

    def _compute(self, step: int, compute: str) -> str:
        if not compute:
            return ""
        try:
            check_expression(in_code(compute, lambda _: NAMED), f"step {step}")
        except BadOutputError as error:
            self._warn(step, f"{error}: left out")
            return ""
        return compute

    def _needs(self, step: int, written: WrittenGoal, used: set[int]) -> set[int]:
        """Return the steps that a goal states as its needs. Impossible numbers are ignored if it has placeholders."""
        needs = {self._names[name] for name in written.named if name in self._names}
        for number in written.needs:
            needed = self._numbers.get(number, number)
            if not used:
                _check_reference(needed, step, len(self._written))
            if 0 < needed < step:
                needs.add(needed)
            else:
                self._warn(step, f"it says that it needs step {number}, which cannot be: left out")
        return {needed for needed in needs if needed < step}

    def _linked(self, goals: list[Goal]) -> list[Goal]:
        """Link unused answers to a later goal that refers to them in words only, such as "the company"."""
        for goal in goals[:-1]:
            if any(goal.step in other.needs for other in goals):
                continue
            kind = kind_of(goal.type, goal.text)
            for other in goals[goal.step :]:
                if not other.needs and mentions(other.text, kind):
                    goals[other.step - 1] = replace(other, needs=(goal.step,))
                    self._warn(other.step, f"it is taken to mean the answer of step {goal.step}")
                    break
        return goals

    def _final(self, goals: list[Goal]) -> list[Goal]:
        """Replace a last goal that only asks for the answer by the question, or remove it if it is not needed."""
        last = goals[-1]
        if len(goals) < 2 or not is_final(last.text) or last.compute:
            return goals
        if last.needs == (last.step - 1,) and goals[-2].type != EVIDENCE:
            return goals[:-1]
        text = self._question or last.text
        return [*goals[:-1], replace(last, text=text, search="" if last.needs else text)]

    def _searching(self, goal: Goal, goals: Sequence[Goal]) -> Goal:
        """Return a goal with placeholders for all answers it needs, or without a search if it needs none."""
        if not goal.search or not goal.needs:
            return goal
        known = [goals[step - 1] for step in goal.needs]
        where = placeholders(texts_of(goal))
        kinds = [kind_of(earlier.type, earlier.text) for earlier in known]
        if goal.search == goal.text and concludes(goal.text, kinds, says_where=bool(where)):
            return replace(goal, search="")
        idle = [earlier for earlier in known if earlier.step not in where and earlier.type != EVIDENCE]
        if not idle:
            return goal
        behind = "; ".join(f"[{earlier.type} from step {earlier.step}]" for earlier in idle)
        text = f"{goal.text} ({behind})"
        return replace(goal, text=text, search=text if goal.search == goal.text else f"{goal.search} {behind}")

    def _with_final_goal(self, goals: list[Goal]) -> list[Goal]:
        """Add the question as a last goal if an answer would otherwise not be used."""
        needed = {step for goal in goals for step in goal.needs}
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
    """Return the goals in the order of their numbers, and the step that each number in the plan means.

    If numbers are missing or repeated, the goals are counted in the order written: from 0 if a goal needs step 0, else
    from 1.
    """
    numbers = [goal.number for goal in written if goal.number is not None]
    if len(set(numbers)) == len(written):
        written = sorted(written, key=lambda goal: goal.number or 0)
        meant = {goal.number: step for step, goal in enumerate(written, start=1) if goal.number is not None}
        zero = 0 not in meant and _counts_from_zero(written, first=1)
        return written, {number - zero: step for number, step in meant.items()} if zero else meant
    start = 0 if _counts_from_zero(written, first=0) else 1
    return written, {number: step for step, number in enumerate(range(start, start + len(written)), start=1)}


def _counts_from_zero(written: Sequence[WrittenGoal], first: int) -> bool:
    """Return True if `needs` counts from 0 although the goals count from 1 or have no numbers."""
    references = [(step, number) for step, goal in enumerate(written, start=1) for number in goal.needs]
    texts = " ".join(goal.text for goal in written)
    if first and PLACEHOLDER.search(texts):  # placeholders count from 1, and they take precedence
        return False
    zero = (
        any(number == 0 for _, number in references) or re.search(r"\bstep[\s_]?0\b", texts, re.IGNORECASE) is not None
    )
    return zero and all(number + 1 < step for step, number in references)


def in_code(compute: str, name: Callable[[int], str]) -> str:
    """Return an expression with its placeholders replaced by names. Quotes directly around a placeholder are removed.

    Args:
        compute: A Python expression with placeholders `[TYPE from step N]`.
        name: Function that returns the replacement for a step's number.
    """
    return _QUOTABLE.sub(lambda match: name(int(match["step"])), compute)


def _check_reference(needed: int, step: int, steps: int) -> None:
    if not 1 <= needed <= steps:
        raise BadOutputError(f"step {step} needs step {needed}, which does not exist: there are {steps} steps")
    if needed == step:
        raise BadOutputError(f"step {step} needs its own answer: that is a cycle")
    if needed > step:
        raise BadOutputError(f"step {step} needs step {needed}, which comes later: put it first, or break the cycle")


def _typed(goals: list[Goal]) -> list[Goal]:
    """Set missing types from placeholders that refer to the goals. A goal whose answer is used is not "evidence"."""
    types: dict[int, str] = {}
    for goal in goals:
        for match in PLACEHOLDER.finditer(texts_of(goal)):
            types.setdefault(int(match["step"]), match["type"].casefold())
    return [
        replace(goal, type=types.get(goal.step, ANSWER))
        if not goal.type or (goal.type == EVIDENCE and goal.step in types)
        else goal
        for goal in goals
    ]


def texts_of(goal: Goal) -> str:
    return f"{goal.text} {goal.search} {goal.compute}"


def placeholders(text: str) -> set[int]:
    """Return the steps that a text has placeholders for."""
    return {int(match["step"]) for match in PLACEHOLDER.finditer(text)}


def malformed(text: str) -> list[str]:
    """Return the parts of a text that resemble placeholders without being valid."""
    return _NEARLY.findall(PLACEHOLDER.sub("", text))


def type_conflicts(goals: Sequence[Goal]) -> Iterator[str]:
    """Yield a warning for each placeholder whose type differs from the type of its step."""
    types = {goal.step: goal.type for goal in goals}
    for goal in goals:
        for match in PLACEHOLDER.finditer(goal.text):
            wanted, actual = match["type"].casefold(), types[int(match["step"])]
            if not same_type(wanted, actual):
                yield f"goal {goal.step} of the plan takes the {actual} of step {match['step']} for a {wanted}"

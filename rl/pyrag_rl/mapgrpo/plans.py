"""Scores of a Plan agent's completion: its components f_logic, f_struct and f_exec (OPERA, equation 7).

The paper names the components without formulas; the formulas are ours. They use the results of the runtime's own
parser, compiler, plan checks and traces. The weights are in `rewards`, and `execution` runs the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.agents.goals.goal import EVIDENCE, PLACEHOLDER, Goal
from pyrag.episode.plan_checks import check_plan
from pyrag.errors import BadOutputError
from pyrag.evaluation.agent_behaviour import completed
from pyrag.methods.opera.goal_program import compile_goals
from pyrag.methods.opera.goal_replies import listed_goals
from pyrag.methods.opera.goals import MAX_GOALS, check_goals, malformed
from pyrag.methods.opera.protocol import planned_goals
from pyrag.trace.model import Trace
from pyrag_helpers import HELPERS

_PRIMITIVES = ("retrieve", "answer")  # primitives in compiled goals


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Completion as the runtime parses it.

    Attributes:
        listed: Goals as written.
        goals: Goals that will run.
        fault: Reason why the plan cannot run; empty if it can.
        warnings: Omissions and assumptions that the runtime made so that the plan can run.
    """

    listed: tuple[Any, ...] = ()
    goals: tuple[Goal, ...] = ()
    fault: str = ""
    warnings: tuple[str, ...] = ()


def read_plan(completion: str, question: str = "") -> ReadPlan:
    """Return a completion as the runtime parses it; a plan that cannot run has a `fault`.

    Args:
        completion: Text of the Plan agent.
        question: The user's question, for the parser's checks.
    """
    try:
        listed, _ = listed_goals(completion)
    except BadOutputError as error:
        return ReadPlan(fault=str(error))
    try:
        read = check_goals(listed, question)
        return ReadPlan(tuple(listed), read.goals, warnings=read.warnings)
    except BadOutputError as error:
        return ReadPlan(tuple(listed), fault=str(error))


def structure(plan: ReadPlan) -> float:
    """Return f_struct: the share of placeholders that are well-formed and name an earlier step; 0 without goals.

    References that the runtime accepted in another form, or inserted, do not count as well-formed.
    """
    if not plan.listed or not all(isinstance(goal, dict) for goal in plan.listed):
        return 0.0
    proper = improper = 0
    for step, listed_goal in enumerate(plan.listed[: MAX_GOALS + 1], start=1):
        text = " ".join(str(value) for value in listed_goal.values() if isinstance(value, str))
        named = [int(placeholder["step"]) for placeholder in PLACEHOLDER.finditer(text)]
        proper += sum(number < step for number in named)
        improper += sum(number >= step for number in named) + len(malformed(text))
    understood = sum(len(PLACEHOLDER.findall(goal.text)) for goal in plan.goals)
    improper = max(improper, understood - proper)
    return proper / (proper + improper) if proper + improper else 1.0


def logic(plan: ReadPlan, question: str, hops: int = 0) -> float:
    """Return f_logic: 0 for a plan that cannot run, else 1 / (1 + problems), times the share of hops searched for.

    Args:
        plan: The parsed plan.
        question: The user's question.
        hops: Number of searches that the question needs; 0 if unknown.
    """
    if not plan.goals:
        return 0.0
    goals = plan.goals
    texts = [PLACEHOLDER.sub("", goal.text) for goal in goals]  # a placeholder's number is not a name to look for
    problems = check_plan(compile_goals(question, goals), texts, _PRIMITIVES, tuple(HELPERS))
    covered = min(1.0, searches(goals) / hops) if hops else 1.0
    return covered / (1 + len(problems) + len(plan.warnings))


def searches(goals: Sequence[Goal]) -> int:
    """Return the number of searches of a plan."""
    return sum(bool(goal.search) for goal in goals)


def completion(trace: Trace) -> float:
    """Return the share of the goals with their own search that have an answer."""
    wanted = sum(bool(goal.search) and goal.type != EVIDENCE for goal in planned_goals(trace))
    return min(1.0, completed(trace) / wanted) if wanted else float(trace.answer.known)


def execution(trace: Trace | None, exact: float) -> float:
    """Return f_exec: half from the share of answered goals, half from the exactness of the final answer.

    Args:
        trace: Run of the plan; None for a plan that could not run, which scores 0.
        exact: Exact match of the trace's answer.
    """
    return 0.0 if trace is None else (completion(trace) + exact) / 2

"""What each agent did in a trace, action by action (OPERA's Trajectory Memory Component), read from steps and programs.

Nothing is recorded twice: an action is a view of a program, a step or an attempt. Works for every method that plans;
goals and the entities resolved for them are there where the method plans by goals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pyrag.methods.hera.topology import Node
from pyrag.trace.model import UNPLANNED, Attempt, Goal, Program, Step, Trace

Role = Literal["plan", "analysis", "rewrite"]
_ASSIGNED = re.compile(r"\s*(\w+) = ")


@dataclass(frozen=True, slots=True)
class Action:
    """One request to an agent. `evidence` are ids of the passages cited, else of those given; `step` is a step's id.

    `decision` is YES or NO of an analysis, the origin of a plan, and for a rewrite whether its query was searched for.
    """

    role: Role
    input: str
    output: str
    decision: str
    rationale: str = ""
    outcome: str = ""
    evidence: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    confidence: float | None = None
    goal: Goal | None = None
    step: int | None = None


def actions(trace: Trace) -> list[Action]:
    """In the order of the programs and of their steps; what the memo gave is no action."""
    found: list[Action] = []
    for number, program in enumerate(trace.programs):
        if program.origin != UNPLANNED:
            found.append(_planned(trace, program, last=number == len(trace.programs) - 1))
        for step in trace.steps:
            if step.round == number and step.answer is not None and not step.memo:
                found += _answered(trace, step)
    if not trace.programs:
        found = [action for step in trace.steps if step.answer and not step.memo for action in _answered(trace, step)]
    return found


def _planned(trace: Trace, program: Program, *, last: bool) -> Action:
    goals = "\n".join(map(written, trace.goals)) if last else ""
    outcome = program.error.strip().splitlines()[-1] if program.error.strip() else "ran"
    return Action("plan", trace.question, goals or program.source, program.origin, program.rationale, outcome)


def _answered(trace: Trace, step: Step) -> Iterator[Action]:
    goal = goal_of(trace, step)
    failed = step.query
    for one in tries(step):
        if one.policy == "rewrite":
            searched = "searched" if one.topk else "tried before"
            yield Action(
                "rewrite",
                failed,
                one.query,
                searched,
                one.strategy,
                f"top-{one.topk}" if one.topk else "",
                keywords=one.keywords,
                goal=goal,
                step=step.id,
            )
            failed = one.query
        if one.policy != "rewrite" or one.topk:
            yield _analysed(one, step, goal)


def _analysed(one: Attempt, step: Step, goal: Goal | None) -> Action:
    answer = one.answer
    known = answer is not None and answer.known
    return Action(
        "analysis",
        step.query,
        answer.text if answer and known else one.missing,
        "YES" if known else "NO",
        one.rationale,
        f"{label(goal)} = {answer.text}" if goal and answer and known else "",
        answer.citations if answer and known and answer.citations else one.passages,
        confidence=answer.confidence if answer else None,
        goal=goal,
        step=step.id,
    )


def tries(step: Step) -> tuple[Attempt, ...]:
    """All attempts at a step; a step that was not tried again has one."""
    once = Attempt("first", step.query, None, step.passages, step.answer, step.usage, step.rationale)
    return step.attempts or (once,)


def goal_of(trace: Trace, step: Step) -> Goal | None:
    """The goal that a step of the last program answers, by the variable on the step's line."""
    number = _variable(trace, step).rpartition("_")[2] if step.primitive == "answer" else ""
    return next((goal for goal in trace.goals if str(goal.step) == number), None)


def node_of(trace: Trace, step: Step) -> Node | None:
    """The node of the topology that ran last that a step belongs to; its agent is who made the step."""
    name = _variable(trace, step)
    return next((node for node in trace.topology.nodes if node.id == name), None) if trace.topology else None


def _variable(trace: Trace, step: Step) -> str:
    """What the last program calls the outcome of a step; empty where the step is another program's."""
    lines = trace.program.splitlines() if step.round == len(trace.programs) - 1 else []
    found = _ASSIGNED.match(lines[step.line - 1]) if 0 < step.line <= len(lines) else None
    return found[1] if found else ""


def label(goal: Goal) -> str:
    return f"{goal.type} from step {goal.step}"


def written(goal: Goal) -> str:
    """A goal on a line, as in the paper: `2) Where is [company from step 1] headquartered? {deps: [1]}`."""
    deps = f" {{deps: {list(goal.needs)}}}" if goal.needs else ""
    return f"{goal.step}) {goal.text}{deps}"

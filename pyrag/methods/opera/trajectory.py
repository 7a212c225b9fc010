"""Actions of each agent (OPERA's Trajectory Memory Component), derived from a trace's steps and programs.

Nothing is recorded twice: an action is a view of a program, a step or an attempt. This works for every method that
plans; goals and their answers are only available if the method plans by goals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pyrag._io.lines import lines_of
from pyrag.agents.goals.goal import Goal
from pyrag.methods.agent_counts import AgentCounts, answered_steps, count_agents
from pyrag.methods.opera.protocol import planned_goals
from pyrag.trace.model import UNPLANNED, Attempt, Passage, Program, Step, Trace, shorten
from pyrag.trace.view import Line, ViewItem, line

Role = Literal["plan", "analysis", "rewrite", "synthesis"]
_ROLES: dict[Role, str] = {
    "plan": "Plan Agent",
    "analysis": "Analysis-Answer Agent",
    "rewrite": "Rewrite Agent",
    "synthesis": "Final synthesis",
}
_SHOWN = 2  # passages shown per analysis


@dataclass(frozen=True, slots=True)
class Action:
    """Request to an agent. `evidence` lists the ids of the cited passages, or of all passages if none is cited.

    `decision` is YES or NO for an analysis, and the origin for a plan; for a rewrite, it states whether its query was
    used for a search. `step` is the id of a step.
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
    """Return the actions in the order of the programs and their steps, without answers from the memo."""
    result: list[Action] = []
    for number, program in enumerate(trace.programs):
        if program.origin != UNPLANNED:
            result.append(_planned(trace, program, last=number == len(trace.programs) - 1))
        for step in trace.steps:
            if step.round == number and step.answer is not None and not step.memo:
                result += _answered(trace, step)
    if not trace.programs:
        result = [action for step in trace.steps if step.answer and not step.memo for action in _answered(trace, step)]
    return result


def _planned(trace: Trace, program: Program, *, last: bool) -> Action:
    goals = "\n".join(map(written, planned_goals(trace))) if last else ""
    outcome = lines_of(program.error.strip())[-1] if program.error.strip() else "ran"
    return Action("plan", trace.question, goals or program.source, program.origin, program.rationale, outcome)


def _answered(trace: Trace, step: Step) -> Iterator[Action]:
    goal = goal_of(trace, step)
    composed = step.mode == "aggregation" and goal is None and planned_goals(trace)
    role: Role = "synthesis" if composed else "analysis"
    failed = step.query
    for attempt in step.tries:
        if attempt.policy == "rewrite":
            searched = "searched" if attempt.topk else "tried before"
            yield Action(
                "rewrite",
                failed,
                attempt.query,
                searched,
                attempt.strategy,
                f"top-{attempt.topk}" if attempt.topk else "",
                keywords=attempt.keywords,
                goal=goal,
                step=step.id,
            )
            failed = attempt.query
        if attempt.policy != "rewrite" or attempt.topk:
            yield _analysed(attempt, step, goal, role)


def _analysed(attempt: Attempt, step: Step, goal: Goal | None, role: Role) -> Action:
    answer = attempt.answer
    known = answer is not None and answer.known
    return Action(
        role,
        step.query,
        answer.text if answer and known else attempt.missing,
        "YES" if known else "NO",
        attempt.rationale,
        f"{label(goal)} = {answer.text}" if goal and answer and known else "",
        answer.citations if answer and known and answer.citations else attempt.passages,
        confidence=answer.confidence if answer else None,
        goal=goal,
        step=step.id,
    )


def count(trace: Trace) -> AgentCounts:
    """Return the counts of OPERA's agents; a goal counts as completed once, however many steps answer it."""
    if not planned_goals(trace):
        return count_agents(trace)
    requests = Counter[str](action.role for action in actions(trace))
    answered = (goal_of(trace, step) for step in answered_steps(trace))
    completed = {goal.step for goal in answered if goal is not None}
    return AgentCounts(requests, len(planned_goals(trace)), len(completed))


def goal_of(trace: Trace, step: Step) -> Goal | None:
    """Return the goal that a step answers, found by the variable on the step's line; None if it answers no goal.

    Args:
        trace: Trace with the goals of the last program.
        step: Step of that program.
    """
    number = trace.variable_of(step).rpartition("_")[2] if step.primitive == "answer" else ""
    return next((goal for goal in planned_goals(trace) if str(goal.step) == number), None)


def label(goal: Goal) -> str:
    return f"{goal.type} from step {goal.step}"


def written(goal: Goal) -> str:
    """Return a goal on one line, as in the paper: `2) Where is [company from step 1] headquartered? {deps: [1]}`."""
    deps = f" {{deps: {list(goal.needs)}}}" if goal.needs else ""
    return f"{goal.step}) {goal.text}{deps}"


def view(trace: Trace) -> list[ViewItem]:
    """Return a question's course in the form of OPERA's table 5, one block per action; empty without goals."""
    if not planned_goals(trace):
        return []
    done = actions(trace)
    blocks: list[ViewItem] = []
    for number, action in enumerate(done, start=1):
        blocks += [line(_title(number, action), "bold cyan"), _block(action, trace)]
    return [*blocks, line(_metrics(done, trace.usage.seconds), "dim")]


def _metrics(done: Sequence[Action], seconds: float) -> str:
    """Return the counts that the paper reports, excluding the synthesis; success is the share of analyses with YES."""
    done = [action for action in done if action.role != "synthesis"]
    roles = Counter(action.role for action in done)
    counts = ", ".join(f"{_ROLES[role].removesuffix(' Agent')} {roles[role]}" for role in _ROLES if role != "synthesis")
    sure = sum(action.role == "analysis" and action.decision == "YES" for action in done) / max(roles["analysis"], 1)
    return f"Actions: {len(done)} ({counts}) · success {100 * sure:.0f} % · {seconds:.1f} s"


def _title(number: int, action: Action) -> str:
    goal = f" · goal {action.goal.step}" if action.goal else ""
    return f"Step {number}: {_ROLES[action.role]}{goal}"


def _block(action: Action, trace: Trace) -> Line:
    parts: list[tuple[str, str]] = []
    for name, value in _rows(action, trace):
        text = value.replace("\n", "\n" + " " * 11)
        parts += [("\n" if parts else "", ""), (f"{name:<10} ", "dim"), (text, "")]
    return Line(tuple(parts), 2)


def _rows(action: Action, trace: Trace) -> Iterator[tuple[str, str]]:
    if action.role == "plan":
        yield "Plan", action.output.strip()
        yield from _row_unless_empty("Rationale", action.rationale)
        yield from _row_unless_empty("Outcome", "" if action.outcome == "ran" else action.outcome)
        return
    if action.role == "rewrite":
        yield "Failed", action.input
        yield from _row_unless_empty("Strategy", action.rationale)
        yield "Rewritten", action.output + ("" if action.outcome else " (tried before)")
        yield from _row_unless_empty("Keywords", ", ".join(action.keywords))
        return
    yield "Query", action.input
    for number, key in enumerate(action.evidence[:_SHOWN], start=1):
        yield "Evidence" if number == 1 else "", f"{number}. {_shown(trace.passages.get(key))}"
    yield from _row_unless_empty("Analysis", action.rationale)
    sure = "" if action.confidence is None else f" (confidence {action.confidence:.2f})"
    missing = f": {action.output}" if action.output else ""
    yield "Decision", f"YES → {action.output}{sure}" if action.decision == "YES" else f"NO{missing}"
    yield from _row_unless_empty("Resolved", action.outcome)


def _row_unless_empty(name: str, text: str) -> Iterator[tuple[str, str]]:
    if text:
        yield name, text


def _shown(passage: Passage | None) -> str:
    return "" if passage is None else shorten(f"{passage.title}: {passage.text}" if passage.title else passage.text)

"""State of a question, computed from its events, for live views, saved traces and replays.

state = QuestionState()
for event in events_of(trace):
    state = reduce(state, event)

The state after the last event agrees with the trace: both have the same sub-queries, programs, steps, warnings, answer
and error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce as fold
from typing import Literal

from pyrag.trace.events import (
    AgentFinished,
    AgentStarted,
    Answered,
    Decomposed,
    Drafting,
    Event,
    FollowUp,
    Planned,
    ProgramFinished,
    ProgramStarted,
    QuestionFinished,
    QuestionStarted,
    Recovering,
    Rejected,
    Searched,
    StepFinished,
    StepStarted,
    Warned,
)
from pyrag.trace.model import Answer, Program, Step, TraceError, Usage

Phase = Literal["waiting", "decomposing", "planning", "running", "repairing", "answered", "failed"]
_REPAIRING = frozenset({"repair", "revise", "reorchestrate"})  # roles that write another program


@dataclass(frozen=True, slots=True)
class StepState:
    """State of a step.

    `step` is the complete step after it has finished. A program's calls without a step are pending.
    """

    id: int
    primitive: str
    query: str
    line: int = 0
    round: int = 0
    depends_on: tuple[int, ...] = ()
    topk: int | None = None
    status: Literal["running", "recovering", "done", "failed", "stopped"] = "running"
    started: float = 0.0
    recoveries: tuple[Recovering, ...] = ()
    step: Step | None = None


@dataclass(frozen=True, slots=True)
class ProgramState:
    """State of a program. `error` is the message for its planner."""

    program: Program
    status: Literal["planned", "running", "done", "failed", "rejected"] = "planned"
    error: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class AgentCall:
    """Request to an agent."""

    call: int
    role: str
    step: int | None = None
    status: Literal["running", "done", "failed"] = "running"
    started: float = 0.0
    seconds: float = 0.0
    usage: Usage = Usage()
    cached: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class QuestionState:
    """State of a question. `at` is the time of the last event, `draft` the program being written."""

    question: str = ""
    method: str = ""
    engine: str = ""
    retriever: str = ""
    started_at: str = ""
    phase: Phase = "waiting"
    sub_queries: tuple[str, ...] = ()
    draft: str = ""
    programs: tuple[ProgramState, ...] = ()
    steps: dict[int, StepState] = field(default_factory=dict)
    calls: dict[int, AgentCall] = field(default_factory=dict)
    searches: tuple[Searched, ...] = ()
    warnings: tuple[str, ...] = ()
    answer: Answer | None = None
    error: TraceError | None = None
    at: float = 0.0

    @property
    def open_steps(self) -> list[StepState]:
        """Steps in progress."""
        return [step for step in self.steps.values() if step.status in ("running", "recovering")]


def state_of(events: Iterable[Event]) -> QuestionState:
    """Return the state after all these events."""
    return fold(reduce, events, QuestionState())


def reduce(state: QuestionState, event: Event) -> QuestionState:
    """Return the state after one more event.

    Args:
        state: State before the event, which is not changed.
        event: The event.
    """
    state = replace(state, at=event.at)
    match event:
        case QuestionStarted(method, engine, retriever, started_at):
            return replace(
                state, question=event.question, method=method, engine=engine, retriever=retriever, started_at=started_at
            )
        case FollowUp() | Decomposed() | Drafting():
            return _after_writing(state, event)
        case Warned(message):
            return replace(state, warnings=(*state.warnings, message))
        case Answered(answer):
            return replace(state, answer=answer)
        case QuestionFinished(error):
            return _ended(state, error)
        case AgentStarted() | AgentFinished() | Searched():
            return _after_call(state, event)
        case Planned() | Rejected() | ProgramStarted() | ProgramFinished():
            return _after_program(state, event)
        case StepStarted() | Recovering() | StepFinished():
            return _after_step(state, event)


def _after_writing(state: QuestionState, event: FollowUp | Decomposed | Drafting) -> QuestionState:
    match event:
        case FollowUp(asked):
            return replace(state, question=asked)
        case Decomposed(sub_queries):
            return replace(state, sub_queries=sub_queries)
        case Drafting(source):
            return replace(state, draft=source)


def _after_call(state: QuestionState, event: AgentStarted | AgentFinished | Searched) -> QuestionState:
    match event:
        case Searched():
            return replace(state, searches=(*state.searches, event))
        case AgentStarted(number, role, step):
            call = AgentCall(number, role, step, started=event.at)
            return replace(state, phase=_phase(state, call), calls={**state.calls, number: call})
        case AgentFinished(number, role, seconds, usage, cached, error):
            before = state.calls.get(number) or AgentCall(number, role, started=event.at - seconds)
            call = replace(
                before, status="failed" if error else "done", seconds=seconds, usage=usage, cached=cached, error=error
            )
            return replace(state, calls={**state.calls, number: call})


def _phase(state: QuestionState, call: AgentCall) -> Phase:
    """Return the phase that an agent's call begins. A call for a step does not change the phase."""
    if call.step is not None:
        return state.phase
    if call.role == "decompose":
        return "decomposing"
    return "repairing" if call.role in _REPAIRING or state.phase == "repairing" else "planning"


def _after_program(state: QuestionState, event: Planned | Rejected | ProgramStarted | ProgramFinished) -> QuestionState:
    match event:
        case Planned(program, note):
            return replace(state, draft="", programs=(*state.programs, ProgramState(program, note=note)))
        case Rejected(error):
            number = len(state.programs) - 1
            return replace(_with_program(state, number, status="rejected", error=error), phase="repairing")
        case ProgramStarted(number):  # even a rejected program runs if its planner returns it again
            return replace(_with_program(state, number, status="running", error=""), phase="running")
        case ProgramFinished(number, status, first, order):
            state = _with_program(state, number, status="done" if status == "ok" else "failed")
            if order is not None:
                state = _renumbered(state, {step: first + place for place, step in enumerate(order)}, first)
            return _stopped(replace(state, steps=dict(sorted(state.steps.items()))))


def _with_program(
    state: QuestionState,
    number: int,
    status: Literal["planned", "running", "done", "failed", "rejected"],
    error: str | None = None,
) -> QuestionState:
    if not 0 <= number < len(state.programs):
        return state
    before = state.programs[number]
    after = replace(before, status=status, error=before.error if error is None else error)
    return replace(state, programs=(*state.programs[:number], after, *state.programs[number + 1 :]))


def _renumbered(state: QuestionState, numbers: dict[int, int], first: int) -> QuestionState:
    """Return the state with the final numbers of a program's steps, without dropped steps."""
    steps = {number: known for number, known in state.steps.items() if number < first}
    for old, new in numbers.items():
        if (state_of_step := state.steps.get(old)) is not None:
            needs = tuple(sorted(numbers[need] for need in state_of_step.depends_on if need in numbers))
            whole = state_of_step.step and replace(state_of_step.step, id=new, depends_on=needs)
            steps[new] = replace(state_of_step, id=new, depends_on=needs, step=whole)

    def final(step: int | None) -> int | None:
        return step if step is None or step < first else numbers.get(step)

    calls = {number: replace(call, step=final(call.step)) for number, call in state.calls.items()}
    searches = tuple(replace(search, step=final(search.step)) for search in state.searches)
    return replace(state, steps=steps, calls=calls, searches=searches)


def _after_step(state: QuestionState, event: StepStarted | Recovering | StepFinished) -> QuestionState:
    match event:
        case StepStarted(number, primitive, query, line, round_, depends_on, topk):
            after = StepState(number, primitive, query, line, round_, depends_on, topk, started=event.at)
            state = replace(state, phase="running")
        case Recovering(number):
            before = state.steps.get(number) or StepState(number, "", event.query)
            after = replace(before, status="recovering", recoveries=(*before.recoveries, event))
        case StepFinished(step):
            number = step.id
            before = state.steps.get(number) or StepState(number, step.primitive, step.query, step.line, step.round)
            after = replace(before, status="failed" if step.error else "done", step=step)
    return replace(state, steps={**state.steps, number: after})


def _stopped(state: QuestionState) -> QuestionState:
    """Return the state with nothing in progress: unfinished steps count as stopped."""
    if not state.open_steps:
        return state
    open_steps = {step.id: replace(step, status="stopped") for step in state.open_steps}
    return replace(state, steps={**state.steps, **open_steps})


def _ended(state: QuestionState, error: TraceError | None) -> QuestionState:
    return replace(_stopped(state), phase="failed" if error else "answered", draft="", error=error)

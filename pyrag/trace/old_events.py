"""Events for traces that were saved without them, made of their steps and programs; their times are approximate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyrag.trace.events import (
    Answered,
    Decomposed,
    Event,
    Planned,
    ProgramFinished,
    ProgramStarted,
    QuestionFinished,
    QuestionStarted,
    Recovering,
    Rejected,
    StepFinished,
    StepStarted,
    Warned,
)
from pyrag.trace.model import Step, Trace


def events_from_content(trace: Trace) -> list[Event]:
    """Return events that lead to the content of a trace; agent calls, which it does not tell, are left out."""
    now = 0.0
    found: list[Event] = []
    for event in _in_order(trace):
        now = max(now, event.at)
        found.append(replace(event, at=now))
    return found


def _in_order(trace: Trace) -> Iterator[Event]:
    end = trace.usage.seconds
    yield QuestionStarted(
        trace.method, trace.engine, trace.retriever, trace.started_at, approximate=True, question=trace.question
    )
    if trace.sub_queries:
        yield Decomposed(trace.sub_queries)
    steps: dict[int, list[Step]] = {number: [] for number in range(len(trace.programs))}
    for step in trace.steps:
        steps.setdefault(step.round, []).append(step)
    for number in sorted(steps):
        yield from _round(trace, number, steps[number])
    for message in trace.warnings:
        yield Warned(message, at=end)
    yield Answered(trace.answer, at=end)
    yield QuestionFinished(trace.error, at=end)


def _round(trace: Trace, number: int, steps: Sequence[Step]) -> Iterator[Event]:
    """Yield the events of a program and its steps; of the steps alone where there is no program."""
    start = min((step.started for step in steps), default=0.0)
    happened = sorted((event for step in steps for event in _of_step(step)), key=lambda event: event.at)
    if not 0 <= number < len(trace.programs):
        yield from happened
        return
    program = trace.programs[number]
    yield Planned(replace(program, error="", output=""), at=start)
    if steps or not program.error:
        yield ProgramStarted(number, at=start)
        yield from happened
        end = max((event.at for event in happened), default=start)
        yield ProgramFinished(number, "error" if program.error else "ok", at=end)
    if program.error:
        yield Rejected(program.error)


def _of_step(step: Step) -> Iterator[Event]:
    yield StepStarted(
        step.id, step.primitive, step.query, step.line, step.round, step.depends_on, step.topk, at=step.started
    )
    tries = step.attempts[1:]
    for place, one in enumerate(tries, start=1):
        at = step.started + step.seconds * place / (len(tries) + 1)
        query = one.query if one.policy == "rewrite" else ""
        yield Recovering(step.id, one.policy, one.topk or 0, query, at=at)
    if step.seconds or step.error:
        yield StepFinished(step, at=step.started + step.seconds)

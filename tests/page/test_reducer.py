"""The page's reducer beside the one in Python: the same events make the same state, event by event."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest

from pyrag.errors import DataError
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.event_codec import event_object, event_of, recorded, stream_form, with_final_steps
from pyrag.trace.events import (
    AgentFinished,
    AgentStarted,
    Answered,
    Decomposed,
    Drafting,
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
from pyrag.trace.model import Answer, Program, Step, Trace
from pyrag.trace.reducer import QuestionState, reduce
from tests.page.conftest import Site
from tests.page.traces import repaired

GOLDEN = Path(__file__).parent.parent / "trace" / "golden"
# The state after each event, without what only one of the two shows: phases, times, notes.
STATES = """
async ({ events, trace }) => {
  const { START, eventsOf, readTrace, reduce } = await import("/page.js");
  let state = START;
  return (events ?? eventsOf(readTrace(trace))).map((event) => {
    state = reduce(state, event);
    const steps = [...state.steps.values()].sort((one, other) => one.id - other.id);
    return {
      sub_queries: state.subQueries,
      draft: state.draft,
      programs: state.programs.map((one) => [one.source, one.error]),
      steps: steps.map((one) => [
        one.id, one.primitive, one.query, one.line, one.round, one.dependsOn,
        one.status === "unknown" ? "done" : one.status,
        one.recoveries.map((again) => [again.policy, again.topk, again.query]),
        one.ended === null ? "" : one.answer?.text ?? "",
      ]),
      calls: state.agents.map((one) => [one.id, one.role, one.step, one.ended !== null, one.error ?? ""]),
      warnings: state.warnings.filter((one) => !one.startsWith("The follow-up was asked as")),
      answer: state.answer && [state.answer.text, state.answer.known],
    };
  });
}
"""


def shown(state: QuestionState) -> dict[str, Any]:
    """A state in the form of `STATES`."""
    return {
        "sub_queries": [*state.sub_queries],
        "draft": state.draft,
        "programs": [[one.program.source, one.error] for one in state.programs],
        "steps": [
            [
                one.id, one.primitive, one.query, one.line, one.round, [*one.depends_on], one.status,
                [[again.policy, again.topk, again.query] for again in one.recoveries],
                one.step.answer.text if one.step and one.step.answer else "",
            ]
            for _, one in sorted(state.steps.items())
        ],
        "calls": [[one.call, one.role, one.step, one.status != "running", one.error] for one in state.calls.values()],
        "warnings": [*dict.fromkeys(state.warnings)],
        "answer": state.answer and [state.answer.text, state.answer.known],
    }  # fmt: skip


def states(events: Sequence[Event | None]) -> list[dict[str, Any]]:
    def after(state: QuestionState, event: Event | None) -> QuestionState:
        return state if event is None else reduce(state, event)

    return [shown(one) for one in accumulate(events, after, initial=QuestionState())][1:]


def kept_events(trace: Trace) -> list[Event | None]:
    """The events of a trace, None for those of other versions of pyrag."""
    return [event_of(value) for value in stream_form(trace)]


def check(page: Any, expected: Sequence[Event | None], **given: Any) -> None:
    """Compare the states of both reducers. `given` is what the page reads: events of a stream, or a trace."""
    found = page.evaluate(STATES, json.loads(msgspec.json.encode(given)))
    for place, (event, ours, theirs) in enumerate(zip(expected, states(expected), found, strict=False)):
        different = [(name, ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]]
        assert json.dumps(different) == "[]", (place, event)
    assert len(found) >= len(expected)


@pytest.fixture(scope="module")
def page(browser: Any, site: Site) -> Iterator[Any]:
    opened = browser.new_page()
    opened.goto(site.url)
    opened.wait_for_selector("main")
    yield opened
    opened.close()


class RandomQuestion:
    """Events of a question as they may happen: repairs, steps side by side and begun in vain, recoveries, failures."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._calls, self._at = 0, 0.0
        self._round = -1
        self.steps: list[Step] = []
        self.events = [self._timed(one) for one in self._question()]

    def _timed(self, event: Event) -> Event:
        self._at += self._random.random()
        return replace(event, at=round(self._at, 5))

    def _likely(self, share: float) -> bool:
        return self._random.random() < share

    def _call(self, role: str, step: int | None = None) -> Iterator[Event]:
        number = self._calls
        self._calls += 1
        yield AgentStarted(number, role, step)
        if self._likely(0.95):
            yield AgentFinished(number, role, 0.1, error="" if self._likely(0.9) else "refused")

    def _question(self) -> Iterator[Event]:
        yield QuestionStarted("pyrag", "engine", "notes", "2026-01-01T00:00:00Z")
        yield from self._call("decompose")
        yield Decomposed(tuple(f"sub {number}" for number in range(self._random.randrange(4))))
        for number in range(self._random.randrange(1, 4)):
            yield from self._program(number)
            if self._likely(0.3):
                yield Warned(f"warning {number}")
        if self._likely(0.8):
            yield Answered(Answer("it", known=self._likely(0.8)))
        yield QuestionFinished()

    def _program(self, number: int) -> Iterator[Event]:
        self._round = number
        yield from self._call("repair" if number else "plan")
        for lines in range(self._random.randrange(3)):
            yield Drafting("line\n" * (lines + 1))
        yield Planned(Program(f"source {number}", "planner"))
        if self._likely(0.3):
            yield Rejected(f"checks of {number}")
            if self._likely(0.6):
                return
        yield ProgramStarted(number)
        yield from self._steps(len(self.steps), self._random.randrange(6))
        if self._likely(0.3):
            yield Rejected(f"the run of {number} failed")

    def _steps(self, first: int, count: int) -> Iterator[Event]:
        waiting = [self._step(first + place, first) for place in range(count)]
        while waiting:  # side by side
            one = self._random.choice(waiting)
            try:
                yield next(one)
            except StopIteration:
                waiting.remove(one)
        kept = [step for step in range(first, first + count) if self._likely(0.8)]
        order = tuple(self._random.sample(kept, len(kept))) if self._likely(0.7) else None
        left = len(kept) if order is not None else count
        self.steps += [Step(first + place, "answer", "?") for place in range(left)]
        yield ProgramFinished(self._round, self._random.choice(["ok", "error", "stopped"]), first, order)

    def _step(self, number: int, first: int) -> Iterator[Event]:
        needs = tuple(need for need in range(first, number) if self._likely(0.4))
        primitive = self._random.choice(["retrieve", "answer"])
        yield StepStarted(number, primitive, f"query {number}", number + 1, self._round, needs, 5)
        yield from self._call("answer", number)
        for place in range(self._random.randrange(3)):
            yield Recovering(number, "boost", 20, f"again {place}")
        if self._likely(0.9):
            answer = Answer(f"answer {number}", known=self._likely(0.7)) if primitive == "answer" else None
            error = "" if self._likely(0.9) else "failed"
            yield StepFinished(
                Step(
                    number, primitive, f"query {number}", number + 1, self._round, 5, answer=answer, depends_on=needs,
                    error=error,
                )
            )  # fmt: skip


def test_streams_make_the_same_state(page: Any) -> None:
    for seed in range(150):
        events = RandomQuestion(seed).events
        check(page, events, events=[event_object(event) for event in events])


def test_kept_events_make_the_same_state(page: Any) -> None:
    for seed in range(50):
        events = with_final_steps(RandomQuestion(seed).events)
        done = [event.step for event in events if isinstance(event, StepFinished)]
        if [step.id for step in sorted(done, key=lambda step: step.id)] != list(range(len(done))):
            continue  # a trace has all of its steps
        programs = tuple(event.program for event in events if isinstance(event, Planned))
        warnings = tuple(event.message for event in events if isinstance(event, Warned))
        steps = tuple(sorted(done, key=lambda step: step.id))
        trace = Trace("?", Answer("it"), programs=programs, steps=steps, warnings=warnings)
        kept = from_json(to_json(replace(trace, events=recorded(events, trace))))
        check(page, kept_events(kept), trace=kept)


def test_a_real_question_makes_the_same_state(page: Any, site: Site) -> None:
    body = {"question": "In which city was the director of The Seventh Seal born?", "include_trace": True}
    request = Request(f"{site.url}/v1/ask", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=120) as reply:
        trace = from_json(json.dumps(json.loads(reply.read())["trace"]))
    assert len(trace.events) > 10
    check(page, kept_events(trace), trace=trace)


def test_saved_and_damaged_traces_make_the_same_state(page: Any) -> None:
    whole = (GOLDEN / "version_1.json").read_bytes()
    random, opened = Random(1), 0
    for content in (whole, *(_damaged(whole, random) for _ in range(100))):
        try:
            trace = from_json(content)
            events = kept_events(trace)
        except DataError:
            continue
        opened += 1
        if events:
            check(page, events, trace=trace)
    assert opened > 5


def _damaged(content: bytes, random: Random) -> bytes:
    """A trace with one value left out or replaced by an odd one."""
    trace = place = json.loads(content)
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = random.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.9:
            place = place[key]
            continue
        if random.random() < 0.3:
            del place[key]
        else:
            place[key] = random.choice(["", "<b>odd</b>", 0, 3, True, None, [], {}, -1.5])
        return json.dumps(trace).encode()


def test_a_trace_without_events_ends_in_its_steps(page: Any) -> None:
    last = page.evaluate(STATES, json.loads(msgspec.json.encode({"trace": repaired()})))[-1]
    assert [step[0] for step in last["steps"]] == [step.id for step in repaired().steps]
    assert last["answer"] == ["Ann Thorpe", True]

"""Events of every method: what observers see, what traces keep, and the state that both lead to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import pytest

from pyrag.trace.codec import from_json, to_json
from pyrag.trace.event_codec import event_object, event_of, events_of, stream_form, with_final_steps
from pyrag.trace.events import AgentFinished, AgentStarted, Answered, Event, QuestionFinished, QuestionStarted, Searched
from pyrag.trace.model import Trace
from pyrag.trace.reducer import QuestionState, state_of
from tests.methods.conftest import ALL, World


def without_times(events: Iterable[Event]) -> list[Event]:
    return [replace(one, seconds=0.0) if isinstance(one, AgentFinished | Searched) else one for one in events]


def agrees(state: QuestionState, trace: Trace) -> None:
    assert [step.step for step in state.steps.values()] == list(trace.steps)
    assert [(one.line, one.round, one.topk, one.depends_on) for one in state.steps.values()] == [
        (one.line, one.round, one.topk, one.depends_on) for one in trace.steps
    ]
    assert [one.program.source for one in state.programs] == [one.source for one in trace.programs]
    assert [one.error for one in state.programs] == [one.error for one in trace.programs]
    if not trace.method.startswith("hera"):  # whose topology names queries that no agent made
        assert state.sub_queries == trace.sub_queries
    assert state.warnings == trace.warnings
    assert (state.answer, state.error) == (trace.answer, trace.error)
    assert state.phase == "answered"
    assert not state.open_steps


@pytest.mark.parametrize("method", ALL)
async def test_events_lead_to_the_content_of_the_trace(world: World, method: str) -> None:
    seen: list[Event] = []
    trace = await world.ask(method, observer=seen.append)
    kept = events_of(from_json(to_json(trace)))
    assert without_times(kept) == without_times(with_final_steps(seen))
    assert [event.at for event in kept] == sorted(event.at for event in kept)
    agrees(state_of(seen), trace)
    agrees(state_of(kept), trace)


@pytest.mark.parametrize("method", ALL)
async def test_every_request_has_a_start_and_an_end(world: World, method: str) -> None:
    trace = await world.ask(method)
    events = events_of(trace)
    assert isinstance(events[0], QuestionStarted)
    assert [type(event) for event in events[-2:]] == [Answered, QuestionFinished]
    started = {event.call: event.role for event in events if isinstance(event, AgentStarted)}
    finished = {event.call: event.role for event in events if isinstance(event, AgentFinished)}
    searched = [event for event in events if isinstance(event, Searched)]
    assert started == finished
    assert len(started) + len(searched) == sum(role.requests for role in trace.roles.values())
    assert len(searched) == trace.usage.retrievals
    spent = sum((one.usage.model_calls for one in events if isinstance(one, AgentFinished)), start=0)
    assert spent == trace.usage.model_calls


@pytest.mark.parametrize("method", ALL)
async def test_events_read_back_from_the_stream_are_the_same(world: World, method: str) -> None:
    seen: list[Event] = []
    trace = await world.ask(method, observer=seen.append)
    sent = [msgspec.json.decode(msgspec.json.encode(event_object(event))) for event in seen]
    assert [event_of(value) for value in sent] == seen
    joined = [msgspec.json.decode(msgspec.json.encode(value)) for value in stream_form(trace)]
    assert [value["event"] for value in joined] == [event_object(one)["event"] for one in with_final_steps(seen)]


@pytest.mark.parametrize("method", ALL)
async def test_events_add_less_than_half_to_a_trace(world: World, method: str) -> None:
    trace = await world.ask(method)
    assert len(to_json(trace)) < 1.5 * len(to_json(replace(trace, events=())))

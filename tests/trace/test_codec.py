"""Traces as JSON, and those of earlier versions."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pyrag.cli.traces import load_traces, replay_trace
from pyrag.cli.views.saved import trace_view
from pyrag.errors import DataError
from pyrag.methods.hera.topology import STATE as HERA
from pyrag.methods.hera.topology import Node, Topology
from pyrag.methods.opera.protocol import STATE as OPERA
from pyrag.methods.opera.protocol import Goal, OperaState, planned_goals
from pyrag.trace.codec import from_json, to_json, with_events
from pyrag.trace.event_codec import events_of
from pyrag.trace.model import Answer, SearchedIndex, Trace
from pyrag.trace.reducer import state_of

GOLDEN = Path(__file__).parent / "golden"

GOALS = (Goal(1, "Who directed Alpha?", "person", search="Alpha director"), Goal(2, "When?", needs=(1,)))
TOPOLOGY = Topology((Node("docs", "retriever"), Node("said", "answer_generator", depends_on=("docs",))))
TRACE = Trace("Who?", Answer("Ada"), method="opera", sub_queries=("Who?",), fallbacks=("goals",))


def version_1(trace: Trace) -> bytes:
    """The trace as version 1 wrote it."""
    values = json.loads(to_json(trace))
    extensions = values.pop("extensions")
    goals = extensions.get("opera", {}).get("goals", [])
    return json.dumps({**values, "version": 1, "goals": goals, "topology": extensions.get("hera")}).encode()


@pytest.mark.parametrize("extensions", [{}, OPERA.plain(OperaState(GOALS)), HERA.plain(TOPOLOGY)])
def test_version_1_opens_with_the_same_content(extensions: dict[str, object]) -> None:
    trace = replace(TRACE, extensions=extensions)
    assert from_json(to_json(trace)) == trace
    assert from_json(version_1(trace)) == with_events(trace)


def test_old_versions_open_with_all_that_they_held() -> None:
    opened = {number: from_json((GOLDEN / f"version_{number}.json").read_bytes()) for number in (1, 2, 3)}
    for trace in opened.values():
        assert (trace.answer.text, trace.answer.known, trace.error) == ("John William Henry II", True, None)
        assert (len(trace.programs), len(trace.steps), len(trace.citations), trace.version) == (1, 4, 2, 3)
        state = state_of(events_of(trace))
        assert ([step.step for step in state.steps.values()], state.phase) == (list(trace.steps), "answered")
        assert (state.sub_queries, state.answer) == (trace.sub_queries, trace.answer)
    assert isinstance(opened[3].index, SearchedIndex)
    assert opened[1].index is None
    assert opened[1].events[0]["approximate"] is opened[2].events[0]["approximate"] is True
    assert "approximate" not in opened[3].events[0]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_saved_trace_is_shown_with_its_origin(version: int) -> None:
    (trace,) = load_traces(GOLDEN / f"version_{version}.json")
    console = Console(width=200, file=io.StringIO())
    console.print(trace_view(trace))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(step.query in shown for step in trace.steps)
    assert trace.answer.text in shown
    assert (f"asked {trace.started_at} · pyrag {trace.pyrag_version} · index " in shown) is (version == 3)


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_recordings_of_old_versions_replay_equal(version: int) -> None:
    (trace,) = load_traces(GOLDEN / f"version_{version}.json")
    assert await replay_trace(trace) == []


@pytest.mark.parametrize(
    "event",
    [
        {"event": "step_finished", "at": 0.0, "step": 7},
        {"event": "planned", "at": 0.0},
        {"event": "warned", "at": "soon", "message": "x"},
        {"event": "agent_started", "at": 0.0, "role": "plan"},
    ],
)
def test_damaged_event_is_named(event: dict[str, object]) -> None:
    with pytest.raises(DataError, match=f"its event {event['event']} "):
        events_of(replace(TRACE, events=(event,)))


def test_odd_numbers_in_old_traces_cost_nothing() -> None:
    step = {"id": 0, "primitive": "retrieve", "query": "Who?", "round": 1 << 60, "seconds": 1.0}
    values = {"version": 2, "question": "Who?", "answer": {"text": "x"}, "steps": [step, {**step, "round": -3}]}
    trace = from_json(json.dumps(values))
    assert [one.step.round for one in state_of(events_of(trace)).steps.values() if one.step] == [1 << 60]
    assert [event["event"] for event in trace.events].count("step_finished") == 2


def test_names_of_events_that_are_no_text_are_passed_over() -> None:
    assert events_of(replace(TRACE, events=({"event": ["x"]}, {"event": None}, {}))) == []


def test_events_of_later_versions_are_passed_over() -> None:
    assert events_of(replace(TRACE, events=({"event": "dreamt", "at": 1.0, "of": "x"},))) == []


def test_methods_read_what_they_wrote() -> None:
    trace = replace(TRACE, extensions=OPERA.plain(OperaState(GOALS)) | HERA.plain(TOPOLOGY))
    assert planned_goals(from_json(to_json(trace))) == GOALS
    assert HERA.read(from_json(to_json(trace))) == TOPOLOGY
    assert HERA.read(TRACE) is None


def test_damaged_extension_is_named() -> None:
    with pytest.raises(DataError, match="extension opera is damaged"):
        planned_goals(replace(TRACE, extensions={"opera": {"goals": 3}}))


@pytest.mark.parametrize("values", ['{"version": 4, "question": "Who?", "answer": {"text": "x"}}', "[]", "{", "7"])
def test_other_data_is_no_trace(values: str) -> None:
    with pytest.raises(DataError):
        from_json(values)

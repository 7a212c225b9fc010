"""Traces as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pyrag.agents.goals.goal import Goal
from pyrag.cli.traces import load_traces, replay_trace
from pyrag.cli.views.saved import trace_view
from pyrag.errors import DataError
from pyrag.methods.hera.topology import STATE as HERA
from pyrag.methods.hera.topology import Node, Topology
from pyrag.methods.opera.protocol import STATE as OPERA
from pyrag.methods.opera.protocol import OperaState, planned_goals
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.event_codec import events_of
from pyrag.trace.model import Answer, SearchedIndex, Trace
from pyrag.trace.reducer import state_of

GOLDEN = Path(__file__).parent / "golden"

GOALS = (Goal(1, "Who directed Alpha?", "person", search="Alpha director"), Goal(2, "When?", needs=(1,)))
TOPOLOGY = Topology((Node("docs", "retriever"), Node("said", "answer_generator", depends_on=("docs",))))
TRACE = Trace("Who?", Answer("Ada"), method="opera", sub_queries=("Who?",), fallbacks=("goals",))


@pytest.mark.parametrize("extensions", [{}, OPERA.plain(OperaState(GOALS)), HERA.plain(TOPOLOGY)])
def test_traces_open_with_the_same_content(extensions: dict[str, object]) -> None:
    trace = replace(TRACE, extensions=extensions)
    assert from_json(to_json(trace)) == trace


def test_the_first_format_opens_with_all_that_it_holds() -> None:
    trace = from_json((GOLDEN / "version_1.json").read_bytes())
    assert (trace.answer.text, trace.answer.known, trace.error) == ("John William Henry II", True, None)
    assert (len(trace.programs), len(trace.steps), len(trace.citations), trace.version) == (1, 4, 2, 1)
    state = state_of(events_of(trace))
    assert ([step.step for step in state.steps.values()], state.phase) == (list(trace.steps), "answered")
    assert (state.sub_queries, state.answer) == (trace.sub_queries, trace.answer)
    assert isinstance(trace.index, SearchedIndex)


@pytest.mark.parametrize("version", [0, 2, 3, 7])
def test_other_versions_of_the_format_are_refused(version: int) -> None:
    values = json.loads(to_json(TRACE))
    with pytest.raises(DataError, match=f"this trace has version {version}; this pyrag reads version 1$"):
        from_json(json.dumps({**values, "version": version}))


def test_a_saved_trace_is_shown_with_its_origin() -> None:
    (trace,) = load_traces(GOLDEN / "version_1.json")
    console = Console(width=200, file=io.StringIO())
    console.print(trace_view(trace))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(step.query in shown for step in trace.steps)
    assert trace.answer.text in shown
    assert f"asked {trace.started_at} · pyrag {trace.pyrag_version} · index " in shown


async def test_recordings_replay_equal() -> None:
    (trace,) = load_traces(GOLDEN / "version_1.json")
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

"""Traces as JSON, and those of earlier versions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pyrag.errors import DataError
from pyrag.methods.hera.topology import STATE as HERA
from pyrag.methods.hera.topology import Node, Topology
from pyrag.methods.opera.protocol import STATE as OPERA
from pyrag.methods.opera.protocol import Goal, OperaState, planned_goals
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Answer, Trace

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
    assert from_json(version_1(trace)) == trace


def test_methods_read_what_they_wrote() -> None:
    trace = replace(TRACE, extensions=OPERA.plain(OperaState(GOALS)) | HERA.plain(TOPOLOGY))
    assert planned_goals(from_json(to_json(trace))) == GOALS
    assert HERA.read(from_json(to_json(trace))) == TOPOLOGY
    assert HERA.read(TRACE) is None


def test_damaged_extension_is_named() -> None:
    with pytest.raises(DataError, match="extension opera is damaged"):
        planned_goals(replace(TRACE, extensions={"opera": {"goals": 3}}))


@pytest.mark.parametrize("values", ['{"version": 3, "question": "Who?", "answer": {"text": "x"}}', "[]", "{", "7"])
def test_other_data_is_no_trace(values: str) -> None:
    with pytest.raises(DataError):
        from_json(values)

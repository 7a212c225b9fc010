"""Trace of a question: its data and JSON, its events and the resulting state, and a method's own data and view.

Each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrag.trace.codec import from_json, to_json
    from pyrag.trace.event_codec import event_object, event_of, events_of, stream_form
    from pyrag.trace.events import (
        AgentFinished,
        AgentStarted,
        Answered,
        Decomposed,
        Drafting,
        Event,
        FollowUp,
        Observer,
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
    from pyrag.trace.extensions import Extension
    from pyrag.trace.html import to_html
    from pyrag.trace.model import (
        Answer,
        Attempt,
        Citation,
        Exchange,
        Passage,
        Program,
        RoleUsage,
        SearchedIndex,
        Step,
        Trace,
        TraceError,
        Usage,
    )
    from pyrag.trace.reducer import AgentCall, ProgramState, QuestionState, StepState, reduce, state_of
    from pyrag.trace.view import Line, RejectedProgram, ShownStep, ViewItem, line

__all__ = [
    "AgentCall",
    "AgentFinished",
    "AgentStarted",
    "Answer",
    "Answered",
    "Attempt",
    "Citation",
    "Decomposed",
    "Drafting",
    "Event",
    "Exchange",
    "Extension",
    "FollowUp",
    "Line",
    "Observer",
    "Passage",
    "Planned",
    "Program",
    "ProgramFinished",
    "ProgramStarted",
    "ProgramState",
    "QuestionFinished",
    "QuestionStarted",
    "QuestionState",
    "Recovering",
    "Rejected",
    "RejectedProgram",
    "RoleUsage",
    "Searched",
    "SearchedIndex",
    "ShownStep",
    "Step",
    "StepFinished",
    "StepStarted",
    "StepState",
    "Trace",
    "TraceError",
    "Usage",
    "ViewItem",
    "Warned",
    "event_object",
    "event_of",
    "events_of",
    "from_json",
    "line",
    "reduce",
    "state_of",
    "stream_form",
    "to_html",
    "to_json",
]

_MODULES = {
    "pyrag.trace.codec": (
        "from_json",
        "to_json",
    ),
    "pyrag.trace.event_codec": (
        "event_object",
        "event_of",
        "events_of",
        "stream_form",
    ),
    "pyrag.trace.events": (
        "AgentFinished",
        "AgentStarted",
        "Answered",
        "Decomposed",
        "Drafting",
        "Event",
        "FollowUp",
        "Observer",
        "Planned",
        "ProgramFinished",
        "ProgramStarted",
        "QuestionFinished",
        "QuestionStarted",
        "Recovering",
        "Rejected",
        "Searched",
        "StepFinished",
        "StepStarted",
        "Warned",
    ),
    "pyrag.trace.extensions": ("Extension",),
    "pyrag.trace.html": ("to_html",),
    "pyrag.trace.model": (
        "Answer",
        "Attempt",
        "Citation",
        "Exchange",
        "Passage",
        "Program",
        "RoleUsage",
        "SearchedIndex",
        "Step",
        "Trace",
        "TraceError",
        "Usage",
    ),
    "pyrag.trace.reducer": (
        "AgentCall",
        "ProgramState",
        "QuestionState",
        "StepState",
        "reduce",
        "state_of",
    ),
    "pyrag.trace.view": (
        "Line",
        "RejectedProgram",
        "ShownStep",
        "ViewItem",
        "line",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

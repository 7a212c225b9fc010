"""Traces and events as the service sends them: plain JSON, without paths and settings of the server."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

from pyrag.server.errors import public_text
from pyrag.trace.events import Event
from pyrag.trace.model import Trace

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_PUBLIC_CONFIG = ("method", "topk", "recovery", "joint", "repairs", "max_calls", "max_tokens", "deadline", "stream")


def public_trace(trace: Trace, index: str) -> Trace:
    """Return a trace without the server's paths and settings.

    Args:
        trace: as `answer_question` returned it.
        index: name of the index, which takes the place of the retriever's.
    """
    error = trace.error and replace(trace.error, message=public_text(trace.error.message))
    return replace(
        trace,
        engine=public_text(trace.engine),
        retriever=index,
        config={key: trace.config[key] for key in _PUBLIC_CONFIG if key in trace.config},
        error=error,
        warnings=tuple(map(public_text, trace.warnings)),
    )


def event_name(event: Event) -> str:
    """Return the name of an event in the stream: `StepStarted` is `step_started`."""
    return _CAPITAL.sub("_", type(event).__name__).lower()


def event_object(event: Event, at: float) -> dict[str, Any]:
    """Return an event as an object.

    Args:
        event: what happened.
        at: seconds since the request was accepted.
    """
    shown = {one.name: getattr(event, one.name) for one in fields(event) if one.name not in ("question", "number")}
    return {"event": event_name(event), "at": round(at, 6), **shown}


def progress_of(event: dict[str, Any]) -> str:
    """Return an event as a line of progress; empty for those that say nothing to a reader."""
    if event["event"] == "follow_up":
        return f"{event['note']}\n"
    if event["event"] == "step_started":
        return f"{event['primitive']}: {event['query']}\n"
    if event["event"] == "recovering":
        return f"trying again: {event['policy']}\n"
    return "the program is repaired\n" if event["event"] == "rejected" else ""


def citations_of(trace: Trace) -> list[dict[str, Any]]:
    """Return the cited passages with their texts, in the order of their numbers."""
    found = []
    for citation in trace.citations:
        passage = trace.passages[citation.passage]
        found.append(
            {
                "number": citation.number,
                "id": passage.id,
                "title": passage.title,
                "text": passage.text,
                "source": passage.source,
                "start": passage.start,
                "end": passage.end,
                "step": citation.step,
            }
        )
    return found


def answer_object(key: str, index: str, trace: Trace, *, whole: bool = False) -> dict[str, Any]:
    """Return the reply to a question.

    Args:
        key: id under which the trace is kept.
        index: name of the index that was asked.
        trace: a public trace.
        whole: add the trace itself.
    """
    shown: dict[str, Any] = {
        "id": key,
        "question": trace.question,
        "answer": trace.answer.text,
        "known": trace.answer.known,
        "confidence": trace.answer.confidence,
        "citations": citations_of(trace),
        "sub_queries": trace.sub_queries,
        "program": trace.program,
        "repairs": trace.repairs,
        "usage": trace.usage,
        "warnings": trace.warnings,
        "error": trace.error,
        "method": trace.method,
        "engine": trace.engine,
        "index": index,
    }
    return {**shown, "trace": trace} if whole else shown

"""Traces and events as the service sends them: plain JSON, without paths and settings of the server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyrag.server.errors import public_text
from pyrag.trace.event_codec import event_object
from pyrag.trace.events import Event
from pyrag.trace.model import RecordedEvent, Trace, TraceError

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
        index=trace.index and replace(trace.index, name=index),
        events=tuple(map(_public, trace.events)),
        config={key: trace.config[key] for key in _PUBLIC_CONFIG if key in trace.config},
        error=error,
        warnings=tuple(map(public_text, trace.warnings)),
    )


def public_event(event: Event, index: str) -> RecordedEvent:
    """Return an event as the stream sends it, without the server's paths and settings.

    Args:
        event: what happened.
        index: name of the index, which takes the place of the retriever's.
    """
    shown = event_object(event)
    if "retriever" in shown:
        shown |= {"retriever": index, "engine": public_text(shown["engine"])}
    if isinstance(shown.get("error"), TraceError):
        shown["error"] = replace(shown["error"], message=public_text(shown["error"].message))
    return _public(shown)


def _public(event: RecordedEvent) -> RecordedEvent:
    texts = {name: public_text(event[name]) for name in ("error", "message") if isinstance(event.get(name), str)}
    return {**event, **texts}


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
                "metadata": passage.metadata,
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

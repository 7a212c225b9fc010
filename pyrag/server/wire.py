"""Traces, events and passages as the service sends them: plain JSON, without the server's paths and settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from pyrag.methods.own_program import NAME as OWN_PROGRAM
from pyrag.server.errors import public_lines, public_text
from pyrag.trace.codec import citations_of
from pyrag.trace.event_codec import event_object
from pyrag.trace.events import Event
from pyrag.trace.model import Passage, Program, RecordedEvent, Step, Trace, TraceError
from pyrag.trace.verdict import MAX_TOPK, Surface, remark

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_WILDCARD = re.compile(r"[*?\[]")
_TEXTS = ("engine", "error", "message", "note")  # fields of events that may name files and addresses
_PUBLIC_CONFIG = ("method", "topk", "recovery", "joint", "repairs", "max_calls", "max_tokens", "deadline", "stream")


def public_trace(trace: Trace, index: str, topk: int = MAX_TOPK, *, bundled: bool = False) -> Trace:
    """Return a trace without the server's paths and settings, and with advice for callers of the service.

    Args:
        trace: Trace of an answered question.
        index: Name of the index, shown instead of the retriever's name.
        topk: Largest `topk` that a request may set.
        bundled: Whether the index is pyrag's bundled corpus.
    """
    error = trace.error and _public_error(trace.error)
    return replace(
        trace,
        engine=public_text(trace.engine),
        retriever=index,
        index=trace.index and replace(trace.index, name=index),
        events=tuple(_public(event, index) for event in trace.events),
        programs=tuple(map(_public_program, trace.programs)),
        steps=tuple(map(_public_step, trace.steps)),
        passages={key: public_passage(passage) for key, passage in trace.passages.items()},
        config={key: trace.config[key] for key in _PUBLIC_CONFIG if key in trace.config},
        error=error,
        warnings=tuple(map(public_text, trace.warnings)),
        remark=public_text(remark(trace, Surface("service", index, topk, bundled))),
    )


def public_event(event: Event, index: str) -> RecordedEvent:
    """Return an event in the form for streams, without the server's paths and settings.

    Args:
        event: The event.
        index: Name of the index, shown instead of the retriever's name.
    """
    shown = event_object(event)
    if isinstance(shown.get("error"), TraceError):
        shown["error"] = _public_error(shown["error"])
    if isinstance(step := shown.get("step"), Step):
        shown["step"] = _public_step(step)
    if isinstance(program := shown.get("program"), Program):
        shown["program"] = _public_program(program)
    return _public(shown, index)


def _public(event: RecordedEvent, index: str) -> RecordedEvent:
    texts = {name: public_text(event[name]) for name in _TEXTS if isinstance(event.get(name), str)}
    if "retriever" in event:
        texts["retriever"] = index
    return {**event, **texts} if texts else event


def _public_error(error: TraceError) -> TraceError:
    """Return an error without the server's paths; a message about a program keeps its lines."""
    return replace(error, message=(public_lines if error.source_line else public_text)(error.message))


def _public_step(step: Step) -> Step:
    return replace(step, error=public_text(step.error)) if step.error else step


def _public_program(program: Program) -> Program:
    error = public_lines(program.error) if program.error else ""
    return replace(program, planner=public_text(program.planner), error=error)


def public_passage(passage: Passage, roots: Sequence[str] = (), retriever: str = "") -> Passage:
    """Return a passage whose source is a URL, or a path relative to the indexed files.

    Args:
        passage: Passage of a search.
        roots: Files, folders and patterns that were indexed.
        retriever: Name of the retriever; a source equal to it becomes empty.
    """
    source = "" if passage.source == retriever else _public_source(passage.source, roots)
    return passage if source == passage.source else replace(passage, source=source)


def _public_source(source: str, roots: Sequence[str] = ()) -> str:
    """Return a source without the server's folders; a URL is returned unchanged.

    A path below one of the indexed `roots` is shown relative to that root, preceded by the root's name if there are
    several. For any other absolute path, only the file name is shown.
    """
    if source.startswith(("http://", "https://")):
        return source
    for root in roots:
        below = _fixed(root).rstrip("/") + "/"
        if source.startswith(below) and below != "/":
            inner = source[len(below) :]
            return f"{PurePosixPath(below).name}/{inner}" if len(roots) > 1 else inner
        if source == root or source.startswith(f"{root}!/"):
            return PurePosixPath(root).name + source[len(root) :]
    path, mark, member = source.partition("!/")
    if _DRIVE.match(path):
        return PureWindowsPath(path).name + mark + member
    if "://" in path or path.startswith(("/", "~", "../")):
        return PurePosixPath(path).name + mark + member
    return source


def _fixed(root: str) -> str:
    """Return the folder of a pattern before its first wildcard; return any other root unchanged."""
    wild = _WILDCARD.search(root)
    return root if wild is None else root[: wild.start()].rpartition("/")[0]


def progress_of(event: dict[str, Any]) -> str:
    """Describe an event as one line about the progress; empty for events that are not shown."""
    if event["event"] == "follow_up":
        return f"the follow-up is asked as: {event['asked']}\n"
    if event["event"] == "step_started":
        return f"{event['primitive']}: {event['query']}\n"
    if event["event"] == "recovering":
        return f"trying again: {event['policy']}\n"
    return "the program is repaired\n" if event["event"] == "rejected" else ""


def answer_object(key: str, index: str, trace: Trace, *, whole: bool = False) -> dict[str, Any]:
    """Return the reply to a question.

    Args:
        key: Id under which the trace is stored.
        index: Name of the index.
        trace: Trace without the server's paths and settings.
        whole: Whether to add the trace itself.
    """
    shown: dict[str, Any] = {
        "id": key,
        "question": trace.question,
        "answer": trace.answer.text,
        "known": trace.answer.known,
        "confidence": trace.answer.confidence,
        "weak": trace.weak,
        "remark": trace.remark,
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
    if trace.method == OWN_PROGRAM or trace.value is not None or trace.returns is not None or trace.coverage:
        shown |= {"value": trace.value, "item_citations": trace.item_citations}
    if trace.method == OWN_PROGRAM or trace.coverage or (trace.value is not None and trace.returns is None):
        shown |= {
            "coverage": trace.coverage,
            "complete": trace.complete,
            "output": output_of(trace),
        }
    return {**shown, "trace": trace} if whole else shown


def output_of(trace: Trace) -> str:
    """Return the text that the last program printed."""
    return trace.programs[-1].output if trace.programs else ""

"""Traces as JSON, those of earlier versions included."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyrag.errors import DataError
from pyrag.trace.event_codec import recorded
from pyrag.trace.model import TRACE_VERSION, Trace
from pyrag.trace.old_events import events_from_content
from pyrag.trace.plain import encoded
from pyrag.trace.verdict import judged

_WITH_EVENTS = 3  # the first version that has them


def to_json(trace: Trace) -> bytes:
    """Return a trace as one line of JSON; values that JSON does not have take the forms of `pyrag.trace.plain`.

    Raises:
        DataError: A part of the trace cannot be written in any form.
    """
    try:
        return encoded(trace)
    except Exception as error:  # a method's or tool's own object may fail wherever it is touched
        raise DataError(f"a trace cannot be written ({type(error).__name__}: {error}): look into its method") from error


def from_json(data: bytes | str) -> Trace:
    """Read a trace. Raises `DataError` where the data is no trace of a version that this pyrag reads."""
    import msgspec

    try:
        values = msgspec.json.decode(data)
        written = values.get("version", 1) if isinstance(values, dict) else TRACE_VERSION
        trace = msgspec.convert(_current(values, written), Trace)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not a pyrag trace: {error}") from error
    if trace.version != TRACE_VERSION:
        raise DataError(f"this trace has version {trace.version}; this pyrag reads versions 1 to {TRACE_VERSION}")
    trace = with_events(trace) if written < _WITH_EVENTS else trace
    return trace if "remark" in values else judged(trace)  # earlier versions of pyrag kept no verdict


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


def with_events(trace: Trace) -> Trace:
    """Return a trace with events made from its content, in the place of any that it has."""
    return replace(trace, events=recorded(events_from_content(trace), trace))


def _current(values: Any, written: Any) -> Any:
    """Return the values of a trace in the form of this version.

    Version 1 kept OPERA's `goals` and HERA's `topology` as fields of the trace, where version 2 keeps them as the
    extensions of these methods. Version 3 adds events, wall-clock time, and the versions of pyrag and the index.

    Args:
        values: The decoded JSON.
        written: The version that wrote it.
    """
    if written not in (1, 2):
        return values
    values = {**values, "version": TRACE_VERSION}
    if written == 1:
        values["extensions"] = {}
        if goals := values.pop("goals", None):
            values["extensions"]["opera"] = {"goals": goals}
        if topology := values.pop("topology", None):
            values["extensions"]["hera"] = topology
    return values

"""Traces as JSON."""

from __future__ import annotations

from typing import Any

from pyrag.errors import DataError
from pyrag.trace.model import TRACE_VERSION, Trace
from pyrag.trace.plain import encoded
from pyrag.trace.verdict import judged


def to_json(trace: Trace) -> bytes:
    """Return a trace as one line of JSON. Values that JSON cannot express are converted by `pyrag.trace.plain`.

    Raises:
        DataError: A part of the trace cannot be written in any form.
    """
    try:
        return encoded(trace)
    except Exception as error:  # a method's or tool's own object may fail at any access
        raise DataError(f"a trace cannot be written ({type(error).__name__}: {error}): look into its method") from error


def from_json(data: bytes | str) -> Trace:
    """Parse a trace. Raises `DataError` if the data is not a trace of the version that this pyrag reads."""
    import msgspec

    try:
        values = msgspec.json.decode(data)
        version = values.get("version", TRACE_VERSION) if isinstance(values, dict) else TRACE_VERSION
        if isinstance(version, int) and version != TRACE_VERSION:
            raise DataError(f"this trace has version {version}; this pyrag reads version {TRACE_VERSION}")
        trace = msgspec.convert(values, Trace)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not a pyrag trace: {error}") from error
    return trace if "remark" in values else judged(trace)  # a file may omit the verdict


def citations_of(trace: Trace) -> list[dict[str, Any]]:
    """Return the cited passages with their texts, in the order of their numbers."""
    cited = []
    for citation in trace.citations:
        passage = trace.passages[citation.passage]
        cited.append(
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
    return cited

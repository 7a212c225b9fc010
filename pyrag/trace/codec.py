"""Traces as JSON."""

from __future__ import annotations

from pyrag.errors import DataError
from pyrag.trace.model import TRACE_VERSION, Trace


def to_json(trace: Trace) -> bytes:
    import msgspec

    return msgspec.json.encode(trace)


def from_json(data: bytes | str) -> Trace:
    """Read a trace. Raises `DataError` where the data is no trace of this version."""
    import msgspec

    try:
        trace = msgspec.json.decode(data, type=Trace)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not a pyrag trace: {error}") from error
    if trace.version != TRACE_VERSION:
        raise DataError(f"this trace has version {trace.version}; this pyrag reads version {TRACE_VERSION}")
    return trace

"""Traces as JSON, those of earlier versions included."""

from __future__ import annotations

from typing import Any

from pyrag.errors import DataError
from pyrag.trace.model import TRACE_VERSION, Trace


def to_json(trace: Trace) -> bytes:
    import msgspec

    return msgspec.json.encode(trace)


def from_json(data: bytes | str) -> Trace:
    """Read a trace. Raises `DataError` where the data is no trace of a version that this pyrag reads."""
    import msgspec

    try:
        values = _current(msgspec.json.decode(data))
        trace = msgspec.convert(values, Trace)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"not a pyrag trace: {error}") from error
    if trace.version != TRACE_VERSION:
        raise DataError(f"this trace has version {trace.version}; this pyrag reads versions 1 to {TRACE_VERSION}")
    return trace


def _current(values: Any) -> Any:
    """Return the values of a trace in the form of this version.

    Version 1 kept OPERA's `goals` and HERA's `topology` as fields of the trace, where version 2 keeps them as the
    extensions of these methods.
    """
    if not isinstance(values, dict) or values.get("version", 1) != 1:
        return values
    values = {**values, "version": TRACE_VERSION, "extensions": {}}
    if goals := values.pop("goals", None):
        values["extensions"]["opera"] = {"goals": goals}
    if topology := values.pop("topology", None):
        values["extensions"]["hera"] = topology
    return values

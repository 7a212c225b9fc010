"""Trace files that nobody wrote so: damaged or hostile ones end in `DataError`, or open, and never in another error."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.errors import DataError
from pyrag.trace.codec import from_json
from pyrag.trace.event_codec import events_of
from pyrag.trace.reducer import state_of

WHOLE = json.loads((Path(__file__).parent / "golden" / "version_1.json").read_bytes())
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]), st.just({}), st.just([{}])
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values inside of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in inner for found in [(*path, key), *places(one, (*path, key))]]


PLACES = [path for path in places(WHOLE) if path[0] in ("events", "steps", "programs", "warnings", "version", "answer")]


def changed(path: tuple[Any, ...], odd: Any) -> bytes:
    """Return the trace as JSON with another value at one place."""
    values = json.loads(json.dumps(WHOLE))
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return json.dumps(values).encode()


@settings(max_examples=300)
@given(st.sampled_from(PLACES), ODD)
def test_one_odd_value_is_data_error_or_opens(path: tuple[Any, ...], odd: Any) -> None:
    with contextlib.suppress(DataError):
        assert state_of(events_of(from_json(changed(path, odd)))) is not None

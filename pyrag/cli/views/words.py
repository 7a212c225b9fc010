"""Metadata of passages and coverage of calls in words."""

from __future__ import annotations

from collections.abc import Mapping

from pyrag.trace.model import Trace, shorten


def field_words(metadata: Mapping[str, object]) -> str:
    """Return the metadata of a passage as text, such as `team: ops; year: 2020`."""
    values = (
        (name, ", ".join(map(str, value)) if isinstance(value, list) else value) for name, value in metadata.items()
    )
    return "; ".join(f"{name}: {value}" for name, value in values)


def coverage_lines(trace: Trace, *, only_complete: bool = False) -> list[str]:
    """Return a sentence for each call of `each`. If there are several calls, each sentence names its question.

    Args:
        trace: The trace.
        only_complete: Leave out calls that skipped items because of a limit.
    """
    steps = [(step, step.coverage) for step in trace.steps if step.coverage is not None]
    return [
        f"{coverage}: {shorten(step.query, 100)}" if len(steps) > 1 else str(coverage)
        for step, coverage in steps
        if coverage.complete or not only_complete
    ]

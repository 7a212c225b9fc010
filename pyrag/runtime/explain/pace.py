"""Duration of a model's call, estimated from its earlier calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from pyrag.llm.pace import CallSample
from pyrag.runtime.explain.explanation import Range

DEFAULT_SECONDS = Range(0.005, 1.0, 10.0)
"""Seconds of a call, if none has been measured."""

_LOW, _HIGH = 0.6, 1.6  # range of a call's time around the expected one


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing and token count of calls.

    Attributes:
        calls: Number of measured calls.
        base: Seconds of a call, excluding the writing of its reply.
        per_token: Seconds per token of the reply.
        tokens_ratio: Number of prompt tokens that the server counts per token that we count.
    """

    calls: int = 0
    base: float = 0.0
    per_token: float = 0.0
    tokens_ratio: float = 1.0

    @classmethod
    def of(cls, samples: Sequence[CallSample]) -> Pace:
        """Return the pace of measured calls."""
        if not samples:
            return cls()
        base, per_token = _line([(sample.completion_tokens, sample.seconds) for sample in samples])
        counted = sum(sample.counted_tokens for sample in samples)
        reported = sum(sample.prompt_tokens for sample in samples)
        return cls(len(samples), base, per_token, reported / counted if counted and reported else 1.0)

    def seconds(self, reply: float) -> Range:
        """Return the seconds of a call with this number of reply tokens."""
        if not self.calls:
            return DEFAULT_SECONDS
        expected = self.base + self.per_token * reply
        return Range(expected * _LOW, expected, expected * _HIGH + self.per_token * reply)


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Return intercept and slope of reply times over reply lengths; neither is negative."""
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    if slope <= 0:
        return median(y for _, y in points), 0.0
    base = mean_y - slope * mean_x
    return (base, slope) if base >= 0 else (0.0, mean_y / mean_x)

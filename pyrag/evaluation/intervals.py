"""Bootstrap intervals of means: the range of a mean over other questions of the same kind. Standard library only.

They are 95 % percentile intervals over the questions with a fixed seed: equal scores give equal intervals. The
percentiles of scores 0 and 1 are exact, since the resampled mean is binomial.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

RESAMPLES = 1000
LEVEL = 0.95
SEED = 20260


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with the bounds of its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Mean of a minus mean of b over `n` shared questions; `p` is two-sided: the probability that chance turns the
    sign."""

    mean: float
    low: float
    high: float
    p: float
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean with its interval. Raises `ValueError` for no values."""
    mean = fmean(values)
    if all(value in (0.0, 1.0) for value in values):
        low, high = _binomial(sum(values), len(values))
    else:
        means = _resampled(values)
        low, high = _percentile(means, (1 - LEVEL) / 2), _percentile(means, (1 + LEVEL) / 2)
    return Estimate(mean, low, high)


def difference(a: Sequence[float], b: Sequence[float]) -> MeanDifference:
    """Compare paired scores by bootstrap (Berg-Kirkpatrick et al. 2012, percentile form).

    Args:
        a: Scores of the questions.
        b: Other scores of the same questions, in the same order.

    Raises:
        ValueError: There are no scores, or not as many of both.
    """
    deltas = [one - other for one, other in zip(a, b, strict=True)]
    means = _resampled(deltas)
    below = sum(mean <= 0 for mean in means) / len(means)
    above = sum(mean >= 0 for mean in means) / len(means)
    low, high = _percentile(means, (1 - LEVEL) / 2), _percentile(means, (1 + LEVEL) / 2)
    # With finite resamples no p is 0.
    return MeanDifference(fmean(deltas), low, high, min(1.0, max(2 * min(below, above), 1 / RESAMPLES)), len(deltas))


def _resampled(values: Sequence[float]) -> list[float]:
    """Return the means of resamples, in rising order."""
    if min(values) == max(values):
        return [fmean(values)] * RESAMPLES
    draw = random.Random(SEED)  # noqa: S311 - statistics, not a secret
    count = len(values)
    return sorted(sum(draw.choices(values, k=count)) / count for _ in range(RESAMPLES))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Interpolate linearly between the two nearest ranks."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def _binomial(hits: float, count: int) -> tuple[float, float]:
    """Return the bounds of Binomial(count, hits / count) / count: the smallest values that reach each share."""
    share = hits / count
    if share in (0.0, 1.0):
        return share, share
    ends, total = [], 0.0
    marks = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    for k in range(count + 1):
        log = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        total += math.exp(log + k * math.log(share) + (count - k) * math.log1p(-share))
        while marks and total >= marks[0]:
            ends.append(k / count)
            marks.pop(0)
    return ends[0], ends[1] if len(ends) > 1 else 1.0

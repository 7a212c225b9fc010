"""Bootstrap intervals of means, and a randomisation test of paired differences, with the standard library only.

Intervals are 95 % percentile intervals over the questions, with a fixed seed, so equal scores have equal intervals. The
percentiles of scores 0 and 1 are exact, since the resampled mean is binomial. The test is exact if few questions
differ, and for scores 0 and 1, for which it is the sign test.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

RESAMPLES = 1000
LEVEL = 0.95
SEED = 20260
_ENUMERATED = 14  # differences whose signs are all tried, 16,384 cases


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean with the bounds of its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Mean of a minus mean of b over `n` shared questions, with its interval.

    `p` is two-sided: the probability of a difference this large if each question's two scores were randomly swapped.
    """

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
    """Return the difference of paired scores: a bootstrap interval, and p by a randomisation test.

    The test is Fisher's (1935) and Noreen's (1989).

    Args:
        a: Scores of the questions.
        b: Other scores of the same questions, in the same order.

    Raises:
        ValueError: There are no scores, or the numbers of scores differ.
    """
    deltas = [first - second for first, second in zip(a, b, strict=True)]
    means = _resampled(deltas)
    low, high = _percentile(means, (1 - LEVEL) / 2), _percentile(means, (1 + LEVEL) / 2)
    return MeanDifference(fmean(deltas), low, high, _swap_probability(deltas), len(deltas))


def _swap_probability(deltas: Sequence[float]) -> float:
    """Return the two-sided p of paired differences under random signs, ignoring equal pairs."""
    sizes = [abs(delta) for delta in deltas if delta]
    if not sizes:
        return 1.0
    if min(sizes) == max(sizes):
        return _sign_test(sum(delta > 0 for delta in deltas), len(sizes))
    reached = abs(sum(deltas)) - 1e-9  # sums in another order may differ in their last bit
    if len(sizes) <= _ENUMERATED:
        cases = itertools.product((-1, 1), repeat=len(sizes))
        sums = [sum(size * sign for size, sign in zip(sizes, signs, strict=True)) for signs in cases]
        return sum(abs(total) >= reached for total in sums) / len(sums)
    # The sum of many random signs is normal.
    return math.erfc(reached / math.sqrt(2 * sum(size * size for size in sizes)))


def _sign_test(wins: int, count: int) -> float:
    """Return the two-sided p of `wins` heads in `count` fair coin tosses."""
    tail = sum(math.comb(count, k) for k in range(max(wins, count - wins), count + 1))
    return min(1.0, 2 * tail / float(2**count))


def _resampled(values: Sequence[float]) -> list[float]:
    """Return the means of resamples, in ascending order."""
    if min(values) == max(values):
        return [fmean(values)] * RESAMPLES
    draw = random.Random(SEED)  # noqa: S311 - statistics, not a secret
    count = len(values)
    return sorted(sum(draw.choices(values, k=count)) / count for _ in range(RESAMPLES))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile, interpolated between the two nearest ranks."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def _binomial(hits: float, count: int) -> tuple[float, float]:
    """Return the central interval, of probability `LEVEL`, for the share of hits in `count` independent trials."""
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

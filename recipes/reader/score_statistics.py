"""Statistics of scores: area under the ROC curve, and Platt's calibration of scores to probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence

_NEWTON_STEPS = 25


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the share of pairs in which a positive scores above a negative. A tie counts half.

    Args:
        positive: Scores that should be high.
        negative: Scores that should be low. The share is 0 if either side is empty.
    """
    order = sorted([(value, 1) for value in positive] + [(value, 0) for value in negative])
    ranks: dict[float, list[int]] = {}
    for place, (value, _) in enumerate(order):
        ranks.setdefault(value, []).append(place)
    mean = {value: sum(places) / len(places) for value, places in ranks.items()}
    wins = sum(mean[value] for value in positive) - len(positive) * (len(positive) - 1) / 2
    return wins / max(len(positive) * len(negative), 1)


def platt(scores: Sequence[float], right: Sequence[float]) -> tuple[float, float]:
    """Return the logistic curve from scores to the probability of being correct, fitted by Newton's method.

    Args:
        scores: At least one score.
        right: 1 or 0 for each score, or a number between.

    Returns:
        Scale and offset. The probability is `1 / (1 + exp(-(scale * score + offset)))`.
    """
    mean = sum(scores) / len(scores)
    spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / len(scores)) or 1.0
    values = [(score - mean) / spread for score in scores]
    scale, offset = 0.0, 0.0
    for _ in range(_NEWTON_STEPS):
        chances = [logistic(scale * value + offset) for value in values]
        gaps = [chance - label for chance, label in zip(chances, right, strict=True)]
        weights = [max(chance * (1 - chance), 1e-6) for chance in chances]
        slope = sum(gap * value for gap, value in zip(gaps, values, strict=True)) + scale
        a = sum(weight * value * value for weight, value in zip(weights, values, strict=True)) + 1.0
        b = sum(weight * value for weight, value in zip(weights, values, strict=True))
        c = sum(weights)
        size = a * c - b * b
        scale, offset = scale - (c * slope - b * sum(gaps)) / size, offset - (a * sum(gaps) - b * slope) / size
    return scale / spread, offset - scale * mean / spread


def logistic(value: float) -> float:
    """Return the logistic function of a value, clipped to ±30."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))

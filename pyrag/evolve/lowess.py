"""Robust locally weighted regression (Cleveland 1981), the curve that HERA's figure 3 draws through token use.

The constants are those of Cleveland's own program (netlib, `lowess.f`), whose test case this one reproduces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_EACH = 200  # points; beyond, lines are fitted at steps of a share of the range that comes to as many


def lowess(
    x: Sequence[float], y: Sequence[float], share: float = 2 / 3, robust: int = 2, delta: float | None = None
) -> list[float]:
    """The smoothed value at each `x`, which must be in rising order.

    Args:
        share: which share of the points each local line is fitted to.
        robust: how often points far from the curve are given less weight and the curve is fitted again.
        delta: lines are fitted at points so far apart, and the curve is straight between them (Cleveland's DELTA, which
            keeps the time from growing with the square of the points); None chooses 0 for a few points.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(xs) < 2:
        return list(map(float, ys))
    if delta is None:
        delta = float(xs[-1] - xs[0]) / _EACH if len(xs) > _EACH else 0.0
    fitted_at = _places(xs, delta)
    near = min(max(int(share * len(xs) + 1e-7), 2), len(xs))
    trust = np.ones_like(ys)
    curve = _fitted(xs, ys, near, trust, fitted_at)
    for _ in range(robust):
        residuals = np.abs(ys - curve)
        scale = 6 * float(np.median(residuals))
        if scale <= 1e-12 * float(np.abs(ys).max(initial=0.0)):  # the curve goes through most points
            break
        trust = np.where(residuals <= 0.999 * scale, (1 - (residuals / scale) ** 2) ** 2, 0.0)
        trust[residuals <= 0.001 * scale] = 1.0
        curve = _fitted(xs, ys, near, trust, fitted_at)
    return list(map(float, curve))


def _places(xs: Floats, delta: float) -> list[int]:
    """The positions of the points at which lines are fitted, the first and the last of all among them."""
    places = [0]
    while places[-1] < len(xs) - 1:
        within = int(np.searchsorted(xs, xs[places[-1]] + delta, side="right")) - 1
        places.append(max(places[-1] + 1, within))
    return places


def _fitted(xs: Floats, ys: Floats, near: int, trust: Floats, places: Sequence[int]) -> Floats:
    return np.interp(xs, xs[places], [_at(xs[one], xs, ys, near, trust) for one in places])


def _at(at: float, xs: Floats, ys: Floats, near: int, trust: Floats) -> float:
    """The value at `at` of the line through its neighbours, weighted by the tricube of their distance."""
    distances = np.abs(xs - at)
    reach = float(np.partition(distances, near - 1)[near - 1])
    weights = np.where(distances <= 0.999 * reach, (1 - (distances / (reach or 1.0)) ** 3) ** 3, 0.0)
    weights[distances <= 0.001 * reach] = 1.0
    weights *= trust
    total = float(weights.sum())
    if total <= 0:  # nobody near is trusted
        return float(ys[distances.argmin()])
    weights /= total
    centre = float(weights @ xs)
    spread = float(weights @ (xs - centre) ** 2)
    if np.sqrt(spread) > 0.001 * float(xs[-1] - xs[0]):
        weights = weights * (1 + (at - centre) * (xs - centre) / spread)
    return float(weights @ ys)

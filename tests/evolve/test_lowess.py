"""LOWESS against the test case in Cleveland's program (netlib, lowess.f), and properties that define it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.evolve import lowess as module
from pyrag.evolve.lowess import lowess

X = [1.0, 2, 3, 4, 5, *[6.0] * 10, 8, 10, 12, 14, 50]
Y = [18.0, 2, 15, 6, 10, 4, 16, 11, 7, 3, 14, 17, 20, 12, 9, 13, 1, 8, 5, 19]
PLAIN = [13.659, 11.145, 8.701, 9.722, 10.0, *[11.3] * 10, 13.0, 6.440, 5.596, 5.456, 18.998]
APART = [13.659, 12.347, 11.034, 9.722, 10.511, *[11.3] * 10, 13.0, 6.440, 5.596, 5.456, 18.998]  # DELTA 3
ROBUST = [14.811, 12.115, 8.984, 9.676, 10.0, *[11.346] * 10, 13.0, 6.734, 5.744, 5.415, 18.998]

values = st.floats(-1e3, 1e3, allow_nan=False)


@pytest.mark.parametrize(("robust", "delta", "expected"), [(0, 0, PLAIN), (0, 3, APART), (2, 0, ROBUST)])
def test_clevelands_test_case(robust: int, delta: float, expected: list[float]) -> None:
    assert lowess(X, Y, share=0.25, robust=robust, delta=delta) == pytest.approx(expected, abs=6e-4)


def test_of_many_points_some_are_fitted_and_the_curve_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ys = [math.sin(x / 300) + x % 7 for x in range(2000)]
    every = lowess(range(2000), ys, delta=0)
    fitted: list[float] = []

    def at(x: float, *rest: Any) -> float:
        fitted.append(x)
        return found(x, *rest)

    found = module._at
    monkeypatch.setattr(module, "_at", at)
    assert lowess(range(2000), ys) == pytest.approx(every, abs=1e-3)
    assert len(fitted) < 3 * 250  # plainly and twice robustly


@given(st.integers(0, 30), values, values, st.floats(0.2, 1), st.integers(0, 3))
def test_a_line_is_its_own_curve(count: int, slope: float, start: float, share: float, robust: int) -> None:
    line = [start + slope * x for x in range(count)]
    assert lowess(range(count), line, share, robust) == pytest.approx(line, abs=1e-6)


@given(st.lists(values, min_size=3, max_size=25), values, st.floats(0.1, 10))
def test_it_moves_and_scales_with_the_values(ys: list[float], up: float, factor: float) -> None:
    curve = lowess(range(len(ys)), ys, robust=0)
    moved = lowess(range(len(ys)), [up + factor * y for y in ys], robust=0)
    assert moved == pytest.approx([up + factor * y for y in curve], abs=1e-6)


def test_an_outlier_does_not_bend_the_robust_curve() -> None:
    line = [float(x) for x in range(30)]
    bent = [*line[:15], 500.0, *line[16:]]
    plain = lowess(range(30), bent, robust=0)
    robust = lowess(range(30), bent, robust=2)
    assert max(abs(a - b) for a, b in zip(plain, line, strict=True)) > 10
    assert max(abs(a - b) for a, b in zip(robust, line, strict=True)) < 1


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_equal_values_are_their_own_curve(value: float) -> None:
    assert lowess(range(9), [value] * 9) == pytest.approx([value] * 9)

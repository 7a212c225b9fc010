"""Intervals: against closed forms, against drawing by hand, and by how often they hold the truth."""

from __future__ import annotations

import random
from statistics import NormalDist, fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.evaluation.intervals import difference, estimate


def test_a_binomial_interval_is_exact() -> None:
    # Binomial(10, 0.5): P(X <= 1) = 0.0107 < 0.025 <= P(X <= 2) = 0.0547; P(X <= 7) = 0.945 < 0.975 <= P(X <= 8).
    found = estimate([1.0] * 5 + [0.0] * 5)
    assert (found.mean, found.low, found.high) == (0.5, 0.2, 0.8)


def test_equal_scores_leave_no_doubt() -> None:
    assert estimate([1.0, 1.0]).low == 1.0
    assert estimate([0.25, 0.25]).high == 0.25
    assert difference([1.0, 0.0], [1.0, 0.0]).p == 1.0


def test_many_questions_give_the_normal_interval() -> None:
    draw = random.Random(3)
    values = [draw.random() for _ in range(2000)]
    found = estimate(values)
    wide = NormalDist().inv_cdf(0.975) * pstdev(values) / len(values) ** 0.5
    assert found.low == pytest.approx(fmean(values) - wide, abs=wide / 8)
    assert found.high == pytest.approx(fmean(values) + wide, abs=wide / 8)


def test_intervals_cover_the_truth_at_their_level() -> None:
    draw = random.Random(4)
    held = 0
    for _ in range(300):
        found = estimate([float(draw.random() < 0.3) for _ in range(100)])
        held += found.low <= 0.3 <= found.high
    assert 0.90 <= held / 300 <= 0.99


def test_the_same_scores_give_the_same_interval() -> None:
    values = [i / 7 for i in range(8)]
    assert estimate(values) == estimate(list(values))


def test_a_difference_is_paired() -> None:
    a = [1.0] * 30 + [0.0] * 30
    b = [1.0] * 20 + [0.0] * 40  # ten questions that only a has right, none the other way
    found = difference(a, b)
    assert found.mean == pytest.approx(1 / 6)
    assert 0 < found.low < found.mean < found.high
    assert found.p <= 0.002
    turned = difference(b, a)
    assert (turned.mean, turned.low) == pytest.approx((-found.mean, -found.high), abs=0.02)


def test_chance_is_not_significant() -> None:
    draw = random.Random(5)
    a, b = ([float(draw.random() < 0.5) for _ in range(200)] for _ in range(2))
    assert difference(a, b).p > 0.05


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(4, 0, 0.125), (0, 4, 0.125), (1, 0, 1.0), (5, 0, 0.0625), (8, 0, 1 / 128), (10, 1, 24 / 2048), (3, 3, 1.0)],
)
def test_p_of_right_and_wrong_is_the_sign_test(wins: int, losses: int, p: float) -> None:
    a = [1.0] * wins + [0.0] * losses + [1.0, 0.0] * 5  # the last ten agree and say nothing
    b = [0.0] * wins + [1.0] * losses + [1.0, 0.0] * 5
    assert difference(a, b).p == pytest.approx(p)


def test_p_of_unequal_differences_counts_signs() -> None:
    # Of the eight signs of 0.5, 0.25 and 0.125, only the observed ones and their mirror reach 0.875.
    assert difference([0.5, 0.25, 0.125], [0.0, 0.0, 0.0]).p == pytest.approx(2 / 8)


@settings(max_examples=15)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0]), min_size=15, max_size=40))
def test_p_of_many_differences_is_near_the_drawn_share(deltas: list[float]) -> None:
    draw = random.Random(6)
    reached = abs(sum(deltas)) - 1e-9
    drawn = fmean(abs(sum(draw.choice((-delta, delta)) for delta in deltas)) >= reached for _ in range(1000))
    assert difference(deltas, [0.0] * len(deltas)).p == pytest.approx(drawn, abs=0.12)

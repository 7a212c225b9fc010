"""Figures of the reader: scores, ranking and calibration, without a network."""

from __future__ import annotations

import math
import random

import pytest

from pyrag.embedded.reader.neural.answerer import Candidate
from pyrag.embedded.reader.neural.decode import MarkedSpan
from pyrag.embedded.reader.neural.network import Calibration
from recipes.reader.layout import GoldQuestion, Text
from recipes.reader.measuring import Reading, outcome
from recipes.reader.score_statistics import auroc, platt

GOLD = Text("g", "Alpha", "Alpha was directed by Ann Lee in 1967.")
OTHER = Text("o", "Beta", "Beta was directed by Bo Ray in 1980.")


def test_auroc_counts_ties_as_half() -> None:
    assert auroc([3, 2], [1, 0]) == 1.0
    assert auroc([0], [1]) == 0.0
    assert auroc([1, 1], [1]) == 0.5


def test_calibration_finds_the_curve() -> None:
    rng = random.Random(1)
    scores = [rng.gauss(2, 4) for _ in range(6000)]
    right = [float(rng.random() < 1 / (1 + math.exp(-(0.5 * score - 1)))) for score in scores]
    assert platt(scores, right) == pytest.approx((0.5, -1), abs=0.12)


def test_calibration_survives_separable_scores() -> None:
    scale, offset = platt([-5, -4, 4, 5], [0, 0, 1, 1])
    assert 0 < scale < 10
    assert abs(offset) < 10


def test_the_subjects_page_decides_between_like_margins() -> None:
    question = GoldQuestion("Who directed Alpha?", ("Ann Lee",), GOLD, "2wiki")
    found = (
        Candidate(MarkedSpan(1, 21, 27, 5.0), "Bo Ray", about=0.0, agrees=0.0),
        Candidate(MarkedSpan(0, 22, 29, 4.0), "Ann Lee", about=1.0, agrees=0.0),
    )
    reading = Reading(question, (GOLD, OTHER), found)
    assert outcome(reading, Calibration()).em == 0.0
    best = outcome(reading, Calibration(about=2.0))
    assert (best.em, best.picked, best.answerable) == (1.0, True, True)
    assert outcome(Reading(question, (OTHER,), ()), Calibration()).answerable is False

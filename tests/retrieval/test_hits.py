"""Hits of search tools, in replies of any usual form."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pyrag.retrieval.remote.hits import fields_of_hit, hits_in

HIT = {"text": "The weir is old."}


@pytest.mark.parametrize(
    "reply",
    [
        {"results": [], "warnings": ["the index is stale"]},
        {"result": {"results": []}, "suggestions": ["weirs"]},
        {"hits": {"total": {"value": 0}, "hits": []}, "shards": {"failures": ["timeout"]}},
        {"errors": []},
        {},
        [],
        "nothing",
    ],
)
def test_a_reply_without_hits_has_none(reply: Any) -> None:
    assert hits_in(reply) == []


@pytest.mark.parametrize(
    "reply",
    [
        {"results": [HIT], "warnings": ["the index is stale"]},
        {"data": [], "results": [HIT]},
        {"output": {"found": [HIT]}},
        {"unusual": {"list": [HIT]}},
        HIT,
    ],
)
def test_hits_are_found_beside_other_lists(reply: Any) -> None:
    assert hits_in(reply) == [HIT]


@pytest.mark.parametrize(("score", "number"), [("0.5", 0.5), (10**400, None), ("high", None), (True, None), ([], None)])
def test_scores_are_numbers(score: Any, number: float | None) -> None:
    assert fields_of_hit({**HIT, "score": score})["score"] == number


def test_scores_that_are_not_finite_stay_for_the_check() -> None:
    assert math.isnan(fields_of_hit({**HIT, "score": "nan"})["score"])

"""Which entries an orchestrator is shown, against the formula worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.methods.hera.experience.choice import REDUNDANT, choose, related, similarity
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import QUESTION_TYPES, Characterisation

BRIDGE = Characterisation("bridge")
WORDS = ["person", "city", "validate", "passages", "compare", "parallel", "decompose", "evidence", "dates"]

insights = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
profiles = st.builds(Characterisation, st.sampled_from(QUESTION_TYPES[:3]))


@st.composite
def libraries(draw: st.DrawFn) -> list[Experience]:
    entries = []
    for number in range(draw(st.integers(0, 8))):
        uses = draw(st.integers(0, 9))
        entries.append(Experience(number + 1, draw(profiles), draw(insights), draw(st.integers(0, uses)), uses))
    return entries


def test_similarity_is_the_cosine_of_stem_sets() -> None:
    assert similarity("Validate the passages", "validating a passage") == pytest.approx(1.0)
    assert similarity("validate passages", "compare cities") == 0.0
    assert similarity("validate passages early", "validate dates") == pytest.approx(1 / math.sqrt(3 * 2))
    assert similarity("", "validate") == 0.0


def test_a_proven_insight_comes_before_one_that_failed() -> None:
    proven = Experience(1, BRIDGE, "decompose the question", utility=9, uses=10)
    failing = Experience(2, BRIDGE, "answer at once", utility=0, uses=10)
    assert choose([failing, proven], BRIDGE, limit=1) == [proven]
    assert choose([failing, proven], BRIDGE, limit=2) == [proven, failing]


def test_an_untried_insight_comes_before_one_that_failed_often() -> None:
    untried = Experience(1, BRIDGE, "validate passages")
    failing = Experience(2, BRIDGE, "compare dates", utility=1, uses=9)
    assert choose([failing, untried], BRIDGE, limit=1) == [untried]


def test_of_two_insights_that_say_the_same_one_is_shown() -> None:
    first = Experience(1, BRIDGE, "Validate the passages before you answer.", utility=3, uses=3)
    same = Experience(2, BRIDGE, "Before answering, validate passages.", utility=2, uses=2)
    other = Experience(3, BRIDGE, "Compare the dates in the conclude agent.")
    assert similarity(first.insight, same.insight) >= REDUNDANT
    assert choose([first, same, other], BRIDGE) == [first, other]


def test_only_questions_of_the_same_type_are_similar() -> None:
    entry = Experience(1, Characterisation("comparison", "hard", "date"), "Compare the dates.")
    assert choose([entry], BRIDGE) == []
    assert choose([entry], Characterisation("comparison", "easy")) == [entry]


def test_five_are_shown_and_five_compared_at_most() -> None:
    unlike = [Experience(number, BRIDGE, f"word{number} term{number}") for number in range(1, 9)]
    assert len(choose(unlike, BRIDGE)) == 5
    alike = [Experience(number, BRIDGE, f"validate passages word{number}") for number in range(1, 9)]
    assert [one.id for one in related(alike, BRIDGE, "validate passages word8")] == [8, 1, 2, 3, 4]


def test_two_of_five_common_stems_are_compared() -> None:
    five = Experience(1, BRIDGE, "validate passages cities compare dates")
    assert similarity(five.insight, "validate passages titles readers orders") == pytest.approx(0.4)
    assert related([five], BRIDGE, "validate passages titles readers orders") == [five]
    three = Experience(2, BRIDGE, "validate cities dates")
    assert similarity(three.insight, "validate titles orders") == pytest.approx(1 / 3)
    assert related([three], BRIDGE, "validate titles orders") == []


@given(libraries(), profiles, st.integers(0, 5), st.floats(0, 1))
def test_choice_is_greedy_by_the_formula(
    library: list[Experience], profile: Characterisation, limit: int, weight: float
) -> None:
    left, chosen = [one for one in library if one.profile.type == profile.type], []
    while left and len(chosen) < limit:

        def score(one: Experience) -> float:
            likest = max([similarity(one.insight, other.insight) for other in chosen], default=0.0)
            diversity = 0.5 * (1 - likest) + 0.5 / (1 + one.uses)
            return weight * (one.utility + 1) / (one.uses + 2) + (1 - weight) * diversity

        best = max(map(score, left))
        chosen.append(next(one for one in left if math.isclose(score(one), best, abs_tol=1e-12)))
        left = [
            one
            for one in left
            if one not in chosen and all(similarity(one.insight, other.insight) < REDUNDANT for other in chosen)
        ]
    assert {one.id for one in choose(library, profile, limit, weight)} == {one.id for one in chosen}


@given(libraries(), profiles, insights)
def test_related_entries_share_stems_and_type(
    library: list[Experience], profile: Characterisation, insight: str
) -> None:
    found = related(library, profile, insight)
    assert all(one.profile.type == profile.type and similarity(one.insight, insight) > 0 for one in found)
    scores = [similarity(one.insight, insight) for one in found]
    assert scores == sorted(scores, reverse=True)
    same = [one for one in library if one.profile.type == profile.type and one.insight == insight]
    assert not same or found

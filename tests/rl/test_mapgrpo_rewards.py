"""MAPGRPO's role rewards: bounds, monotony, the paper's weights, and NDCG against a formula written another way."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.agents.goals.goal import Goal
from pyrag.errors import ConfigError
from pyrag.evaluation.metrics import ndcg
from pyrag.methods.opera.goal_program import compile_goals
from pyrag.methods.opera.protocol import STATE, OperaState, planned_goals
from pyrag.trace.model import Answer, Program, Step, Trace
from pyrag_rl.mapgrpo.plans import completion, execution, logic, read_plan, structure
from pyrag_rl.mapgrpo.rewards import (
    AnalysisWeights,
    PlanWeights,
    RewriteWeights,
    analysis_score,
    plan_score,
    read_rewrite,
    rewrite_score,
    weights_of,
)

QUESTION = "Where is the company that acquired WhatsApp headquartered?"
FIRST = {"step": 1, "goal": "Which company acquired WhatsApp?", "type": "company", "needs": []}
SECOND = {"step": 2, "goal": "Where is [company from step 1] headquartered?", "type": "city", "needs": [1]}
PLAN_KEYS = st.sampled_from(["goals", "goal", "step", "type", "needs", "search"])
PLAN_LIKE = st.text(max_size=200) | st.recursive(
    st.none() | st.text(max_size=9) | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAN_KEYS, inner, max_size=4),
    max_leaves=12,
).map(json.dumps)
IDS = [f"p{number}" for number in range(8)]


def goals(*listed: Any) -> str:
    return json.dumps({"rationale": "", "goals": list(listed)})


def ran(*known: bool, answer: str = "Menlo Park") -> Trace:
    """A trace of the plan FIRST, SECOND whose goals have answers where `known` says so."""
    plan = read_plan(goals(FIRST, SECOND))
    program = compile_goals(QUESTION, plan.goals)
    steps = tuple(
        Step(number, "answer", "q", line=2 * number + 2, mode="evidence", answer=Answer("x" if one else "unknown", one))
        for number, one in enumerate(known)
    )
    final = Answer(answer, known=known[-1])
    return Trace(
        QUESTION,
        final,
        steps=steps,
        extensions=STATE.plain(OperaState(plan.goals)),
        programs=(Program(program, "test"),),
    )


def judged(decision: str, answer: str = "", **more: Any) -> str:
    said = {"analysis": "", "decision": decision, "answer": answer, "confidence": 0.9, "documents": [1], "missing": ""}
    return json.dumps({**said, **more})


def slow_ndcg(ranked: Sequence[str], gold: Sequence[str], k: int) -> float:
    """Another way to the same figure: gains in a table, the ideal by trying every order of the gains."""
    seen: set[str] = set()
    gains = []
    for one in ranked[:k]:
        gains.append(1 if one in gold and one not in seen else 0)
        seen.add(one)

    def dcg(values: Sequence[int]) -> float:
        return sum(value * math.log(2) / math.log(2 + place) for place, value in enumerate(values))

    wanted = [1] * min(len(set(gold)), k) + [0] * k
    ideal = max(map(dcg, set(itertools.permutations(wanted[:4]))), default=0.0)
    return dcg(gains) / ideal if ideal else 0.0


@given(st.permutations(IDS), st.sets(st.sampled_from(IDS), max_size=3), st.integers(1, 10))
def test_ndcg_equals_a_formula_written_another_way(ranked: list[str], gold: set[str], k: int) -> None:
    assert ndcg(ranked, sorted(gold), k) == pytest.approx(slow_ndcg(ranked, sorted(gold), k))


@given(st.permutations(IDS), st.integers(1, 7), st.integers(1, 10))
def test_ndcg_grows_where_a_gold_passage_moves_up(ranked: list[str], place: int, k: int) -> None:
    gold = [ranked[place]]
    higher = [*ranked[: place - 1], ranked[place], ranked[place - 1], *ranked[place + 1 :]]
    assert ndcg(higher, gold, k) >= ndcg(ranked, gold, k)


def test_ndcg_by_hand() -> None:
    assert ndcg(["a", "b", "c"], ["a"], 3) == 1.0
    assert ndcg(["b", "a", "c"], ["a"], 3) == pytest.approx(1 / math.log2(3))
    assert ndcg(["b", "c", "a"], ["a"], 2) == 0.0
    assert ndcg(["a", "c", "b"], ["a", "b"], 3) == pytest.approx((1 + 0.5) / (1 + 1 / math.log2(3)))
    assert ndcg(["a"], [], 3) == 0.0


class TestPlan:
    def test_a_sound_plan_with_the_gold_answer_scores_one(self) -> None:
        found = plan_score(read_plan(goals(FIRST, SECOND)), QUESTION, ["Menlo Park"], ran(True, True), hops=2)
        assert (found.score, found.logic, found.structure, found.execution) == (1.0, 1.0, 1.0, 1.0)
        assert found.error == ""

    def test_a_plan_that_failed_keeps_its_text_score(self) -> None:
        found = plan_score(read_plan(goals(FIRST, SECOND)), QUESTION, ["Menlo Park"], None, hops=2)
        assert found.score == pytest.approx(0.4 + 0.3)

    def test_half_of_execution_is_for_answered_goals(self) -> None:
        assert completion(ran(True, False)) == 0.5
        assert execution(ran(True, False), 0.0) == 0.25
        assert execution(ran(True, True), 0.0) == 0.5
        assert execution(None, 0.0) == 0.0

    def test_one_search_for_two_hops_is_half_a_plan(self) -> None:
        alone = {"step": 1, "goal": QUESTION, "type": "city", "needs": []}
        assert logic(read_plan(goals(alone)), QUESTION, hops=2) == 0.5
        assert logic(read_plan(goals(alone)), QUESTION) == 1.0

    @pytest.mark.parametrize(
        ("completion", "formed", "error"),
        [
            ("I cannot plan this.", 0.0, "no_program"),
            (goals(), 0.0, "no_program"),
            ("[1, 2]", 0.0, "bad_form"),
            (goals({**FIRST, "goal": "Which [city from step 2]?"}, SECOND), 0.5, "bad_form"),
        ],
    )
    def test_plans_that_cannot_run_have_no_logic(self, completion: str, formed: float, error: str) -> None:
        plan = read_plan(completion)
        assert structure(plan) == formed
        found = plan_score(plan, QUESTION, ["Menlo Park"], None)
        assert (found.logic, found.error) == (0.0, error)
        assert found.score == pytest.approx(0.3 * formed)

    @pytest.mark.parametrize(
        ("listed", "formed", "sound"),
        [
            ((FIRST, {**SECOND, "goal": "Where is [step 1] headquartered?"}), 0.0, 1.0),
            ((FIRST, {**SECOND, "goal": "Where is #1 headquartered?"}), 0.0, 1.0),
            (({**FIRST, "type": "date"}, SECOND), 1.0, 0.5),
            ((FIRST, {**SECOND, "goal": "Where is it headquartered?"}), 0.0, 1.0),
        ],
    )
    def test_what_the_runtime_only_understood_is_worth_less(
        self, listed: tuple[Any, ...], formed: float, sound: float
    ) -> None:
        plan = read_plan(goals(*listed), QUESTION)
        assert (structure(plan), logic(plan, QUESTION)) == (formed, sound)

    @given(PLAN_LIKE)
    def test_any_text_has_a_score_from_0_to_1(self, text: str) -> None:
        found = plan_score(read_plan(text), QUESTION, ["Menlo Park"], None)
        assert 0.0 <= found.score <= 1.0

    @given(st.lists(st.booleans(), min_size=2, max_size=2), st.booleans())
    def test_more_answered_goals_are_never_worth_less(self, known: list[bool], right: bool) -> None:
        plan, gold = read_plan(goals(FIRST, SECOND)), ["Menlo Park" if right else "Paris"]
        fewer = plan_score(plan, QUESTION, gold, ran(*known)).score
        more = plan_score(plan, QUESTION, gold, ran(True, True)).score
        assert more >= fewer


class TestAnalysis:
    @pytest.mark.parametrize(
        ("completion", "sufficient", "score"),
        [
            (judged("YES", "Meta"), True, 1.0),
            (judged("YES", "Google"), True, 0.25 + 0.1),
            (judged("NO", missing="the buyer"), True, 0.1),
            (judged("NO", missing="the buyer"), False, 1.0),  # no answer is the right one
            (judged("YES", "Meta"), False, 0.1),
            ('{"decision": "YES", "answer": "Meta"}', True, 0.25 + 0.65 + 0.05),  # read, but not in form
            ("Meta", True, 0.0),
            (judged("YES"), True, 0.0),  # a decision without its answer
        ],
    )
    def test_scores_by_hand(self, completion: str, sufficient: bool, score: float) -> None:
        found = analysis_score(completion, sufficient=sufficient, golds=["Meta"], documents=2)
        assert found.score == pytest.approx(score)

    @given(st.text(max_size=200), st.booleans())
    def test_any_text_has_a_score_from_0_to_1(self, text: str, sufficient: bool) -> None:
        for said in (text, judged("YES", text), judged(text, "Meta")):
            assert 0.0 <= analysis_score(said, sufficient=sufficient, golds=["Meta"], documents=2).score <= 1.0

    def test_ten_guesses_are_no_exact_match(self) -> None:
        guesses = ", ".join(["Meta", *"ABCDEFGHI"])
        assert analysis_score(judged("YES", guesses), sufficient=True, golds=["Meta"], documents=2).em == 0.0


class TestRewrite:
    def said(self, query: str) -> str:
        return json.dumps({"strategy": "", "query": query, "keywords": []})

    def test_weights_of_table_6(self) -> None:
        found = rewrite_score(self.said("x"), ["b", "a"], ["a"], k=2)
        assert found.score == pytest.approx(0.9 * math.sqrt(1 / math.log2(3)) + 0.1)

    def test_a_query_that_was_tried_is_not_searched_for(self) -> None:
        assert read_rewrite(self.said("Menlo Park population"), ["population menlo PARK"]) == ("", "tried_before")
        assert read_rewrite(self.said("Menlo Park census"), ["population of Menlo Park"]) == ("Menlo Park census", "")
        assert read_rewrite("no JSON", []) == ("", "bad_form")

    @given(st.text(max_size=100), st.permutations(IDS), st.integers(1, 10))
    def test_any_text_has_a_score_from_0_to_1(self, text: str, ranked: list[str], k: int) -> None:
        _, error = read_rewrite(text, [])
        assert 0.0 <= rewrite_score(text, ranked, ["p1", "p2"], k=k, error=error).score <= 1.0

    @given(st.permutations(IDS), st.integers(1, 7))
    def test_a_better_rank_is_never_worth_less(self, ranked: list[str], place: int) -> None:
        higher = [*ranked[: place - 1], ranked[place], ranked[place - 1], *ranked[place + 1 :]]
        gold = [ranked[place]]
        better, worse = (rewrite_score(self.said("x"), one, gold, k=5).score for one in (higher, ranked))
        assert better >= worse


def test_weights_default_to_table_6_and_sum_to_one() -> None:
    assert PlanWeights() == PlanWeights(0.4, 0.3, 0.3)
    assert AnalysisWeights() == AnalysisWeights(0.25, 0.65, 0.1)
    assert RewriteWeights() == RewriteWeights(0.9, 0.1)
    assert weights_of(RewriteWeights, {"ndcg": 0.8, "form": 0.2}) == RewriteWeights(0.8, 0.2)
    with pytest.raises(ConfigError, match="sum up to 1"):
        weights_of(RewriteWeights, {"ndcg": 0.8})
    with pytest.raises(ConfigError, match="did you mean 'form'"):
        weights_of(AnalysisWeights, {"from": 0.1})


def test_goals_of_the_helper_are_the_runtimes() -> None:
    assert planned_goals(ran(True, True))[0] == Goal(1, FIRST["goal"], "company", (), FIRST["goal"])

"""Scores of MAPGRPO: role rewards (equations 7, 9, 10 of OPERA, weights of its table 6), pre-scores (equation 14).

Each reward is a weighted sum of results of the runtime (its parsers, executor and retriever); nothing is parsed or
executed here. All parts and sums are from 0 to 1. The `compute_score` of `pyrag_rl.rewards.environment` parses rows,
runs plans and searches, and handles errors, for all agents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from pyrag.agents.goals.goal import Goal
from pyrag.agents.parsing.judgements import Judged, parse_judged
from pyrag.agents.rewriter import parse_rewrite
from pyrag.agents.schemas import JUDGEMENT, REWRITE, Schema
from pyrag.episode.recovery import plain
from pyrag.errors import BadOutputError, ConfigError, nearest
from pyrag.evaluation.metrics import ndcg, score_text, script_of
from pyrag.llm.schema import fits
from pyrag.trace.model import Trace
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.mapgrpo.plans import ReadPlan, completion, execution, logic, read_plan, searches, structure
from pyrag_rl.mapgrpo.prescored import Candidate
from pyrag_rl.rewards.score import Score

WELL_FORMED, READABLE = (
    1.0,
    0.5,
)  # f_format: JSON of the agent's schema and nothing else; any other form that its parser reads


@dataclass(frozen=True, slots=True)
class PlanWeights:
    """Weights λ1, λ2, λ3 of equation 7."""

    logic: float = 0.4
    structure: float = 0.3
    execution: float = 0.3


@dataclass(frozen=True, slots=True)
class AnalysisWeights:
    """Weights α, β, γ of equation 9."""

    sufficiency: float = 0.25
    em: float = 0.65
    form: float = 0.1


@dataclass(frozen=True, slots=True)
class RewriteWeights:
    """Weights ω1, ω2 of equation 10."""

    ndcg: float = 0.9
    form: float = 0.1


@dataclass(frozen=True, slots=True)
class PrescoreWeights:
    """Weights of equation 14, from the authors' release. Their sum is 1."""

    logic: float = 0.25
    execution: float = 0.25
    answer: float = 0.3
    efficiency: float = 0.1
    placeholders: float = 0.1


W = TypeVar("W", PlanWeights, AnalysisWeights, RewriteWeights)


def weights_of(kind: type[W], by_part: Mapping[str, float]) -> W:
    """Return the weights of table 6, or a config's weights.

    Args:
        kind: Class of the agent's weights.
        by_part: Weights by part, for all parts or none.

    Raises:
        ConfigError: A part is unknown, a weight is negative, or the sum is not 1.
    """
    known = [field.name for field in fields(kind)]
    for name in by_part:
        if name not in known:
            raise ConfigError(f"role_weights has no part {name!r} for this agent{nearest(name, known)}")
    weights = kind(**by_part)
    values = [getattr(weights, name) for name in known]
    if min(values) < 0 or abs(sum(values) - 1) > 1e-6:
        raise ConfigError(f"role_weights must not be negative and sum up to 1, not {sum(values):g}: name all of them")
    return weights


def plan_score(
    plan: ReadPlan,
    question: str,
    golds: Sequence[str],
    trace: Trace | None,
    *,
    hops: int = 0,
    source: str = "",
    weights: PlanWeights = PlanWeights(),
) -> Score:
    """Return the score of a plan by equation 7.

    Args:
        plan: The completion as the runtime parsed it.
        question: The user's question.
        golds: Gold spellings of the answer.
        trace: Run of the plan's goals; None if they cannot run.
        hops: Number of searches that the question needs; 0 if unknown.
        source: Name of the data set, whose official script is used for scoring.
        weights: Weights of the parts.
    """
    text = trace.answer.text if trace and trace.answer.known else ""
    em, f1, _ = score_text(text, golds, script_of(source)) if text else (0.0, 0.0, 0.0)
    sound, formed, ran = logic(plan, question, hops), structure(plan), execution(trace, em)
    return Score(
        score=weights.logic * sound + weights.structure * formed + weights.execution * ran,
        em=em,
        f1=f1,
        form=float(bool(plan.goals)),
        logic=sound,
        structure=formed,
        execution=ran,
        error="" if plan.goals else "bad_form" if plan.listed else "no_program",
        trace=trace,
        detail=plan.fault,
    )


def prescored(
    candidate: str, row: TrainRow, trace: Trace | None, origin: str, weights: PrescoreWeights = PrescoreWeights()
) -> Candidate:
    """Return a candidate with its five components, and their weighted sum (equation 14).

    Args:
        candidate: Completion of the Plan agent.
        row: Row of the question.
        trace: Run of the plan; None for a plan that cannot run.
        origin: Name of the author.
        weights: Weights of the components.
    """
    read = read_plan(candidate, row.question)
    text = trace.answer.text if trace and trace.answer.known else ""
    parts = {
        "logic": logic(read, row.question, row.hops),
        "execution": completion(trace) if trace and trace.error is None else 0.0,
        "answer": score_text(text, row.answers, script_of(row.source))[0] if text else 0.0,
        "efficiency": efficiency(read.goals, row.hops),
        "placeholders": structure(read),
    }
    score = sum(getattr(weights, name) * value for name, value in parts.items())
    return Candidate(
        id=row.id,
        source=row.source,
        question=row.question,
        completion=candidate,
        origin=origin,
        score=score,
        **parts,
    )


def efficiency(goals: Sequence[Goal], hops: int) -> float:
    """Return hops divided by searches, at most 1; 0 for a plan without a search.

    Args:
        goals: Goals of the plan.
        hops: Number of searches that the question needs; 0 if unknown, which scores 1.
    """
    made = searches(goals)
    return 0.0 if not made else min(1.0, hops / made) if hops else 1.0


def analysis_score(
    completion: str,
    *,
    sufficient: bool,
    golds: Sequence[str],
    documents: int,
    source: str = "",
    weights: AnalysisWeights = AnalysisWeights(),
) -> Score:
    """Return the score of a judgement by equation 9. If the documents are insufficient, a "no" is an exact match.

    Args:
        completion: The agent's reply.
        sufficient: Whether the documents contain the answer.
        golds: Gold spellings of the answer.
        documents: Number of documents in the prompt.
        source: Name of the data set, whose official script is used for scoring.
        weights: Weights of the parts.
    """
    try:
        judgement = parse_judged(completion, documents)
    except BadOutputError as error:
        return Score(error="bad_form", detail=str(error))
    judged = float(judgement.known == sufficient)
    em, f1 = _answered(judgement, sufficient, golds, source)
    form = _form(completion, JUDGEMENT)
    return Score(
        score=weights.sufficiency * judged + weights.em * em + weights.form * form,
        sufficiency=judged,
        em=em,
        f1=f1,
        form=form,
    )


def _answered(judgement: Judged, sufficient: bool, golds: Sequence[str], source: str) -> tuple[float, float]:
    if not sufficient or not judgement.known:
        right = float(not sufficient and not judgement.known)
        return right, right
    return score_text(judgement.text, golds, script_of(source))[:2]


def read_rewrite(completion: str, tried: Sequence[str]) -> tuple[str, str]:
    """Return the query of a completion and an empty error, or an empty query and the name of the error.

    Args:
        completion: The agent's reply.
        tried: Earlier queries; repeating one of them is the error `tried_before`.
    """
    try:
        query = parse_rewrite(completion)[0]
    except BadOutputError:
        return "", "bad_form"
    return ("", "tried_before") if plain(query) in map(plain, ["", *tried]) else (query, "")


def rewrite_score(
    completion: str,
    ranked: Sequence[str],
    golden: Sequence[str],
    *,
    k: int,
    error: str = "",
    weights: RewriteWeights = RewriteWeights(),
) -> Score:
    """Return the score of a rewritten query by equation 10.

    Args:
        completion: The agent's reply.
        ranked: Ids of the passages that the query retrieved, best first.
        golden: Ids of the gold passages.
        k: Cut-off of NDCG.
        error: Error that `read_rewrite` returned.
        weights: Weights of the parts.
    """
    gain = math.sqrt(ndcg(ranked, golden, k))
    form = 0.0 if error == "bad_form" else _form(completion, REWRITE)
    return Score(score=weights.ndcg * gain + weights.form * form, ndcg=gain, form=form, error=error)


def _form(completion: str, schema: Schema) -> float:
    return WELL_FORMED if fits(completion, schema) else READABLE

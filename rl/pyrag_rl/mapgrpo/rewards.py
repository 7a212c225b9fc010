"""The role rewards of MAPGRPO: equations 7, 9 and 10 of OPERA with the weights of its table 6.

Each takes what the runtime read and did (its parsers, its executor, its retriever) and weighs it; nothing is parsed or
executed here. All parts and sums are from 0 to 1. Left out: reading rows, running plans and searches, and catching
errors, which `pyrag_rl`'s one `compute_score` does for all agents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from pyrag.agents.rewriter import parse_rewrite
from pyrag.agents.schemas import REWRITE, Schema
from pyrag.episode.recovery import plain
from pyrag.errors import BadOutputError, ConfigError, nearest
from pyrag.evaluation.metrics import ndcg, score_text, script_of
from pyrag.llm.schema import fits
from pyrag.methods.opera.judgements import Judged, parse_judged
from pyrag.methods.opera.schemas import JUDGEMENT
from pyrag.trace.model import Trace
from pyrag_rl.mapgrpo.plans import ReadPlan, execution, logic, structure
from pyrag_rl.rewards.score import Score

WELL_FORMED, READABLE = 1.0, 0.5  # f_format: JSON of the agent's schema and nothing else; what its parser could read


@dataclass(frozen=True, slots=True)
class PlanWeights:
    """λ1, λ2, λ3 of equation 7."""

    logic: float = 0.4
    structure: float = 0.3
    execution: float = 0.3


@dataclass(frozen=True, slots=True)
class AnalysisWeights:
    """α, β, γ of equation 9."""

    sufficiency: float = 0.25
    em: float = 0.65
    form: float = 0.1


@dataclass(frozen=True, slots=True)
class RewriteWeights:
    """ω1, ω2 of equation 10."""

    ndcg: float = 0.9
    form: float = 0.1


W = TypeVar("W", PlanWeights, AnalysisWeights, RewriteWeights)


def weights_of(kind: type[W], given: Mapping[str, float]) -> W:
    """Return the weights of table 6, with those of a config in their place.

    Args:
        kind: the class of the agent's weights.
        given: weights by part; all parts, or none.

    Raises:
        ConfigError: an unknown part, a negative weight, or a sum other than 1.
    """
    known = [one.name for one in fields(kind)]
    for name in given:
        if name not in known:
            raise ConfigError(f"role_weights has no part {name!r} for this agent{nearest(name, known)}")
    weights = kind(**given)
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
    """Score a plan by equation 7.

    Args:
        plan: the completion as the runtime read it.
        question: the user's question.
        golds: gold spellings of the answer.
        trace: the run of the plan's goals; None if they cannot run.
        hops: searches that the question takes; 0 if unknown.
        source: name of the data set, whose official script scores.
        weights: of the parts.
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


def analysis_score(
    completion: str,
    *,
    sufficient: bool,
    golds: Sequence[str],
    documents: int,
    source: str = "",
    weights: AnalysisWeights = AnalysisWeights(),
) -> Score:
    """Score a judgement by equation 9. Where documents do not suffice, saying so is an exact match.

    Args:
        completion: the agent's reply.
        sufficient: whether the documents hold the answer.
        golds: gold spellings of the answer.
        documents: number of documents in the prompt.
        source: name of the data set, whose official script scores.
        weights: of the parts.
    """
    try:
        said = parse_judged(completion, documents)
    except BadOutputError as error:
        return Score(error="bad_form", detail=str(error))
    judged = float(said.known == sufficient)
    em, f1 = _answered(said, sufficient, golds, source)
    form = _form(completion, JUDGEMENT)
    return Score(
        score=weights.sufficiency * judged + weights.em * em + weights.form * form,
        sufficiency=judged,
        em=em,
        f1=f1,
        form=form,
    )


def _answered(said: Judged, sufficient: bool, golds: Sequence[str], source: str) -> tuple[float, float]:
    if not sufficient or not said.known:
        right = float(not sufficient and not said.known)
        return right, right
    return score_text(said.text, golds, script_of(source))[:2]


def read_rewrite(completion: str, tried: Sequence[str]) -> tuple[str, str]:
    """Return the query of a completion and an empty error, or an empty query and the name of the error.

    Args:
        completion: the agent's reply.
        tried: earlier queries; one of them again is the error `tried_before`.
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
    """Score a rewritten query by equation 10.

    Args:
        completion: the agent's reply.
        ranked: ids of the passages that the query found, best first.
        golden: ids of the gold passages.
        k: cut-off of NDCG.
        error: the error of `read_rewrite`.
        weights: of the parts.
    """
    found = math.sqrt(ndcg(ranked, golden, k))
    form = 0.0 if error == "bad_form" else _form(completion, REWRITE)
    return Score(score=weights.ndcg * found + weights.form * form, ndcg=found, form=form, error=error)


def _form(completion: str, schema: Schema) -> float:
    return WELL_FORMED if fits(completion, schema) else READABLE

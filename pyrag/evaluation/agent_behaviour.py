"""Behaviour of agents over traces: calls by role, success patterns, effect of rewrites (OPERA, tables 2, 10 and 12).

Works for every method that retries steps. Scores and their intervals are in `summary`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.metrics import is_claim
from pyrag.evaluation.retrieval_recall import accepted_of
from pyrag.evaluation.runs.folder import Run
from pyrag.evaluation.scoring import ResultRow
from pyrag.methods.registry import counts_of
from pyrag.trace.model import Attempt, Step, Trace

ROLES = ("plan", "analysis", "rewrite")
_SEARCH = re.compile(r"\bretrieve\(")
PATTERNS = ("direct", "one rewrite", "several rewrites")


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """Answered question, with its exact match."""

    question: Question
    trace: Trace
    em: float


@dataclass(frozen=True, slots=True)
class Depth:
    """Depth of the first plans of `n` questions.

    Attributes:
        searches: Mean number of searches.
        single: Share of plans with one search.
        short: Share of plans with fewer searches than the question has hops.
    """

    n: int
    searches: float
    single: float
    short: float


@dataclass(frozen=True, slots=True)
class AgentStats:
    """Means per question and shares from 0 to 1; None if there is nothing to count.

    Attributes:
        patterns: Shares of the correctly answered questions, by the maximum number of rewrites of one step.
        efficiency: Share of rewritten steps that ended in an answer.
        efficient: Share of rewritten steps that ended in an answer and belong to a correctly answered question.
        goals: Number of goals.
        hops: Number of goals with an answer.
        before: Recall of gold passages after the first attempt, over steps whose first attempt failed.
        after: Recall of gold passages after all attempts, over the same steps.
        depth: Depth of plans by the question's hops.
    """

    n: int
    em: float
    calls: float
    roles: dict[str, float]
    patterns: dict[str, float]
    efficiency: float | None
    efficient: float | None
    goals: float
    hops: float
    failed: int
    before: float | None
    after: float | None
    depth: dict[int, Depth]

    @property
    def em_per_call(self) -> float:
        """Percentage points of exact match per model call."""
        return 100 * self.em / self.calls if self.calls else 0.0


def outcomes_of(run: Run, rows: Iterable[ResultRow]) -> dict[tuple[str, str], list[AnsweredQuestion]]:
    """Group rows with their traces by set and method.

    Args:
        run: Run with the traces.
        rows: Some of its rows.

    Raises:
        DataError: A trace is missing.
    """
    groups: dict[tuple[str, str], list[AnsweredQuestion]] = {}
    for row in rows:
        gold = tuple(hop.gold for hop in row.support)
        question = Question(row.id, row.question, row.gold, row.type, row.hops)
        titled = is_claim(row.gold)
        matches = {hop.gold: hop.passages for hop in row.support if hop.passages}
        named = {"supporting_titles": gold} if titled else {"supporting": gold, "supporting_alt": matches}
        question = replace(question, **named)
        groups.setdefault((row.set, row.method), []).append(AnsweredQuestion(question, run.trace(row), row.em))
    return dict(sorted(groups.items()))


def agent_stats(outcomes: Sequence[AnsweredQuestion]) -> AgentStats:
    """Return the statistics of outcomes. Raises `ValueError` if there are none."""
    if not outcomes:
        raise ValueError("there are no outcomes to describe")
    counts = [counts_of(outcome.trace) for outcome in outcomes]
    right = [outcome for outcome in outcomes if outcome.em == 1.0]
    rewritten = [(outcome, step) for outcome in outcomes for step in tried_again(outcome.trace) if rewrites(step)]
    failed = [pair for outcome in outcomes for pair in _recalls(outcome)]
    return AgentStats(
        n=len(outcomes),
        em=fmean(outcome.em for outcome in outcomes),
        calls=fmean(outcome.trace.usage.model_calls for outcome in outcomes),
        roles={role: fmean(count.requests.get(role, 0) for count in counts) for role in ROLES},
        patterns={name: _mean([pattern(outcome.trace) == name for outcome in right]) or 0.0 for name in PATTERNS},
        efficiency=_mean([_known(step) for _, step in rewritten]),
        efficient=_mean([_known(step) and step_known.em == 1.0 for step_known, step in rewritten]),
        goals=fmean(count.goals for count in counts),
        hops=fmean(count.completed for count in counts),
        failed=len(failed),
        before=_mean([first for first, _ in failed]),
        after=_mean([last for _, last in failed]),
        depth=depths((outcome.question.hops, _searches(outcome.trace)) for outcome in outcomes),
    )


def pattern(trace: Trace) -> str:
    """Return the success pattern of a question: the maximum number of rewrites of one step."""
    highest = max((len(rewrites(step)) for step in tried_again(trace)), default=0)
    return PATTERNS[min(highest, 2)]


def tried_again(trace: Trace) -> list[Step]:
    """Return the steps with more than one attempt."""
    return [step for step in trace.steps if len(step.attempts) > 1 and not step.memo]


def rewrites(step: Step) -> list[Attempt]:
    """Return the attempts of a step with a rewritten query."""
    return [attempt for attempt in step.attempts if attempt.policy == "rewrite"]


def completed(trace: Trace) -> int:
    """Return the number of completed hops: goals with an answer, or answered steps of methods without goals."""
    return counts_of(trace).completed


def noise(question: Question, trace: Trace) -> float | None:
    """Return the share of retrieved passages that are not gold; None without known gold passages or retrieved ones.

    Args:
        question: Question with its gold passages.
        trace: Trace with the retrieved passages.
    """
    accepted = [ids for _, ids in accepted_of(question, trace)]
    gold = set[str]().union(*accepted)
    passages = [passage for step in trace.steps if step.primitive == "retrieve" for passage in step.passages]
    return _mean([passage not in gold for passage in passages]) if accepted else None


def _recalls(outcome: AnsweredQuestion) -> Iterable[tuple[float, float]]:
    """Yield the recall of gold passages at each failed step, after the first attempt and after all attempts."""
    accepted = [ids for _, ids in accepted_of(outcome.question, outcome.trace)]
    for step in tried_again(outcome.trace) if accepted else ():
        first = set(step.attempts[0].passages)
        seen = first.union(*(tried.passages for tried in step.attempts))
        yield fmean(bool(ids & first) for ids in accepted), fmean(bool(ids & seen) for ids in accepted)


def depths(planned: Iterable[tuple[int, int]]) -> dict[int, Depth]:
    """Return the depth of plans by number of hops, from pairs of a question's hops and its planned searches."""
    groups: dict[int, list[int]] = {}
    for hops, searches in planned:
        groups.setdefault(hops, []).append(searches)
    return {
        hops: Depth(
            len(made),
            fmean(made),
            fmean(searches_made == 1 for searches_made in made),
            fmean(searches_made < hops for searches_made in made),
        )
        for hops, made in sorted(groups.items())
    }


def _searches(trace: Trace) -> int:
    """Return the searches of the first program, since a plan revised for an unknown answer is often shorter."""
    return len(_SEARCH.findall(trace.programs[0].source)) if trace.programs else 0


def _known(step: Step) -> bool:
    return step.answer is not None and step.answer.known


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None

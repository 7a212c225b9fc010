"""Behaviour of agents over traces: calls by role, success patterns, effect of rewrites (OPERA, tables 2, 10 and 12).

Works for every method whose steps are tried again. Left out: scores and their intervals (`summary`), and the tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.metrics import is_claim
from pyrag.evaluation.retrieval_recall import accepted_of
from pyrag.evaluation.runs.folder import Run
from pyrag.evaluation.scoring import ResultRow
from pyrag.methods.opera.protocol import planned_goals
from pyrag.methods.opera.trajectory import Role, actions, goal_of
from pyrag.trace.model import Attempt, Step, Trace

ROLES: tuple[Role, ...] = ("plan", "analysis", "rewrite")
_SEARCH = re.compile(r"\bretrieve\(")
PATTERNS = ("direct", "one rewrite", "several rewrites")


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """An answered question with its exact match."""

    question: Question
    trace: Trace
    em: float


@dataclass(frozen=True, slots=True)
class Depth:
    """Depth of the first plans of `n` questions: mean number of searches, and the shares of plans with one search and
    with fewer searches than the question has hops.
    """

    n: int
    searches: float
    single: float
    short: float


@dataclass(frozen=True, slots=True)
class AgentStats:
    """Means per question and shares from 0 to 1; None where there is nothing to count.

    `patterns` are shares of the questions answered right, by the most rewrites that one step took. `efficiency` is the
    share of rewritten steps that ended in an answer, `efficient` the share that also belong to a question answered
    right. `hops` counts goals with an answer, `goals` all of them. `before` and `after` are the recall of gold passages
    at steps whose first attempt failed: by that attempt, and by all attempts. `depth` is keyed by a question's hops.
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
        """Points of exact match (0 to 100) per model call."""
        return 100 * self.em / self.calls if self.calls else 0.0


def outcomes_of(run: Run, rows: Iterable[ResultRow]) -> dict[tuple[str, str], list[AnsweredQuestion]]:
    """Group rows with their traces by set and method.

    Args:
        run: The run with the traces.
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
    """Summarise outcomes. Raises `ValueError` for none."""
    if not outcomes:
        raise ValueError("there are no outcomes to describe")
    roles = [Counter(action.role for action in actions(one.trace)) for one in outcomes]
    right = [one for one in outcomes if one.em == 1.0]
    rewritten = [(one, step) for one in outcomes for step in tried_again(one.trace) if rewrites(step)]
    failed = [pair for one in outcomes for pair in _recalls(one)]
    return AgentStats(
        n=len(outcomes),
        em=fmean(one.em for one in outcomes),
        calls=fmean(one.trace.usage.model_calls for one in outcomes),
        roles={role: fmean(count[role] for count in roles) for role in ROLES},
        patterns={name: _mean([pattern(one.trace) == name for one in right]) or 0.0 for name in PATTERNS},
        efficiency=_mean([_known(step) for _, step in rewritten]),
        efficient=_mean([_known(step) and one.em == 1.0 for one, step in rewritten]),
        goals=fmean(len(planned_goals(one.trace)) or len(one.trace.sub_queries) for one in outcomes),
        hops=fmean(completed(one.trace) for one in outcomes),
        failed=len(failed),
        before=_mean([first for first, _ in failed]),
        after=_mean([last for _, last in failed]),
        depth=depths((one.question.hops, _searches(one.trace)) for one in outcomes),
    )


def pattern(trace: Trace) -> str:
    """Return the name of the course of a question, by the most rewrites that one step took."""
    most = max((len(rewrites(step)) for step in tried_again(trace)), default=0)
    return PATTERNS[min(most, 2)]


def tried_again(trace: Trace) -> list[Step]:
    """Return the steps with more than one attempt."""
    return [step for step in trace.steps if len(step.attempts) > 1 and not step.memo]


def rewrites(step: Step) -> list[Attempt]:
    """Return the attempts of a step with a rewritten query."""
    return [one for one in step.attempts if one.policy == "rewrite"]


def completed(trace: Trace) -> int:
    """Return the number of hops completed: goals with an answer, or answered steps of methods without goals."""
    known = [step for step in trace.steps if step.mode == "evidence" and _known(step)]
    if not planned_goals(trace):
        return len(known)
    found = (goal_of(trace, step) for step in known)
    return len({goal.step for goal in found if goal is not None})


def noise(question: Question, trace: Trace) -> float | None:
    """Return the share of retrieved passages that are no gold passage; None where none are known or found.

    Args:
        question: Names the gold passages.
        trace: What was retrieved for it.
    """
    accepted = [ids for _, ids in accepted_of(question, trace)]
    gold = set[str]().union(*accepted)
    found = [one for step in trace.steps if step.primitive == "retrieve" for one in step.passages]
    return _mean([one not in gold for one in found]) if accepted else None


def _recalls(one: AnsweredQuestion) -> Iterable[tuple[float, float]]:
    """Yield the recall of the question's gold passages at each failed step: by its first attempt, and by all."""
    accepted = [ids for _, ids in accepted_of(one.question, one.trace)]
    for step in tried_again(one.trace) if accepted else ():
        first = set(step.attempts[0].passages)
        seen = first.union(*(tried.passages for tried in step.attempts))
        yield fmean(bool(ids & first) for ids in accepted), fmean(bool(ids & seen) for ids in accepted)


def depths(planned: Iterable[tuple[int, int]]) -> dict[int, Depth]:
    """Return the depth of plans by hops, from pairs of a question's hops and its planned searches."""
    groups: dict[int, list[int]] = {}
    for hops, searches in planned:
        groups.setdefault(hops, []).append(searches)
    return {
        hops: Depth(len(made), fmean(made), fmean(one == 1 for one in made), fmean(one < hops for one in made))
        for hops, made in sorted(groups.items())
    }


def _searches(trace: Trace) -> int:
    """Count the searches of the first program, since a plan revised for an unknown answer is often shorter."""
    return len(_SEARCH.findall(trace.programs[0].source)) if trace.programs else 0


def _known(step: Step) -> bool:
    return step.answer is not None and step.answer.known


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None

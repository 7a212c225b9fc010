"""Summary of a run: means with intervals for each set, method, question type and hop count.

It depends only on the results, not on their order, so an interrupted run ends with the same summary as an uninterrupted
one, except for `timing`, which holds all measured seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from pyrag.evaluation.intervals import Estimate, MeanDifference, difference, estimate
from pyrag.evaluation.retrieval_recall import ndcg_at, recall_at
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.model import RoleUsage

NDCG_CUT = 10  # as in OPERA's table 9
CUTS = (5, 10)  # the k of recall@k: the paper's top-k, and the number of passages when a step is retried


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per question: wall time (mean, median, 95th percentile) and critical path of the steps (mean).

    Attributes:
        roles: Mean duration of one request, for each group of `ROLES`.
        shares: Seconds per question spent waiting, for all requests of each group.
    """

    seconds: float
    median: float
    p95: float
    critical_path: float
    roles: dict[str, float] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HopShare:
    """Share of questions with this hop for which the hop's gold passage was found."""

    hop: int
    n: int
    found: float


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of a subset of the results. Shares are from 0 to 1; costs are means per question.

    Attributes:
        recall: Recall by k, with the key "all" for everything retrieved; empty if no gold passages are known.
        all_gold: Share of questions with all gold passages, with the keys of `recall`.
        by_retrieval: Share of gold passages that were first found by the first, second, … retrieval.
        repaired: Share of questions with a program repaired after an error.
        revised: Share of questions with a program revised after a plan check.
        retried: Share of questions with a retried step.
        recovered: Share of retried steps that then had an answer.
        unplanned: Share of questions without a usable plan.
        ndcg: Mean nDCG@10 of the searches for gold passages; None if none are known.
        errors: Number of wrong answers by line of OPERA's table 11.
        requests: Requests per question, by the groups of `ROLES`.
    """

    n: int
    em: Estimate
    f1: Estimate
    accuracy: Estimate
    chance_em: float
    answered: float
    recall: dict[str, float]
    all_gold: dict[str, float]
    per_hop: tuple[HopShare, ...]
    by_retrieval: tuple[float, ...]
    calls: float
    retrievals: float
    tokens: float
    repaired: float
    revised: float
    retried: float
    recovered: float | None
    failures: dict[str, int]
    timing: Timing
    unplanned: float = 0.0
    ndcg: float | None = None
    errors: dict[str, int] = field(default_factory=dict)
    requests: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetStats:
    """Results of a method on a set: for all questions, and by question type and hop count if there are several."""

    set: str
    method: str
    all: Stats
    by_type: dict[str, Stats]
    by_hops: dict[str, Stats]


@dataclass(frozen=True, slots=True)
class Average:
    """Means over sets. Each set has the same weight, as in the papers."""

    method: str
    sets: int
    em: float
    f1: float
    accuracy: float
    calls: float
    tokens: float
    chance_em: float


@dataclass(frozen=True, slots=True)
class MethodPair:
    """Differences between two methods on the same questions of a set."""

    set: str
    a: str
    b: str
    em: MeanDifference
    f1: MeanDifference


@dataclass(frozen=True, slots=True)
class BenchSummary:
    """Summary of all results.

    Attributes:
        failed: Number of questions that failed outside their method, which count as wrong until they are retried.
    """

    questions: int
    expected: int
    failed: int
    sets: tuple[SetStats, ...]
    averages: tuple[Average, ...]
    pairs: tuple[MethodPair, ...]


def summarise(rows: Iterable[ResultRow], sets: Sequence[str], methods: Sequence[str], expected: int) -> BenchSummary:
    """Return the summary of rows.

    Args:
        rows: Results, in any order.
        sets: Names of sets, in the order of the tables.
        methods: Names of methods, in the order of the tables; the first is the baseline of comparisons.
        expected: Number of questions of the finished run.
    """
    groups: dict[tuple[str, str], list[ResultRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.key):
        groups[row.set, row.method].append(row)
    present = [(name, method) for name in sets for method in methods if groups.get((name, method))]
    stats = tuple(set_stats(name, method, groups[name, method]) for name, method in present)
    return BenchSummary(
        questions=sum(map(len, groups.values())),
        expected=expected,
        failed=sum(row.is_transient for group in groups.values() for row in group),
        sets=stats,
        averages=tuple(
            _average(method, stats) for method in methods if any(result.method == method for result in stats)
        ),
        pairs=tuple(
            _pair(name, methods[0], other, groups[name, methods[0]], groups[name, other])
            for name, other in present
            if other != methods[0] and _shared(groups[name, methods[0]], groups[name, other])
        ),
    )


def set_stats(name: str, method: str, rows: Sequence[ResultRow]) -> SetStats:
    """Return the statistics of a method on a set.

    Args:
        name: Name of the set.
        method: Name of the method, or its label.
        rows: Results of the method on the set, at least one.
    """
    return SetStats(
        name,
        method,
        stats_of(rows),
        _slices(rows, lambda row: row.type),
        _slices(rows, lambda row: str(row.hops) if row.hops else ""),
    )


def _slices(rows: Sequence[ResultRow], key: Callable[[ResultRow], str]) -> dict[str, Stats]:
    """Return statistics by a property; empty if all rows have the same value."""
    groups: dict[str, list[ResultRow]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return {name: stats_of(groups[name]) for name in sorted(groups)} if len(groups) > 1 else {}


def stats_of(rows: Sequence[ResultRow]) -> Stats:
    """Return the statistics of rows. Raises `ValueError` if there are none."""
    tried = sum(row.unknowns for row in rows)
    return Stats(
        n=len(rows),
        em=estimate([row.em for row in rows]),
        f1=estimate([row.f1 for row in rows]),
        accuracy=estimate([row.accuracy for row in rows]),
        chance_em=fmean(row.chance_em for row in rows),
        answered=fmean(row.known for row in rows),
        recall=_recalls(rows, lambda recall: recall),
        all_gold=_recalls(rows, lambda recall: float(recall == 1.0)),
        per_hop=_per_hop(rows),
        by_retrieval=_by_retrieval(rows),
        calls=fmean(row.calls for row in rows),
        retrievals=fmean(row.retrievals for row in rows),
        tokens=fmean(row.prompt_tokens + row.completion_tokens for row in rows),
        repaired=fmean(row.repairs > 0 for row in rows),
        revised=fmean(row.revisions > 0 for row in rows),
        retried=fmean(row.unknowns > 0 for row in rows),
        recovered=sum(row.recovered for row in rows) / tried if tried else None,
        failures=failure_counts(rows),
        timing=_timing(rows),
        unplanned=fmean(row.fallbacks > 0 for row in rows),
        ndcg=_ndcg(rows),
        errors=dict(sorted(Counter(row.failure.opera for row in rows if row.failure and row.failure.opera).items())),
        requests={group: sum(used.requests for used in uses) / len(rows) for group, uses in _by_group(rows).items()},
    )


# Roles of requests as OPERA's paper groups them (its figures 6 and 8), with the reviewers that HERA adds.
ROLES = {
    "plan": ("decompose", "plan", "repair", "goals", "revise", "orchestrate", "reorchestrate", "characterise"),
    "analysis": ("answer", "conclude", "write"),
    "review": ("select", "validate", "reflect"),
    "rewrite": ("rewrite",),
    "retrieval": ("retrieve",),
}


def _by_group(rows: Sequence[ResultRow]) -> dict[str, list[RoleUsage]]:
    """Return the uses of each group of roles, question by question, without unused groups."""
    uses_by_group = {
        group: [row.roles[role] for row in rows for role in roles if role in row.roles]
        for group, roles in ROLES.items()
    }
    return {group: uses for group, uses in uses_by_group.items() if uses}


def failure_counts(rows: Iterable[ResultRow]) -> dict[str, int]:
    """Return the wrong answers by kind, and program errors by exception type."""
    names = Counter(
        f"program_error: {row.failure.detail}" if row.failure.kind == "program_error" else row.failure.kind
        for row in rows
        if row.failure
    )
    return dict(sorted(names.items()))


def _recalls(rows: Sequence[ResultRow], value: Callable[[float], float]) -> dict[str, float]:
    known = [row for row in rows if row.support]
    if not known:
        return {}
    cuts: dict[str, int | None] = {**{str(k): k for k in CUTS}, "all": None}
    return {name: fmean(value(recall_at(row.support, k) or 0.0) for row in known) for name, k in cuts.items()}


def _ndcg(rows: Sequence[ResultRow]) -> float | None:
    values = [value for row in rows if (value := ndcg_at(row.support, NDCG_CUT)) is not None]
    return fmean(values) if values else None


def _per_hop(rows: Sequence[ResultRow]) -> tuple[HopShare, ...]:
    deepest = max((len(row.support) for row in rows), default=0)
    groups = ([row.support[hop] for row in rows if len(row.support) > hop] for hop in range(deepest))
    return tuple(
        HopShare(hop, len(group), fmean(hop_row.is_found for hop_row in group)) for hop, group in enumerate(groups, 1)
    )


def _by_retrieval(rows: Sequence[ResultRow]) -> tuple[float, ...]:
    hops = [hop for row in rows for hop in row.support]
    firsts = Counter(hop.retrieval for hop in hops if hop.retrieval)
    return tuple(firsts[number] / len(hops) for number in range(1, max(firsts, default=0) + 1))


def _timing(rows: Sequence[ResultRow]) -> Timing:
    seconds = sorted(row.seconds for row in rows)
    late = seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))]
    waited = {group: sum(used.seconds for used in uses) for group, uses in _by_group(rows).items()}
    requests = {group: sum(used.requests for used in uses) for group, uses in _by_group(rows).items()}
    return Timing(
        fmean(seconds),
        median(seconds),
        late,
        fmean(row.critical_path for row in rows),
        roles={group: waited[group] / max(requests[group], 1) for group in waited},
        shares={group: total / len(rows) for group, total in waited.items()},
    )


def _average(method: str, stats: Sequence[SetStats]) -> Average:
    own = [result.all for result in stats if result.method == method]
    return Average(
        method,
        len(own),
        fmean(stat.em.mean for stat in own),
        fmean(stat.f1.mean for stat in own),
        fmean(stat.accuracy.mean for stat in own),
        fmean(stat.calls for stat in own),
        fmean(stat.tokens for stat in own),
        fmean(stat.chance_em for stat in own),
    )


def _pair(name: str, a: str, b: str, rows_a: Sequence[ResultRow], rows_b: Sequence[ResultRow]) -> MethodPair:
    """Return the comparison of two methods on the questions that both answered."""
    shared = _shared(rows_a, rows_b)
    first, other = _by_id(rows_a), _by_id(rows_b)
    return MethodPair(
        name,
        a,
        b,
        difference([first[key].em for key in shared], [other[key].em for key in shared]),
        difference([first[key].f1 for key in shared], [other[key].f1 for key in shared]),
    )


def _shared(rows_a: Sequence[ResultRow], rows_b: Sequence[ResultRow]) -> list[str]:
    other = _by_id(rows_b)
    return sorted(key for key in _by_id(rows_a) if key in other)


def _by_id(rows: Sequence[ResultRow]) -> Mapping[str, ResultRow]:
    return {row.id: row for row in rows}

"""Tables of a benchmark: its summary, and its agents' work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyrag.evaluation.agent_behaviour import PATTERNS, ROLES, AgentStats, Depth
from pyrag.evaluation.failures import KINDS
from pyrag.evaluation.intervals import Estimate, MeanDifference
from pyrag.evaluation.opera_errors import SOURCES
from pyrag.evaluation.reports.summary import NDCG_CUT, Average, BenchSummary, MethodPair, SetStats, Stats
from pyrag.evaluation.reports.writer import Table

NONE = "–"
SCORES = ("EM [95 %]", "F1", "acc.", "chance EM", "recall@5", "all gold@5", "answered", "calls", "tokens", "s/question")


def percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.1f}"


def interval(value: Estimate) -> str:
    return f"{percent(value.mean)} [{percent(value.low)}, {percent(value.high)}]"


def from_figure(value: Estimate, figure: float) -> str:
    """Return our value minus a published figure, with our value's interval.

    Args:
        value: Our value, as a share from 0 to 1.
        figure: Published figure, in per cent and without an interval.
    """
    mean, low, high = (100 * bound - figure for bound in (value.mean, value.low, value.high))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def signed(value: MeanDifference) -> str:
    return f"{100 * value.mean:+.1f} [{100 * value.low:+.1f}, {100 * value.high:+.1f}]"


def count(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def score_cells(stats: Stats) -> list[str]:
    return [
        interval(stats.em),
        percent(stats.f1.mean),
        percent(stats.accuracy.mean),
        percent(stats.chance_em),
        percent(stats.recall.get("5")),
        percent(stats.all_gold.get("5")),
        percent(stats.answered),
        count(stats.calls),
        count(stats.tokens),
        f"{stats.timing.seconds:.2f}",
    ]


def main_table(summary: BenchSummary) -> Table:
    """Return every set under every method, and each method's average over the sets."""
    rows = [[result.set, result.method, str(result.all.n), *score_cells(result.all)] for result in summary.sets]
    if len({result.set for result in summary.sets}) > 1:
        rows += [_average(average) for average in summary.averages]
    return Table(("set", "method", "n", *SCORES), rows, left=2)


def _average(average: Average) -> list[str]:
    scores = [percent(average.em), percent(average.f1), percent(average.accuracy), percent(average.chance_em)]
    return [
        f"average of {average.sets}",
        average.method,
        "",
        *scores,
        "",
        "",
        "",
        count(average.calls),
        count(average.tokens),
        "",
    ]


def slice_table(sets: Iterable[SetStats], by: str) -> Table:
    """Return scores by question type or hop count; empty if no set has several of them.

    Args:
        sets: Statistics of the sets.
        by: Property, "by_type" or "by_hops".
    """
    rows = [
        [result.set, result.method, name, str(stats.n), *score_cells(stats)]
        for result in sets
        for name, stats in getattr(result, by).items()
    ]
    names = {"by_type": "type", "by_hops": "hops"}
    return Table(("set", "method", names[by], "n", *SCORES), rows, left=3)


def pair_table(pairs: Sequence[MethodPair]) -> Table:
    rows = [
        [
            pair.set,
            f"{pair.a} − {pair.b}",
            str(pair.em.n),
            signed(pair.em),
            _p(pair.em.p),
            signed(pair.f1),
            _p(pair.f1.p),
        ]
        for pair in pairs
    ]
    return Table(("set", "methods", "n", "EM [95 %]", "p", "F1 [95 %]", "p"), rows, left=2)


def _p(p: float) -> str:
    return "≤ 0.001" if p <= 0.001 else f"{p:.3f}"


def hop_table(sets: Sequence[SetStats]) -> Table:
    """Return shares of gold passages found by hop, and by the retrieval that found them first."""
    known = [result for result in sets if result.all.per_hop]
    deepest = max((len(result.all.per_hop) for result in known), default=0)
    latest = min(max((len(result.all.by_retrieval) for result in known), default=0), 6)
    header = [
        "set",
        "method",
        f"nDCG@{NDCG_CUT}",
        *(f"hop {n}" for n in range(1, deepest + 1)),
        *(f"by look-up {n}" for n in range(1, latest + 1)),
    ]
    rows = []
    for result in known:
        hops = [percent(hop.found) for hop in result.all.per_hop]
        firsts = [percent(share) for share in result.all.by_retrieval[:latest]]
        rows.append(
            [result.set, result.method, percent(result.all.ndcg), *_filled(hops, deepest), *_filled(firsts, latest)]
        )
    return Table(header, rows, left=2)


def _filled(cells: list[str], width: int) -> list[str]:
    return cells + [NONE] * (width - len(cells))


def course_table(sets: Iterable[SetStats]) -> Table:
    """Return figures about the course of questions: repairs, recovery, time."""
    header = (
        "set", "method", "repaired", "revised", "retried", "recovered", "unplanned", "look-ups", "s median", "s p95",
        "critical path s",
    )  # fmt: skip
    rows = [
        [
            result.set, result.method, percent(result.all.repaired), percent(result.all.revised),
            percent(result.all.retried),
            percent(result.all.recovered), percent(result.all.unplanned), count(result.all.retrievals),
            f"{result.all.timing.median:.2f}", f"{result.all.timing.p95:.2f}", f"{result.all.timing.critical_path:.2f}",
        ]
        for result in sets
    ]  # fmt: skip
    return Table(header, rows, left=2)


def role_table(sets: Iterable[SetStats]) -> Table:
    """Return the time of each group of agents: requests per question, seconds per request, seconds per question."""
    header = ("set", "method", "role", "requests", "s/request", "s/question")
    rows = [
        [
            result.set,
            result.method,
            group,
            f"{result.all.requests[group]:.2f}",
            f"{result.all.timing.roles[group]:.2f}",
            f"{result.all.timing.shares[group]:.2f}",
        ]
        for result in sets
        for group in result.all.requests
    ]
    return Table(header, rows, left=3)


def opera_table(sets: Sequence[SetStats]) -> Table:
    """Return OPERA's table 11: wrong answers by source and line, in per cent of the wrong answers that have a line."""
    counted = [result for result in sets if result.all.errors]
    header = ["error", *(f"{result.set} · {result.method}" for result in counted)]
    rows = [["wrong answers", *(str(sum(result.all.errors.values())) for result in counted)]]
    for source, lines in SOURCES.items():
        rows.append([f"{source} errors", *(_error_share(result, lines) for result in counted)])
    rows += [
        [line, *(_error_share(result, (line,)) for result in counted)] for lines in SOURCES.values() for line in lines
    ]
    return Table(header, rows if counted else [])


def _error_share(result: SetStats, lines: Sequence[str]) -> str:
    return percent(sum(result.all.errors.get(line, 0) for line in lines) / sum(result.all.errors.values()))


def failure_name(kind: str) -> str:
    """Return the name of a kind in `Stats.failures`; for program errors, this includes the exception's type."""
    name, _, detail = kind.partition(": ")
    return KINDS.get(name, name) + (f": {detail}" if detail else "")


def failure_table(sets: Sequence[SetStats]) -> Table:
    """Return wrong answers by kind, in per cent of the wrong answers."""
    present = {kind for result in sets for kind in result.all.failures}
    kinds = [kind for known in KINDS for kind in sorted(present) if kind.partition(": ")[0] == known]
    rows = []
    for result in sets:
        wrong = sum(result.all.failures.values())
        shares = [percent(result.all.failures.get(kind, 0) / wrong) if wrong else NONE for kind in kinds]
        rows.append([result.set, result.method, str(wrong), *shares])
    return Table(("set", "method", "wrong", *map(failure_name, kinds)), rows if kinds else [], left=2)


def agents_table(named: Iterable[tuple[str, AgentStats]]) -> Table:
    """Return the paper's table 12 with call patterns, one line per name."""
    header = ("", "n", "EM", "calls", *ROLES, *PATTERNS, "rewrites answered", "and right", "goals", "hops done")
    rows = [
        (
            name,
            str(stats.n),
            percent(stats.em),
            f"{stats.calls:.2f}",
            *(f"{stats.roles[role]:.2f}" for role in ROLES),
            *(percent(stats.patterns[name]) for name in PATTERNS),
            percent(stats.efficiency),
            percent(stats.efficient),
            f"{stats.goals:.2f}",
            f"{stats.hops:.2f}",
        )
        for name, stats in named
    ]
    return Table(header, rows)


def ladder_table(named: Iterable[tuple[str, AgentStats]]) -> Table:
    """Return the effect of recovery: exact match, points per call, and recall of failed steps before and after."""
    header = ("", "n", "EM", "calls", "EM/call", "failed steps", "recall before", "after")
    rows = [
        (
            name,
            str(stats.n),
            percent(stats.em),
            f"{stats.calls:.2f}",
            f"{stats.em_per_call:.2f}",
            str(stats.failed),
            percent(stats.before),
            percent(stats.after),
        )
        for name, stats in named
    ]
    return Table(header, rows)


def depth_table(depths: Mapping[int, Depth]) -> Table:
    """Return the depth of plans, one line per number of hops."""
    rows = [
        (str(hops), str(depth.n), f"{depth.searches:.2f}", percent(depth.single), percent(depth.short))
        for hops, depth in depths.items()
    ]
    return Table(("hops", "n", "searches", "one search", "fewer than hops"), rows)

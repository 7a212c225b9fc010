"""The tables of a benchmark: its summary, and the work of its agents."""

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
    """Return ours minus a printed figure, with the interval of ours.

    Args:
        value: Ours, as shares.
        figure: The other, in per cent and without an interval of its own.
    """
    mean, low, high = (100 * one - figure for one in (value.mean, value.low, value.high))
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
    rows = [[one.set, one.method, str(one.all.n), *score_cells(one.all)] for one in summary.sets]
    if len({one.set for one in summary.sets}) > 1:
        rows += [_average(one) for one in summary.averages]
    return Table(("set", "method", "n", *SCORES), rows, left=2)


def _average(one: Average) -> list[str]:
    scores = [percent(one.em), percent(one.f1), percent(one.accuracy), percent(one.chance_em)]
    return [f"average of {one.sets}", one.method, "", *scores, "", "", "", count(one.calls), count(one.tokens), ""]


def slice_table(sets: Iterable[SetStats], by: str) -> Table:
    """Return scores by question type or hop count; empty where no set has several.

    Args:
        sets: Statistics.
        by: "by_type" or "by_hops".
    """
    rows = [
        [one.set, one.method, name, str(stats.n), *score_cells(stats)]
        for one in sets
        for name, stats in getattr(one, by).items()
    ]
    names = {"by_type": "type", "by_hops": "hops"}
    return Table(("set", "method", names[by], "n", *SCORES), rows, left=3)


def pair_table(pairs: Sequence[MethodPair]) -> Table:
    rows = [
        [one.set, f"{one.a} − {one.b}", str(one.em.n), signed(one.em), _p(one.em.p), signed(one.f1), _p(one.f1.p)]
        for one in pairs
    ]
    return Table(("set", "methods", "n", "EM [95 %]", "p", "F1 [95 %]", "p"), rows, left=2)


def _p(p: float) -> str:
    return "≤ 0.001" if p <= 0.001 else f"{p:.3f}"


def hop_table(sets: Sequence[SetStats]) -> Table:
    """Return shares of gold passages found by hop, and by the retrieval that found them first."""
    known = [one for one in sets if one.all.per_hop]
    deepest = max((len(one.all.per_hop) for one in known), default=0)
    latest = min(max((len(one.all.by_retrieval) for one in known), default=0), 6)
    header = [
        "set",
        "method",
        f"nDCG@{NDCG_CUT}",
        *(f"hop {n}" for n in range(1, deepest + 1)),
        *(f"by look-up {n}" for n in range(1, latest + 1)),
    ]
    rows = []
    for one in known:
        hops = [percent(hop.found) for hop in one.all.per_hop]
        firsts = [percent(share) for share in one.all.by_retrieval[:latest]]
        rows.append([one.set, one.method, percent(one.all.ndcg), *_filled(hops, deepest), *_filled(firsts, latest)])
    return Table(header, rows, left=2)


def _filled(cells: list[str], width: int) -> list[str]:
    return cells + [NONE] * (width - len(cells))


def course_table(sets: Iterable[SetStats]) -> Table:
    """Return figures of the course of questions: repairs, recovery, time."""
    header = (
        "set",
        "method",
        "repaired",
        "revised",
        "retried",
        "recovered",
        "unplanned",
        "look-ups",
        "s median",
        "s p95",
        "critical path s",
    )
    rows = [
        [
            one.set, one.method, percent(one.all.repaired), percent(one.all.revised), percent(one.all.retried),
            percent(one.all.recovered), percent(one.all.unplanned), count(one.all.retrievals),
            f"{one.all.timing.median:.2f}", f"{one.all.timing.p95:.2f}", f"{one.all.timing.critical_path:.2f}",
        ]
        for one in sets
    ]  # fmt: skip
    return Table(header, rows, left=2)


def role_table(sets: Iterable[SetStats]) -> Table:
    """Return the time of each group of agents: requests per question, seconds per request, seconds per question."""
    header = ("set", "method", "role", "requests", "s/request", "s/question")
    rows = [
        [
            one.set,
            one.method,
            group,
            f"{one.all.requests[group]:.2f}",
            f"{one.all.timing.roles[group]:.2f}",
            f"{one.all.timing.shares[group]:.2f}",
        ]
        for one in sets
        for group in one.all.requests
    ]
    return Table(header, rows, left=3)


def opera_table(sets: Sequence[SetStats]) -> Table:
    """Return OPERA's table 11: wrong answers by source and line, in per cent of those that have a line."""
    counted = [one for one in sets if one.all.errors]
    header = ["error", *(f"{one.set} · {one.method}" for one in counted)]
    rows = [["wrong answers", *(str(sum(one.all.errors.values())) for one in counted)]]
    for source, lines in SOURCES.items():
        rows.append([f"{source} errors", *(_error_share(one, lines) for one in counted)])
    rows += [[line, *(_error_share(one, (line,)) for one in counted)] for lines in SOURCES.values() for line in lines]
    return Table(header, rows if counted else [])


def _error_share(one: SetStats, lines: Sequence[str]) -> str:
    return percent(sum(one.all.errors.get(line, 0) for line in lines) / sum(one.all.errors.values()))


def failure_name(kind: str) -> str:
    """Return the name of a kind in `Stats.failures`; program errors carry the exception's type."""
    name, _, detail = kind.partition(": ")
    return KINDS.get(name, name) + (f": {detail}" if detail else "")


def failure_table(sets: Sequence[SetStats]) -> Table:
    """Return wrong answers by kind, in per cent of the wrong answers."""
    present = {kind for one in sets for kind in one.all.failures}
    kinds = [kind for known in KINDS for kind in sorted(present) if kind.partition(": ")[0] == known]
    rows = []
    for one in sets:
        wrong = sum(one.all.failures.values())
        shares = [percent(one.all.failures.get(kind, 0) / wrong) if wrong else NONE for kind in kinds]
        rows.append([one.set, one.method, str(wrong), *shares])
    return Table(("set", "method", "wrong", *map(failure_name, kinds)), rows if kinds else [], left=2)


def agents_table(named: Iterable[tuple[str, AgentStats]]) -> Table:
    """Return the paper's table 12 with call patterns, one line per name."""
    header = ("", "n", "EM", "calls", *ROLES, *PATTERNS, "rewrites answered", "and right", "goals", "hops done")
    rows = [
        (
            name,
            str(one.n),
            percent(one.em),
            f"{one.calls:.2f}",
            *(f"{one.roles[role]:.2f}" for role in ROLES),
            *(percent(one.patterns[name]) for name in PATTERNS),
            percent(one.efficiency),
            percent(one.efficient),
            f"{one.goals:.2f}",
            f"{one.hops:.2f}",
        )
        for name, one in named
    ]
    return Table(header, rows)


def ladder_table(named: Iterable[tuple[str, AgentStats]]) -> Table:
    """Return the effect of recovery: exact match, its points per call, recall of failed steps before and after."""
    header = ("", "n", "EM", "calls", "EM/call", "failed steps", "recall before", "after")
    rows = [
        (
            name,
            str(one.n),
            percent(one.em),
            f"{one.calls:.2f}",
            f"{one.em_per_call:.2f}",
            str(one.failed),
            percent(one.before),
            percent(one.after),
        )
        for name, one in named
    ]
    return Table(header, rows)


def depth_table(depths: Mapping[int, Depth]) -> Table:
    """Return the depth of plans, one line per number of hops."""
    rows = [
        (str(hops), str(one.n), f"{one.searches:.2f}", percent(one.single), percent(one.short))
        for hops, one in depths.items()
    ]
    return Table(("hops", "n", "searches", "one search", "fewer than hops"), rows)

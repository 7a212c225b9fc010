"""Contents of a report over runs: sections with tables and the names of plots (`report_files` writes them).

The methods of all runs are compared; a method that occurs in several runs is labelled with its run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyrag.agents.engine import about_engine
from pyrag.evaluation.agent_behaviour import agent_stats, outcomes_of
from pyrag.evaluation.datasets.suite import REPAIRED_CORPUS
from pyrag.evaluation.failures import KINDS
from pyrag.evaluation.reports.paper_scores import LABEL, NOTES, reported, reported_rows
from pyrag.evaluation.reports.summary import BenchSummary, SetStats, summarise
from pyrag.evaluation.reports.tables import (
    agents_table,
    course_table,
    failure_table,
    from_figure,
    hop_table,
    interval,
    ladder_table,
    main_table,
    opera_table,
    pair_table,
    percent,
    role_table,
    slice_table,
)
from pyrag.evaluation.reports.writer import Table
from pyrag.evaluation.runs.folder import TRACES, Run
from pyrag.evaluation.scoring import ResultRow


@dataclass(frozen=True, slots=True)
class Section:
    """Section with heading, text, table and the names of plots.

    Attributes:
        links: Addresses of cells by row and column (HTML only).
    """

    title: str
    text: str = ""
    table: Table | None = None
    plots: tuple[str, ...] = ()
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)


# Sections at the top of a report, from its summary and the number of the run by label.
FirstSections = Callable[[BenchSummary, Mapping[str, int]], Sequence[Section]]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """Contents of a report in both forms. `rows` carry the labels of methods."""

    runs: tuple[Run, ...]
    rows: tuple[ResultRow, ...]
    labels: tuple[str, ...]
    methods: dict[str, str]  # label → method
    summary: BenchSummary
    sections: tuple[Section, ...]


def wrong_anchor(set_name: str, label: str) -> str:
    """Return the id of the HTML element with the wrong answers of a set and method.

    Args:
        set_name: Name of the set.
        label: Label of the method.
    """
    digest = hashlib.blake2b(f"{set_name}\0{label}".encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"wrong-{digest}"


def wrong_links(sets: Sequence[SetStats]) -> dict[tuple[int, int], str]:
    """Return links from the counts of wrong answers to those answers."""
    column = 2
    return {
        (row, column): f"#{wrong_anchor(result.set, result.method)}"
        for row, result in enumerate(sets)
        if result.all.failures
    }


def make_report(runs: Sequence[Run], first: FirstSections = lambda *_: ()) -> BenchReport:
    """Return the report over runs.

    Args:
        runs: The runs.
        first: Function that returns the first sections, from the summary and the number of each label's run.

    Raises:
        DataError: A run has no result.
    """
    from pyrag.errors import DataError

    for run in runs:
        if not run.rows:
            raise DataError(f"{run.folder} has no results yet: run pyrag bench with --out {run.folder} first")
    labels = labels_of(runs)
    rows = tuple(replace(row, method=labels[i, row.method]) for i, run in enumerate(runs) for row in run.rows)
    names = tuple(labels.values())
    sets = list(dict.fromkeys(name for run in runs for name in run.config["run"]["sets"]))
    summary = summarise(rows, sets, names, len(rows))
    methods = {label: method for (_, method), label in labels.items()}
    top = first(summary, {label: number for (number, _), label in labels.items()})
    sections = (*top, *_sections(runs, summary, methods, _over_repaired(runs, labels)), *_agents(runs, labels))
    return BenchReport(tuple(runs), rows, names, methods, summary, sections)


def labels_of(runs: Sequence[Run]) -> dict[tuple[int, str], str]:
    """Return a label for each method of each run, with the run's name if the method occurs in several runs."""
    methods = [(i, method) for i, run in enumerate(runs) for method in run.config["run"]["methods"]]
    often = Counter(method for _, method in methods)
    labels: dict[tuple[int, str], str] = {}
    for i, method in methods:
        label = method if often[method] == 1 else f"{runs[i].name}:{method}"
        labels[i, method] = label if label not in labels.values() else f"{label} ({i + 1})"
    return labels


_OPERA_FIGURES = (
    " The paper's figures (HotpotQA, 2Wiki, MuSiQue): planning 13.3, 11.1, 14.1; retrieval 24.6, 19.7, 47.8; reasoning "
    "62.1, 69.2, 38.1. It does not count answers refused though the evidence was there (incorrect NO decision)."
)


def _sections(
    runs: Sequence[Run],
    summary: BenchSummary,
    methods: dict[str, str],
    repaired: set[tuple[str, str]],
) -> tuple[Section, ...]:
    sections = (
        Section("What ran", table=_runs_table(runs)),
        Section(
            "Scores",
            "Per cent, with 95 % bootstrap intervals over the questions. chance EM: guessing between the two options "
            "that a question names. recall@5 and all gold@5: gold passages among the first five of some retrieval. The "
            "average counts each set once.",
            main_table(summary),
            ("cost", "seconds"),
        ),
        Section(
            f"Beside the papers: {LABEL}",
            "Exact match, F1 and accuracy: this report's, and beside each the figure copied from a paper, which is not "
            "comparable as it stands. The difference in exact match has the interval of this report's figure. "
            f"{NOTES}"
            + (f" Results over {REPAIRED_CORPUS}, which no paper searched, are left out." if repaired else ""),
            _papers_table(summary, methods, repaired),
        ),
        Section(
            "Differences",
            "Only questions that both answered. Bootstrap intervals; p by a randomisation test, exact for EM.",
            pair_table(summary.pairs),
        ),
        Section(
            "Gold passages per hop",
            "nDCG@10, in per cent: of the best search for each gold passage, rewrites included. On HotpotQA, OPERA's "
            "table 9 has 82 with Qwen2.5-7B as Rewrite agent, 79 with 3B, 68 with 1.5B; it does not name the searches. "
            "hop n: share of questions whose n-th gold passage was found (hop order in MuSiQue, the file's order in "
            "other sets). by look-up n: share of all gold passages that the n-th retrieval was the first to find.",
            hop_table(summary.sets),
            ("hops",),
        ),
        Section(
            "Wrong answers by cause",
            "Per cent of the wrong answers, decided from trace and gold passages.",
            failure_table(summary.sets),
            ("failures",),
            links=wrong_links(summary.sets),
        ),
        Section(
            "Wrong answers as in OPERA's table 11",
            "Per cent of the wrong answers for which it has a row. Failed services and budgets are not causes."
            + (_OPERA_FIGURES if any(reported("opera", result.set) for result in summary.sets) else ""),
            opera_table(summary.sets),
        ),
        Section(
            "Course and time",
            "repaired: questions whose program was repaired after an error; revised: after a plan check; retried: "
            "with a step that was unknown at first; recovered: share of those steps that then had an answer; "
            "unplanned: no reply held a usable plan, so that the question stood for it. The critical path is that of "
            "the steps, without planning.",
            course_table(summary.sets),
            ("latency",),
        ),
        Section(
            "Time by role",
            "Seconds spent waiting for the requests of each group of agents, side by side or not, so that they may add "
            "up to more than a question took. What the sandbox and pyrag itself take is not in it.",
            role_table(summary.sets),
        ),
        Section("By question type", table=slice_table(summary.sets, "by_type")),
        Section("By hop count", table=slice_table(summary.sets, "by_hops")),
    )
    return tuple(section for section in sections if section.table)


def _agents(runs: Sequence[Run], labels: dict[tuple[int, str], str]) -> tuple[Section, ...]:
    """Return the sections about agents, from the runs that still have traces."""
    named = [
        (f"{set_name} · {labels[i, method]}", agent_stats(outcomes))
        for i, run in enumerate(runs)
        if (run.folder / TRACES).is_dir()
        for (set_name, method), outcomes in outcomes_of(run, run.rows).items()
    ]
    if not named:
        return ()
    return (
        Section(
            "What the agents did",
            "Calls a question; by role: what was planned, read and rewritten. Shares of the right answers that came "
            "without a rewrite, after one, after several. Share of the steps with a rewrite that were answered, and "
            "of those whose question came out right. Goals planned, and those with an answer (OPERA's table 12).",
            agents_table(named),
        ),
        Section(
            "What recovery brought",
            "EM/call: points of exact match that a call brings. Recall of the question's gold passages at the steps "
            "that failed at first: by the first attempt, and by all.",
            ladder_table(named),
        ),
    )


def _runs_table(runs: Sequence[Run]) -> Table:
    return Table(
        ("run", "engine", "sets (questions · passages)", "sample", "made with", "commit", "machine"),
        [*map(_run_cells, runs)],
        left=7,
    )


def _run_cells(run: Run) -> list[str]:
    about, last = run.config["run"], run.config["sessions"][-1]
    asked = Counter(row.set for row in run.rows if row.method == about["methods"][0])
    sets = ", ".join(f"{name} ({asked[name]} · {last['passages'].get(name, '?')})" for name in about["sets"])
    sample = f"{about['limit']} a set, seed {about['seed']}" if about["limit"] else "all questions"
    commits = dict.fromkeys(session["commit"] or "unknown" for session in run.config["sessions"])
    host = last["host"]
    made = f"pyrag {last['versions']['pyrag']}, Python {last['python']}"
    machine = f"{host['system']}, {host['cpus']} CPUs"
    return [run.name, _engine(about["settings"]), sets, sample, made, ", ".join(commits), machine]


def _engine(settings: dict[str, object]) -> str:
    note = ", no language model" if about_engine(str(settings["llm"])) else ""
    others = [
        f"{role}: {settings[f'{role}_llm']}" for role in ("plan", "decompose", "answer") if settings.get(f"{role}_llm")
    ]
    return str(settings["llm"]) + note + (f" ({', '.join(others)})" if others else "")


def _over_repaired(runs: Sequence[Run], labels: dict[tuple[int, str], str]) -> set[tuple[str, str]]:
    """Return the sets and labels of methods that searched the repaired corpus."""
    return {
        (name, labels[i, method])
        for i, run in enumerate(runs)
        for name, passages in run.config["sessions"][-1].get("passages", {}).items()
        if REPAIRED_CORPUS in passages
        for method in run.config["run"]["methods"]
    }


def _papers_table(summary: BenchSummary, methods: dict[str, str], repaired: set[tuple[str, str]]) -> Table:
    """Return our scores next to the papers' figures, one line per row of a paper's table."""
    rows = []
    for result in summary.sets:
        if (result.set, result.method) in repaired:
            continue
        ours = (interval(result.all.em), percent(result.all.f1.mean), percent(result.all.accuracy.mean))
        for row in reported_rows(methods[result.method], result.set):
            papers = (_figure(figures.get(result.set)) for figures in (row.em, row.f1, row.accuracy))
            cells = [cell for pair in zip(ours, papers, strict=True) for cell in pair]
            exact = row.em.get(result.set)
            cells.insert(2, "" if exact is None else from_figure(result.all.em, exact))
            rows.append([result.set, result.method, f"reported: {row.source}", *cells])
    header = ("EM here", "reported EM", "difference", "F1 here", "reported F1", "acc. here", "reported acc.")
    return Table(("set", "method", "where", *header), rows, left=3)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def failed_note(summary: BenchSummary) -> str:
    """Return a note on the answers that failed outside their method."""
    return (
        f"**{summary.failed} of {summary.questions} answers failed outside their method (services, deadlines) and "
        "count as wrong until the run is finished.**"
    )


def failure_shares(report: BenchReport, method: str) -> dict[str, float]:
    """Return shares of a method's questions: right answers, then wrong ones by kind.

    Args:
        report: The report.
        method: Label of the method.
    """
    rows = [row for row in report.rows if row.method == method]
    kinds = Counter(row.failure.kind if row.failure else "right" for row in rows)
    return {kind: kinds[kind] / len(rows) for kind in ("right", *KINDS) if kinds[kind]}

"""Output of `pyrag bench`: progress, tables, agents' work, examples of errors, and reports."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from pyrag.cli.output import print_json
from pyrag.cli.views.bar import ProgressBar
from pyrag.errors import UsageError
from pyrag.evaluation.agent_behaviour import agent_stats, outcomes_of
from pyrag.evaluation.failures import KINDS
from pyrag.evaluation.reports.summary import BenchSummary, set_stats, summarise
from pyrag.evaluation.reports.tables import (
    agents_table,
    failure_table,
    ladder_table,
    main_table,
    opera_table,
    pair_table,
    percent,
    role_table,
)
from pyrag.evaluation.runs.folder import Run, read_run
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.words import counted


class BenchProgress(ProgressBar):
    """Progress of a run: questions, EM so far, calls per question, time left."""

    def __init__(self, done: Iterable[ResultRow], todo: int) -> None:
        rows = [row for row in done if not row.is_transient]
        self._count, self._em, self._calls = len(rows), sum(row.em for row in rows), sum(row.calls for row in rows)
        super().__init__(self._count + todo, self._count)

    def add(self, row: ResultRow) -> None:
        self._count += 1
        self._em += row.em
        self._calls += row.calls
        scores = f"EM {100 * self._em / self._count:.1f} · {self._calls / self._count:.1f} calls/question"
        self.show(self._count, f"{row.set} · {row.method}", scores)


def print_summary(summary: BenchSummary, folder: Path, *, as_json: bool) -> None:
    """Print the tables of a summary.

    Args:
        summary: Results of the run.
        folder: Folder of the run, named in the hints at the end.
        as_json: Print the summary as one JSON line instead.
    """
    if as_json:
        print_json(summary)
        return
    print(main_table(summary))
    print(
        "\nIn per cent. acc.: a right answer occurs in the reply; chance EM: guessing between the two options that a "
        "question names; all gold@5: every gold passage is among the first five; answered: not unknown."
    )
    if failures := failure_table(summary.sets):
        print(f"\nWrong answers by cause (per cent of them)\n\n{failures}")
    for stats in summary.sets:
        if stats.all.unplanned:
            print(
                f"\n{stats.set}, {stats.method}: {percent(stats.all.unplanned)} % of the questions had no usable plan"
            )
    if summary.pairs:
        print(f"\nDifferences on the same questions (paired bootstrap)\n\n{pair_table(summary.pairs)}")
    print(
        f"\n{folder}: look at errors with pyrag bench show {folder} --errors, at plots with pyrag bench report {folder}"
    )


def _chosen(run: Run, sets: Sequence[str], methods: Sequence[str]) -> list[ResultRow]:
    rows = [row for row in run.rows if (not sets or row.set in sets) and (not methods or row.method in methods)]
    if not rows:
        raise UsageError(f"{run.folder} has no results of that set and method: see pyrag bench show {run.folder}")
    return rows


def show_run(folder: Path, *, sets: Sequence[str], methods: Sequence[str], as_json: bool) -> None:
    """Print the tables of a run, finished or not, or its summary as one JSON line.

    Args:
        folder: Folder of the run.
        sets: Names of sets to restrict the output to. Empty for all.
        methods: Names of methods to restrict the output to. Empty for all.
        as_json: Print the summary as one JSON line instead.

    Raises:
        UsageError: The run has no results of these sets and methods.
    """
    run = read_run(folder)
    rows, about = _chosen(run, sets, methods), run.config["run"]
    summary = summarise(rows, sets or about["sets"], methods or about["methods"], len(rows))
    print_summary(summary, folder, as_json=as_json)


def show_errors(
    folder: Path, *, kind: str | None, limit: int, sets: Sequence[str], methods: Sequence[str], as_json: bool
) -> None:
    """Print wrong answers with their traces, the most frequent kind first.

    Args:
        folder: Folder of the run.
        kind: Kind of error, a key of `KINDS`. None for all.
        limit: Maximum number of examples per kind.
        sets: Names of sets to restrict the output to. Empty for all.
        methods: Names of methods to restrict the output to. Empty for all.
        as_json: Print the rows as JSON lines instead.

    Raises:
        UsageError: The kind is unknown, or the run has no results of these sets and methods.
    """
    if kind is not None and kind not in KINDS:
        from pyrag.errors import nearest

        raise UsageError(f"there is no kind of error {kind!r}{nearest(kind, KINDS)}")
    run = read_run(folder)
    groups: dict[str, list[ResultRow]] = defaultdict(list)
    for row in sorted(_chosen(run, sets, methods), key=lambda item: item.key):
        if row.failure and kind in (None, row.failure.kind):
            groups[row.failure.kind].append(row)
    for name, rows in sorted(groups.items(), key=lambda entry: -len(entry[1])):
        _print_examples(run, name, rows, limit, as_json=as_json)
    if not groups:
        print("no wrong answer of that kind" if kind else "no wrong answer", file=sys.stderr)


def _print_examples(run: Run, kind: str, rows: list[ResultRow], limit: int, *, as_json: bool) -> None:
    if as_json:
        for row in rows[:limit]:
            print_json(row)
        return
    from rich.text import Text

    from pyrag.cli.views.live import SafeConsole
    from pyrag.cli.views.saved import trace_view

    console = SafeConsole()
    console.print(Text(f"\n{KINDS[kind]}: {counted(len(rows), 'wrong answer')}", style="bold magenta"))
    for row in rows[:limit]:
        detail = f" ({row.failure.detail})" if row.failure and row.failure.detail else ""
        console.print(Text(f"\n{row.set} · {row.method} · {row.id}{detail}", style="magenta"))
        console.print(Text.assemble(("gold: ", "bold"), " | ".join(row.gold) or "(no answer)"))
        missing = [hop.gold for hop in row.support if not hop.is_found]
        if missing:
            console.print(Text.assemble(("gold passages not found: ", "bold"), ", ".join(missing)))
        console.print(trace_view(run.trace(row)))


def show_agents(folder: Path, *, sets: Sequence[str], methods: Sequence[str], as_json: bool) -> None:
    """Print the agents' work: calls and time by role, success patterns, recovery, and the errors of OPERA's table 11.

    Args:
        folder: Folder of the run.
        sets: Names of sets to restrict the output to. Empty for all.
        methods: Names of methods to restrict the output to. Empty for all.
        as_json: Print the statistics as one JSON object instead.

    Raises:
        UsageError: The run has no results of these sets and methods.
    """
    run = read_run(folder)
    rows = _chosen(run, sets, methods)
    named = [(" · ".join(key), agent_stats(outcomes)) for key, outcomes in outcomes_of(run, rows).items()]
    if as_json:
        print_json(dict(named))
        return
    stats = [set_stats(*key, list(group)) for key, group in groupby(sorted(rows, key=_group), key=_group)]
    tables = (agents_table(named), ladder_table(named), opera_table(stats), role_table(stats))
    print(*(table for table in tables if table), sep="\n\n")


def _group(row: ResultRow) -> tuple[str, str]:
    return row.set, row.method


def export(
    folder: Path,
    *,
    csv: Path | None,
    trec: Path | None,
    sets: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> None:
    """Write the results of a run for other programs, and print the files' paths to stderr.

    Args:
        folder: Folder of the run.
        csv: File for a table with one row per question. None to write no table.
        trec: File for the retrieved passages in TREC's format. None to write no such file.
        sets: Names of sets to restrict the output to. Empty for all.
        methods: Names of methods to restrict the output to. Empty for all.

    Raises:
        UsageError: No file is named, or the run has no results of these sets and methods.
    """
    from pyrag.evaluation.reports.exports import write_csv, write_trec

    if not csv and not trec:
        raise UsageError("name a file to write: --csv FILE or --trec FILE")
    run = read_run(folder)
    rows = _chosen(run, sets, methods)
    written: list[Path] = []
    if csv:
        write_csv(rows, csv)
        written.append(csv)
    if trec:
        written += write_trec(run, rows, trec)
    for path in written:
        print(path, file=sys.stderr)


def write_report(folders: Sequence[Path], out: Path | None) -> None:
    """Write `report.md` and `report.html`, and print their paths.

    Args:
        folders: Folders of the runs.
        out: Folder to write to. None for the folder of the first run.
    """
    from pyrag.evaluation.reports.report_files import report_files

    runs = [read_run(folder) for folder in folders]
    for path in report_files(runs, out or folders[0]):
        print(path)

"""A benchmark report as files: Markdown, and one HTML page with plots and the wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pyrag._io.files import write_atomic
from pyrag.evaluation.failures import KINDS
from pyrag.evaluation.reports import svg
from pyrag.evaluation.reports.report import BenchReport, Section, failed_note, failure_shares, make_report
from pyrag.evaluation.reports.writer import document, legend, plots_html, section, table_html, upright
from pyrag.evaluation.reports.wrong_answers import wrong_answers
from pyrag.evaluation.runs.folder import Run, make_folder

_KIND_COLOURS = {
    "right": "#009e73", "retrieval_missing": "#0072b2", "under_decomposition": "#56b4e9",
    "intermediate_error": "#cc79a7", "misreading": "#d55e00", "final_refusal": "#b8860b", "program_error": "#555555",
    "no_retrieval": "#777777", "budget": "#8c6d31", "service_error": "#000000",
}  # fmt: skip


def report_files(runs: Sequence[Run], out: Path) -> list[Path]:
    """Write `report.md` and `report.html`, and return their paths.

    Args:
        runs: The runs to compare.
        out: Folder to write to.

    Raises:
        DataError: A run has no result.
        UsageError: The folder cannot be written.
    """
    report = make_report(runs)
    make_folder(out)
    paths = [out / "report.md", out / "report.html"]
    for path, text in zip(paths, (markdown(report), _page(report, out)), strict=True):
        write_atomic(path, text.encode())
    return paths


def markdown(report: BenchReport) -> str:
    """Return the report as Markdown."""
    parts = ["# Benchmark report"]
    if report.summary.failed:
        parts.append(failed_note(report.summary))
    for one in report.sections:
        parts.append(f"## {one.title}")
        parts += [str(part) for part in (one.text, one.table) if part]
    return "\n\n".join(parts) + "\n"


def _page(report: BenchReport, out: Path) -> str:
    """Return the report as HTML, with wrong answers and their traces."""
    note = ""
    if report.summary.failed:
        note = f'<p class="failed">{escape(failed_note(report.summary).strip("*"))}</p>'
    sections = [_section(report, one) for one in report.sections]
    return document("Benchmark report", note + "".join(sections) + wrong_answers(report, out))


def _section(report: BenchReport, one: Section) -> str:
    drawn = [_PLOTS[name](report) for name in one.plots]
    parts = [drawing.legend for drawing in drawn]
    if drawn:
        parts.append(plots_html([plot for drawing in drawn for plot in drawing.plots]))
    if one.table:
        parts.append(table_html(upright(one.table), one.links))
    return section(one.title, one.text, *parts)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The plots of a section, and their common legend."""

    plots: Sequence[str]
    legend: str = ""


def _cost(report: BenchReport) -> _Drawing:
    """Plot EM against model calls, and against tokens, averaged over the sets."""
    calls = {one.method: (one.calls, 100 * one.em) for one in report.summary.averages}
    tokens = {one.method: (one.tokens, 100 * one.em) for one in report.summary.averages}
    plots = [svg.scatter("Accuracy against model calls", calls, "model calls a question", "EM, average of the sets")]
    if any(x for x, _ in tokens.values()):
        plots.append(svg.scatter("Accuracy against tokens", tokens, "tokens a question", "EM, average of the sets"))
    return _Drawing(plots)


def _seconds(report: BenchReport) -> _Drawing:
    points = {}
    for one in report.summary.averages:
        own = [stats.all.timing.seconds for stats in report.summary.sets if stats.method == one.method]
        points[one.method] = (sum(own) / len(own), 100 * one.em)
    return _Drawing([svg.scatter("Accuracy against time", points, "seconds a question", "EM, average of the sets")])


def _hops(report: BenchReport) -> _Drawing:
    plots = []
    for name in dict.fromkeys(one.set for one in report.summary.sets):
        stats = {one.method: one.all.per_hop for one in report.summary.sets if one.set == name and one.all.per_hop}
        deepest = max((len(hops) for hops in stats.values()), default=0)
        if not deepest:
            continue
        series = {
            label: [100 * hops[i].found if i < len(hops) else None for i in range(deepest)]
            for label in report.labels
            if (hops := stats.get(label, ())) is not None
        }
        groups = [f"hop {n}" for n in range(1, deepest + 1)]
        plots.append(svg.grouped_bars(name, groups, series, "gold passage found, %"))
    return _Drawing(plots, legend(report.labels))


def _failures(report: BenchReport) -> _Drawing:
    shares = {label: failure_shares(report, label) for label in report.labels if _has_rows(report, label)}
    present = {kind for one in shares.values() for kind in one}
    names = {"right": "right", **KINDS}
    colours = {names[kind]: fill for kind, fill in _KIND_COLOURS.items() if kind in present}
    bars = {label: {names[kind]: share for kind, share in one.items()} for label, one in shares.items()}
    return _Drawing([svg.stacked_bars("All questions, %", bars, colours)], svg.legend(colours))


def _latency(report: BenchReport) -> _Drawing:
    seconds = {label: [row.seconds for row in report.rows if row.method == label] for label in report.labels}
    lines = {label: svg.cumulative(values) if values else [] for label, values in seconds.items()}
    plot = svg.curves("Latency: share of questions answered within", lines, "seconds", "questions, %")
    return _Drawing([plot], legend(report.labels))


def _has_rows(report: BenchReport, label: str) -> bool:
    return any(row.method == label for row in report.rows)


_PLOTS: dict[str, Callable[[BenchReport], _Drawing]] = {
    "cost": _cost,
    "seconds": _seconds,
    "hops": _hops,
    "failures": _failures,
    "latency": _latency,
}

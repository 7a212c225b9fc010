"""Files of a benchmark report: Markdown, and one HTML page with plots and the wrong answers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from shlex import quote as shell_quote
from urllib.parse import quote

from pyrag._io.files import write_atomic
from pyrag.errors import DataError
from pyrag.evaluation.failures import KINDS
from pyrag.evaluation.reports import svg
from pyrag.evaluation.reports.report import (
    BenchReport,
    FirstSections,
    Section,
    failed_note,
    failure_shares,
    labels_of,
    make_report,
    wrong_anchor,
)
from pyrag.evaluation.reports.tables import failure_name
from pyrag.evaluation.reports.writer import document, legend, plots_html, section, table_html, upright
from pyrag.evaluation.runs.folder import Run, make_folder, trace_path
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.model import Step, Trace, shorten

MAX_SHOWN = 300  # wrong answers of all sets and methods together
_MAX_TEXT = 300  # characters of an answer or a query
_MAX_PROGRAM = 4_000
_MAX_STEPS = 40
_MAX_TITLES = 5
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_KIND_COLOURS = {
    "right": "#009e73", "retrieval_missing": "#0072b2", "under_decomposition": "#56b4e9",
    "intermediate_error": "#cc79a7", "misreading": "#d55e00", "final_refusal": "#b8860b", "program_error": "#555555",
    "no_retrieval": "#777777", "budget": "#8c6d31", "service_error": "#000000",
}  # fmt: skip


def report_files(runs: Sequence[Run], out: Path, first: FirstSections = lambda *_: ()) -> list[Path]:
    """Write `report.md` and `report.html`, and return their paths.

    Args:
        runs: Runs to compare.
        out: Folder to write to.
        first: Function that returns the first sections (see `make_report`).

    Raises:
        DataError: A run has no result.
        UsageError: The folder cannot be written.
    """
    report = make_report(runs, first)
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
    for content in report.sections:
        parts.append(f"## {content.title}")
        parts += [str(part) for part in (content.text, content.table) if part]
    return "\n\n".join(parts) + "\n"


def _page(report: BenchReport, out: Path) -> str:
    """Return the report as HTML, with wrong answers and their traces."""
    note = ""
    if report.summary.failed:
        note = f'<p class="failed">{escape(failed_note(report.summary).strip("*"))}</p>'
    sections = [_section(report, content) for content in report.sections]
    return document("Benchmark report", note + "".join(sections) + _wrong_answers(report, out))


def _section(report: BenchReport, contents: Section) -> str:
    drawn = [_PLOTS[name](report) for name in contents.plots]
    parts = [drawing.legend for drawing in drawn]
    if drawn:
        parts.append(plots_html([plot for drawing in drawn for plot in drawing.plots]))
    if contents.table:
        parts.append(table_html(upright(contents.table), contents.links))
    return section(contents.title, contents.text, *parts)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Plots of a section, and their common legend."""

    plots: Sequence[str]
    legend: str = ""


def _cost(report: BenchReport) -> _Drawing:
    """Plot EM against model calls, and F1 against tokens (HERA, figure 4), averaged over the sets."""
    calls = {average.method: (average.calls, 100 * average.em) for average in report.summary.averages}
    tokens = {average.method: (average.tokens, 100 * average.f1) for average in report.summary.averages}
    plots = [svg.scatter("Accuracy against model calls", calls, "model calls a question", "EM, average of the sets")]
    if any(x for x, _ in tokens.values()):
        plots.append(svg.scatter("F1 against tokens", tokens, "tokens a question", "F1, average of the sets"))
    return _Drawing(plots)


def _seconds(report: BenchReport) -> _Drawing:
    points = {}
    for average in report.summary.averages:
        own = [stats.all.timing.seconds for stats in report.summary.sets if stats.method == average.method]
        points[average.method] = (sum(own) / len(own), 100 * average.em)
    return _Drawing([svg.scatter("Accuracy against time", points, "seconds a question", "EM, average of the sets")])


def _hops(report: BenchReport) -> _Drawing:
    plots = []
    for name in dict.fromkeys(result.set for result in report.summary.sets):
        stats = {
            result.method: result.all.per_hop
            for result in report.summary.sets
            if result.set == name and result.all.per_hop
        }
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
    present = {kind for parts in shares.values() for kind in parts}
    names = {"right": "right", **KINDS}
    colours = {names[kind]: fill for kind, fill in _KIND_COLOURS.items() if kind in present}
    bars = {label: {names[kind]: share for kind, share in parts.items()} for label, parts in shares.items()}
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


@dataclass(frozen=True, slots=True)
class _Group:
    """Wrong answers of one set and method."""

    run: Run
    set: str
    label: str
    rows: Sequence[ResultRow]


def _wrong_answers(report: BenchReport, out: Path) -> str:
    """Return a section with the wrong answers: question, passages, answer and link to the trace.

    Each group has the anchor that `wrong_anchor` returns.
    """
    groups = [group for group in _groups(report) if group.rows]
    if not groups:
        return ""
    shares = _shares([len(group.rows) for group in groups])
    parts = [_group(group, share, out) for group, share in zip(groups, shares, strict=True)]
    return section("Wrong answers one by one", "Open a line for its trace.", *parts)


def _groups(report: BenchReport) -> Iterable[_Group]:
    labels = labels_of(report.runs)
    for result in report.summary.sets:
        for (number, method), label in labels.items():
            run = report.runs[number]
            rows = [row for row in run.rows if row.failure and (row.set, row.method) == (result.set, method)]
            if rows and label == result.method:
                yield _Group(run, result.set, label, sorted(rows, key=lambda row: row.key))


def _shares(counts: Sequence[int]) -> list[int]:
    """Return the number of answers to show for each group, at least one."""
    limit = max(1, MAX_SHOWN // len(counts))
    return [min(count, limit) for count in counts]


def _group(group: _Group, share: int, out: Path) -> str:
    method = group.rows[0].method
    path = trace_path(group.run.folder, group.set, method)
    address = quote(os.path.relpath(path.resolve(), out.resolve()))
    head = f'<h3 id="{wrong_anchor(group.set, group.label)}">{_shown(group.set)} · {_shown(group.label)}</h3>'
    chosen = f"--sets {group.set} --method {method} --limit 100"
    command = f"pyrag bench show {shell_quote(str(group.run.folder))} --errors {chosen}"
    more = f", {share} of them here" if share < len(group.rows) else ""
    text = (
        f'<p>{len(group.rows)} wrong{more}. All traces: <a href="{escape(address)}">{_shown(path.name)}</a>, or '
        f"<code>{_shown(command)}</code></p>"
    )
    return head + text + "".join(_answer(group.run, row) for row in group.rows[:share])


def _answer(run: Run, row: ResultRow) -> str:
    assert row.failure is not None
    cause = failure_name(f"{row.failure.kind}: {row.failure.detail}" if row.failure.detail else row.failure.kind)
    answer = _cut(row.answer) or "no answer"
    line = f'<span class="cause">{_shown(cause)}</span> · {_shown(_cut(row.question))} → {_shown(answer)}'
    gold = " | ".join(row.gold) or "no answer"
    facts = [f"<p><b>gold:</b> {_shown(_cut(gold))}</p>"]
    missing = [str(hop.gold) for hop in row.support if not hop.is_found]
    if missing:
        facts.append(f"<p><b>gold passages not found:</b> {_shown(_cut(', '.join(missing)))}</p>")
    try:
        facts.append(_trace(run.trace(row)))
    except DataError as error:
        facts.append(f"<p>{_shown(str(error))}</p>")
    return f"<details><summary>{line}</summary>{''.join(facts)}</details>"


def _trace(trace: Trace) -> str:
    parts = [f"<p><b>error:</b> {_shown(trace.error.message)}</p>"] if trace.error else []
    parts += [f"<p>! {_shown(_cut(warning))}</p>" for warning in trace.warnings]
    if trace.program:
        parts.append(f"<pre>{_shown(trace.program[:_MAX_PROGRAM])}</pre>")
    rows = "".join(_step(step, trace) for step in trace.steps[:_MAX_STEPS])
    head = "".join(f"<th>{name}</th>" for name in ("step", "", "query", "answer", "passages"))
    table = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return "".join(parts) + (table if rows else "")


def _step(step: Step, trace: Trace) -> str:
    titles = [trace.passages[key].title or key for key in step.passages[:_MAX_TITLES] if key in trace.passages]
    more = len(step.passages) - len(titles)
    passages = ", ".join(titles) + (f" and {more} more" if more > 0 else "")
    answer = step.error or (step.answer.text if step.answer else step.output)
    cells = (str(step.id + 1), step.primitive, step.query, answer, passages)
    return f"<tr>{''.join(f'<td>{_shown(_cut(cell))}</td>' for cell in cells)}</tr>"


def _cut(text: str) -> str:
    return shorten(text, _MAX_TEXT)


def _shown(text: str) -> str:
    """Return untrusted text as HTML, without characters that change the writing direction."""
    return escape(_UNSAFE.sub("\ufffd", text.encode("utf-8", "replace").decode()))

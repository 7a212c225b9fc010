"""The report as one HTML page: style and plots are in it, nothing is fetched, no script runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pyrag.evaluation.failures import KINDS
from pyrag.evaluation.reports import svg
from pyrag.evaluation.reports.report import Report, Section, failed_note, failure_shares
from pyrag.evaluation.reports.tables import Table
from pyrag.evaluation.reports.wrong_answers import wrong_answers

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2rem auto; max-width: 1800px;
       padding: 0 max(1rem, 2vw); overflow-wrap: break-word; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
p { max-width: 90ch; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .2rem .45rem; border-bottom: 1px solid #e5e5e5; vertical-align: top; }
th { border-bottom: 2px solid #999; text-align: left; vertical-align: bottom; }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; }
td.figure, td.short { white-space: nowrap; }
td:not(.figure) { max-width: 48ch; }
td.reported, th.reported { color: #777; font-style: italic; background: #f6f6f2; }
tr.first td { border-top: 1px solid #999; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 1rem;
         align-items: start; margin: 1rem 0; }
.plots > * { min-width: 0; }
.plots svg { width: 100%; height: auto; max-width: 600px; }
.legend span { margin-right: 1.2rem; display: inline-block; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; }
.failed { background: #fff3cd; padding: .5rem 1rem; }
details { border-bottom: 1px solid #e5e5e5; padding: .2rem 0; }
summary { cursor: pointer; }
details[open] { padding-bottom: 1rem; }
pre { background: #f6f6f2; padding: .5rem; overflow-x: auto; font-size: 12px; }
.cause { color: #a33b00; }
@media (max-width: 600px) {
  body { margin: 1rem auto; padding: 0 .75rem; }
  th, td { padding: .2rem .35rem; }
}
"""
_MAX_COLUMNS = 12
_SHORT = 24  # letters that are not broken into lines
_KIND_COLOURS = {
    "right": "#009e73", "retrieval_missing": "#0072b2", "under_decomposition": "#56b4e9",
    "intermediate_error": "#cc79a7", "misreading": "#d55e00", "final_refusal": "#b8860b", "program_error": "#555555",
    "no_retrieval": "#777777", "budget": "#8c6d31", "service_error": "#000000",
}  # fmt: skip


def page(report: Report, out: Path) -> str:
    """The report with the wrong answers and their traces; links to files count from the folder `out`."""
    note = ""
    if report.summary.failed:
        note = f'<p class="failed">{escape(failed_note(report.summary).strip("*"))}</p>'
    sections = [_section(report, one) for one in report.sections]
    return document("Benchmark report", note + "".join(sections) + wrong_answers(report, out))


def document(title: str, body: str) -> str:
    """A whole page; `body` is HTML."""
    view = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f"{view}<title>{escape(title)}</title><style>{_STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><h1>{escape(title)}</h1>{body}</body></html>\n'


def _section(report: Report, section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    drawn = [_PLOTS[name](report) for name in section.plots]
    parts += [drawing.legend for drawing in drawn]
    if drawn:
        parts.append(plots_html([plot for drawing in drawn for plot in drawing.plots]))
    if section.table:
        parts.append(table_html(upright(section.table), section.links))
    return "\n".join(parts) + "\n"


def upright(table: Table) -> Table:
    """A table of more columns than a screen shows, turned by a quarter, if it has fewer rows."""
    if table.left > 1 or len(table.header) <= max(_MAX_COLUMNS, len(table.rows) + 1):
        return table
    first, *others = zip(table.header, *table.rows, strict=True)
    return Table(first, others)


def table_html(table: Table, links: Mapping[tuple[int, int], str] | None = None) -> str:
    """A table that scrolls where it is too wide; `links` are addresses for cells, by row and column."""
    found = links or {}
    classes = [(("figure " if i >= table.left else "") + _mark(name)).strip() for i, name in enumerate(table.header)]

    def cells(tag: str, row: Sequence[str], number: int) -> str:
        shown = (_linked(cell, found.get((number, i))) for i, cell in enumerate(row))
        kinds = (f"{name} short" if len(cell) <= _SHORT else name for name, cell in zip(classes, row, strict=True))
        return "".join(f'<{tag} class="{name}">{cell}</{tag}>' for name, cell in zip(kinds, shown, strict=True))

    lines, before = [], ""
    for number, row in enumerate(table.rows):
        first = ' class="first"' if before and row[0] != before else ""
        lines.append(f"<tr{first}>{cells('td', row, number)}</tr>")
        before = row[0]
    head = f"<thead><tr>{cells('th', table.header, -1)}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{"".join(lines)}</tbody></table></div>'


def _linked(cell: str, address: str | None) -> str:
    return escape(cell) if address is None else f'<a href="{escape(address)}">{escape(cell)}</a>'


def _mark(header: str) -> str:
    return "reported" if header.startswith("reported") else ""


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Plots of a section, and the legend that they share."""

    plots: Sequence[str]
    legend: str = ""


def _legend(report: Report) -> str:
    return svg.legend({label: svg.colour(position) for position, label in enumerate(report.labels)})


def _cost(report: Report) -> _Drawing:
    """Accuracy against cost, averages over the sets: model calls, and seconds."""
    calls = {one.method: (one.calls, 100 * one.em) for one in report.summary.averages}
    tokens = {one.method: (one.tokens, 100 * one.em) for one in report.summary.averages}
    plots = [svg.scatter("Accuracy against model calls", calls, "model calls a question", "EM, average of the sets")]
    if any(x for x, _ in tokens.values()):
        plots.append(svg.scatter("Accuracy against tokens", tokens, "tokens a question", "EM, average of the sets"))
    return _Drawing(plots)


def _seconds(report: Report) -> _Drawing:
    points = {}
    for one in report.summary.averages:
        own = [stats.all.timing.seconds for stats in report.summary.sets if stats.method == one.method]
        points[one.method] = (sum(own) / len(own), 100 * one.em)
    return _Drawing([svg.scatter("Accuracy against time", points, "seconds a question", "EM, average of the sets")])


def _hops(report: Report) -> _Drawing:
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
    return _Drawing(plots, _legend(report))


def _failures(report: Report) -> _Drawing:
    shares = {label: failure_shares(report, label) for label in report.labels if _has_rows(report, label)}
    present = {kind for one in shares.values() for kind in one}
    names = {"right": "right", **KINDS}
    colours = {names[kind]: fill for kind, fill in _KIND_COLOURS.items() if kind in present}
    bars = {label: {names[kind]: share for kind, share in one.items()} for label, one in shares.items()}
    return _Drawing([svg.stacked_bars("All questions, %", bars, colours)], svg.legend(colours))


def _latency(report: Report) -> _Drawing:
    seconds = {label: [row.seconds for row in report.rows if row.method == label] for label in report.labels}
    lines = {label: svg.cumulative(values) if values else [] for label, values in seconds.items()}
    plot = svg.curves("Latency: share of questions answered within", lines, "seconds", "questions, %")
    return _Drawing([plot], _legend(report))


def _has_rows(report: Report, label: str) -> bool:
    return any(row.method == label for row in report.rows)


def plots_html(plots: Sequence[str]) -> str:
    """Plots side by side, as many as there is room for."""
    return f'<div class="plots">{"".join(plots)}</div>'


_PLOTS: dict[str, Callable[[Report], _Drawing]] = {
    "cost": _cost,
    "seconds": _seconds,
    "hops": _hops,
    "failures": _failures,
    "latency": _latency,
}

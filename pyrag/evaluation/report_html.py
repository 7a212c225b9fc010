"""The report as one HTML page: style and plots are in it, nothing is fetched, no script runs."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from pyrag.evaluation import svg
from pyrag.evaluation.failures import KINDS
from pyrag.evaluation.report import Report, Section, failed_note, failure_shares
from pyrag.evaluation.tables import Table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2rem auto; max-width: 1180px;
       padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #e5e5e5; white-space: nowrap; }
th { border-bottom: 2px solid #999; text-align: left; vertical-align: bottom; white-space: normal; }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; }
td.reported, th.reported { color: #777; font-style: italic; background: #f6f6f2; }
tr.first td { border-top: 1px solid #999; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; }
.failed { background: #fff3cd; padding: .5rem 1rem; }
"""
_KIND_COLOURS = {
    "right": "#009e73", "retrieval_missing": "#0072b2", "under_decomposition": "#56b4e9",
    "intermediate_error": "#cc79a7", "misreading": "#d55e00", "final_refusal": "#b8860b", "program_error": "#555555",
    "no_retrieval": "#777777", "budget": "#8c6d31", "service_error": "#000000",
}  # fmt: skip


def page(report: Report) -> str:
    note = ""
    if report.summary.failed:
        note = f'<p class="failed">{escape(failed_note(report.summary).strip("*"))}</p>'
    return document("Benchmark report", note + "".join(_section(report, one) for one in report.sections))


def document(title: str, body: str) -> str:
    """A whole page; `body` is HTML."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><h1>{escape(title)}</h1>{body}</body></html>\n'


def _section(report: Report, section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    parts += [_PLOTS[name](report) for name in section.plots]
    if section.table:
        parts.append(table_html(section.table))
    return "\n".join(parts) + "\n"


def table_html(table: Table) -> str:
    def cells(tag: str, row: list[str]) -> str:
        classes = ((("figure " if i >= table.left else "") + _mark(table.header[i])).strip() for i in range(len(row)))
        pairs = zip(classes, row, strict=True)
        return "".join(f'<{tag} class="{name}">{escape(cell)}</{tag}>' for name, cell in pairs)

    lines, before = [], ""
    for row in map(list, table.rows):
        first = ' class="first"' if before and row[0] != before else ""
        lines.append(f"<tr{first}>{cells('td', row)}</tr>")
        before = row[0]
    head = f"<thead><tr>{cells('th', list(table.header))}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{"".join(lines)}</tbody></table></div>'


def _mark(header: str) -> str:
    return "reported" if header.startswith("reported") else ""


def _legend(report: Report) -> str:
    return svg.legend({label: svg.colour(position) for position, label in enumerate(report.labels)})


def _cost(report: Report) -> str:
    """Accuracy against cost, averages over the sets: model calls, and seconds."""
    calls = {one.method: (one.calls, 100 * one.em) for one in report.summary.averages}
    tokens = {one.method: (one.tokens, 100 * one.em) for one in report.summary.averages}
    plots = [svg.scatter("Accuracy against model calls", calls, "model calls a question", "EM, average of the sets")]
    if any(x for x, _ in tokens.values()):
        plots.append(svg.scatter("Accuracy against tokens", tokens, "tokens a question", "EM, average of the sets"))
    return plots_html(plots)


def _seconds(report: Report) -> str:
    points = {}
    for one in report.summary.averages:
        own = [stats.all.timing.seconds for stats in report.summary.sets if stats.method == one.method]
        points[one.method] = (sum(own) / len(own), 100 * one.em)
    return plots_html([svg.scatter("Accuracy against time", points, "seconds a question", "EM, average of the sets")])


def _hops(report: Report) -> str:
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
    return _legend(report) + plots_html(plots)


def _failures(report: Report) -> str:
    shares = {label: failure_shares(report, label) for label in report.labels if _has_rows(report, label)}
    present = {kind for one in shares.values() for kind in one}
    names = {"right": "right", **KINDS}
    colours = {names[kind]: fill for kind, fill in _KIND_COLOURS.items() if kind in present}
    bars = {label: {names[kind]: share for kind, share in one.items()} for label, one in shares.items()}
    return svg.legend(colours) + plots_html([svg.stacked_bars("All questions, %", bars, colours)])


def _latency(report: Report) -> str:
    seconds = {label: [row.seconds for row in report.rows if row.method == label] for label in report.labels}
    lines = {label: svg.cumulative(values) if values else [] for label, values in seconds.items()}
    plot = svg.curves("Latency: share of questions answered within", lines, "seconds", "questions, %")
    return _legend(report) + plots_html([plot])


def _has_rows(report: Report, label: str) -> bool:
    return any(row.method == label for row in report.rows)


def plots_html(plots: list[str]) -> str:
    return f'<div class="plots">{"".join(plots)}</div>'


_PLOTS: dict[str, Callable[[Report], str]] = {
    "cost": _cost,
    "seconds": _seconds,
    "hops": _hops,
    "failures": _failures,
    "latency": _latency,
}

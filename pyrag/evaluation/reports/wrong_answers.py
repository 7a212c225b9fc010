"""The wrong answers of a report one by one: question, passages, answer, link to the trace. HTML only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from shlex import quote as shell_quote
from urllib.parse import quote

from pyrag.errors import DataError
from pyrag.evaluation.reports.report import BenchReport, labels_of, wrong_anchor
from pyrag.evaluation.reports.tables import failure_name
from pyrag.evaluation.reports.writer import section
from pyrag.evaluation.runs.folder import Run, trace_path
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.model import Step, Trace, shorten

MAX_SHOWN = 300  # of all sets and methods; a page of thousands helps nobody
_MAX_TEXT = 300  # characters of an answer or a query
_MAX_PROGRAM = 4_000
_MAX_STEPS = 40
_MAX_TITLES = 5
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class _Group:
    """The wrong answers of one set and method."""

    run: Run
    set: str
    label: str
    rows: Sequence[ResultRow]


def wrong_answers(report: BenchReport, out: Path) -> str:
    """Return a section with all groups, each with the anchor of `wrong_anchor`; empty where there are none.

    Args:
        report: The report.
        out: The folder that links to files are relative to.
    """
    groups = [group for group in _groups(report) if group.rows]
    if not groups:
        return ""
    shares = _shares([len(group.rows) for group in groups])
    parts = [_group(group, share, out) for group, share in zip(groups, shares, strict=True)]
    return section("Wrong answers one by one", "Open a line for its trace.", *parts)


def _groups(report: BenchReport) -> Iterable[_Group]:
    labels = labels_of(report.runs)
    for one in report.summary.sets:
        for (number, method), label in labels.items():
            run = report.runs[number]
            rows = [row for row in run.rows if row.failure and (row.set, row.method) == (one.set, method)]
            if rows and label == one.method:
                yield _Group(run, one.set, label, sorted(rows, key=lambda row: row.key))


def _shares(counts: Sequence[int]) -> list[int]:
    """Return how many answers of each group are shown, at least one."""
    most = max(1, MAX_SHOWN // len(counts))
    return [min(count, most) for count in counts]


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
    said = _cut(row.answer) or "no answer"
    line = f'<span class="cause">{_shown(cause)}</span> · {_shown(_cut(row.question))} → {_shown(said)}'
    gold = " | ".join(row.gold) or "no answer"
    facts = [f"<p><b>gold:</b> {_shown(_cut(gold))}</p>"]
    missing = [str(hop.gold) for hop in row.support if not hop.found]
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
    titles = [trace.passages[one].title or one for one in step.passages[:_MAX_TITLES] if one in trace.passages]
    more = len(step.passages) - len(titles)
    found = ", ".join(titles) + (f" and {more} more" if more > 0 else "")
    answer = step.error or (step.answer.text if step.answer else step.output)
    cells = (str(step.id + 1), step.primitive, step.query, answer, found)
    return f"<tr>{''.join(f'<td>{_shown(_cut(cell))}</td>' for cell in cells)}</tr>"


def _cut(text: str) -> str:
    return shorten(text, _MAX_TEXT)


def _shown(text: str) -> str:
    """Return untrusted text as HTML, without characters that turn the direction of writing."""
    return escape(_UNSAFE.sub("\ufffd", text.encode("utf-8", "replace").decode()))

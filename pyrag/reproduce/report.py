"""Report of a table: the paper's rows next to ours, with differences, followed by the benchmark report of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyrag._io.files import write_atomic
from pyrag.errors import DataError
from pyrag.evaluation.reports.paper_scores import REPORTED
from pyrag.evaluation.reports.report import FirstSections, Section
from pyrag.evaluation.reports.report_files import report_files
from pyrag.evaluation.reports.summary import BenchSummary
from pyrag.evaluation.reports.tables import from_figure, interval
from pyrag.evaluation.reports.writer import Table
from pyrag.evaluation.runs.folder import make_folder, read_run
from pyrag.reproduce.steps import MeasuredRow, ReproductionPlan, TableRequest
from pyrag.reproduce.tables import PaperTable
from pyrag.reproduce.tiny import TITLE

_FIGURES = (
    "Exact match in per cent, ours with its 95 % bootstrap interval over the questions. The paper prints no intervals: "
    "that of a difference is ours."
)


def write_table_report(table: PaperTable, request: TableRequest, plan: ReproductionPlan, folder: Path) -> Path:
    """Write the report of a table, and return its path.

    Args:
        table: The table.
        request: Request for the table.
        plan: The plan, whose runs must be finished.
        folder: Folder of the reproduction.

    Raises:
        DataError: A run is missing.
    """
    out = folder / request.reports
    absent = [row.folder for row in plan.measured if not (folder / row.folder / "summary.json").is_file()]
    if absent:
        raise DataError(f"{folder / absent[0]} is not finished: run pyrag reproduce {table.key} --out {folder} first")
    top = _Top(table, request, plan)
    if not plan.measured:
        make_folder(out)
        parts = [f"# {table.key}: {table.title}"]
        for part in top.texts():
            parts += [f"## {part.title}", part.text]
        write_atomic(out / "report.md", ("\n\n".join(parts) + "\n").encode())
        return out / "report.md"
    runs = [read_run(folder / row.folder) for row in plan.measured]
    first: FirstSections = top.sections
    return report_files(runs, out, first)[0]


class _Top:
    """Sections above the benchmark report."""

    def __init__(self, table: PaperTable, request: TableRequest, plan: ReproductionPlan) -> None:
        self.table, self.request, self.plan = table, request, plan

    def sections(self, summary: BenchSummary, runs: Mapping[str, int]) -> Sequence[Section]:
        rows = [
            row
            for stats in summary.sets
            for row in [self._row(self.plan.measured[runs[stats.method]], stats.set, stats.all.em, stats.all.n)]
        ]
        title = f"{self.table.key}: {self.table.title}"
        where = f" The table's own figures are under “{self.table.section}”." if self.table.section else ""
        header = ("row", "set", "the paper's row", "n", "EM here", "EM in the paper", "difference")
        texts = self.texts()
        tiny = [part for part in texts if part.title == TITLE]
        rest = [part for part in texts if part.title != TITLE]
        return (*tiny, Section(title, _FIGURES + where, Table(header, rows, left=3)), *rest)

    def _row(self, measured: MeasuredRow, name: str, em: object, count: int) -> list[str]:
        from pyrag.evaluation.intervals import Estimate

        assert isinstance(em, Estimate)
        figure = figure_of(measured, name)
        printed = ("–", "–") if figure is None else (f"{figure:.1f}", from_figure(em, figure))
        source = measured.paper or ("printed in the text" if figure is not None else "not printed")
        return [measured.row, name, source, str(count), interval(em), *printed]

    def texts(self) -> list[Section]:
        sections = []
        if self.request.scale == "tiny":
            sections.append(Section(TITLE, self.plan.notes[0]))
        elif self.request.limit:
            text = f"{self.request.limit} questions a set, drawn with seed 0, in place of the paper's number."
            sections.append(Section("A sample of the paper's questions", text))
        if self.plan.skipped:
            text = " ".join(f"{name}: {reason}." for name, reason in self.plan.skipped.items())
            sections.append(Section(f"Left out ({len(self.plan.skipped)})", text))
        notes = self.plan.notes[1:] if self.request.scale == "tiny" else self.plan.notes
        if remarks := list(dict.fromkeys([*notes, *self.table.remarks])):
            sections.append(Section("What differs from the paper", " ".join(remarks)))
        return sections


def figure_of(measured: MeasuredRow, name: str) -> float | None:
    """Return the exact match that the paper reports for a row on a set; None if it reports none.

    Args:
        measured: The row.
        name: Name of the set.
    """
    if name in measured.figures:
        return measured.figures[name]
    rows = (row for row in REPORTED if row.source == measured.paper and row.method == measured.method)
    return next((row.em[name] for row in rows if name in row.em), None)

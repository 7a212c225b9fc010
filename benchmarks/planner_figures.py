"""Figures of planners: programs that parse, that run without repair, and that have one search per hop."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.episode.program_values import UNKNOWN_ERROR
from pyrag.evaluation.reports.writer import Table
from pyrag.evaluation.runs.folder import read_run
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.model import UNPLANNED, Program, Trace


@dataclass(frozen=True, slots=True)
class PlannerFigures:
    """Shares of a planner's questions, from 0 to 1.

    `unrepaired` counts questions without a second program, and `sound` counts questions whose first program did not
    fail except because of an unknown answer. `planned` counts first programs with as many searches as hops, and `made`
    counts questions for which that many searches ran; a search that needs an unknown answer does not run. `exact` is
    the share of right answers, and `own` leaves out answers to whole questions (`--whole-question`).
    """

    questions: int
    parsed: float
    unrepaired: float
    sound: float
    planned: float
    made: float
    exact: float
    own: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[ResultRow, Trace]]) -> PlannerFigures:
        """Return the figures of questions with their traces."""
        count = len(pairs)
        planners = [_of_planner(trace) for _, trace in pairs]
        parsed = sum(map(bool, planners))
        fine = [is_sound(trace) for _, trace in pairs]
        smooth = sum(sound and len(programs) == 1 for sound, programs in zip(fine, planners, strict=True))
        planned = sum(planned_searches(trace) == row.hops for row, trace in pairs)
        made = sum(searches(trace) == row.hops for row, trace in pairs)
        exact = sum(row.em for row, _ in pairs)
        own = sum(row.em for row, trace in pairs if trace.programs and trace.programs[-1].origin != UNPLANNED)
        counts = (parsed, smooth, sum(fine), planned, made, exact, own)
        return cls(count, *(number / max(count, 1) for number in counts))


def _of_planner(trace: Trace) -> list[Program]:
    """Return the programs of a question that an agent wrote."""
    return [program for program in trace.programs if program.origin != UNPLANNED]


def is_sound(trace: Trace) -> bool:
    """Return whether a question's first program did not fail, except because of an unknown answer."""
    programs = _of_planner(trace)
    if not programs or (len(programs) == 1 and trace.error is not None):
        return False
    return not programs[0].error or UNKNOWN_ERROR in programs[0].error


def searches(trace: Trace) -> int:
    """Return the number of different searches that the planner's programs made."""
    rounds = len(_of_planner(trace))
    return len({step.query for step in trace.steps if step.primitive == "retrieve" and step.round < rounds})


def planned_searches(trace: Trace) -> int:
    """Return the number of calls of `retrieve` in a question's first program; 0 if it does not parse."""
    try:
        tree = ast.parse(trace.programs[0].source if _of_planner(trace) else "")
    except SyntaxError:
        return 0
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(isinstance(node, ast.Name) and node.id == "retrieve" for node in called)


_COLUMNS = {
    "parsed": "parsed", "unrepaired": "unrepaired", "sound": "without fault", "planned": "searches as hops",
    "made": "made", "exact": "EM", "own": "EM of programs",
}  # fmt: skip


def planner_table(runs: Sequence[Path]) -> Table:
    """Return the planner figures of runs, by set and number of hops.

    Args:
        runs: Folders of `pyrag bench` whose method writes programs.
    """
    rows = []
    for folder in runs:
        opened = read_run(folder)
        groups: dict[tuple[str, int], list[tuple[ResultRow, Trace]]] = {}
        for row in opened.rows:
            if row.hops:
                groups.setdefault((row.set, row.hops), []).append((row, opened.trace(row)))
        for (name, hops), pairs in sorted(groups.items()):
            figures = PlannerFigures.of(pairs)
            shares = (f"{100 * getattr(figures, column):.1f}" for column in _COLUMNS)
            rows.append((folder.name, name, str(hops), str(figures.questions), *shares))
    return Table(("run", "set", "hops", "n", *_COLUMNS.values()), rows)

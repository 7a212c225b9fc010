"""`pyrag bench show RUN --agents`: what the agents of a run did, from its traces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pyrag.cli.output import print_json
from pyrag.evaluation.agent_behaviour import agent_stats, agents_table, ladder_table, outcomes_of
from pyrag.evaluation.reports.summary import set_stats
from pyrag.evaluation.reports.tables import opera_table, role_table
from pyrag.evaluation.runs.folder import read_run
from pyrag.evaluation.scoring import ResultRow


def show_agents(folder: Path, *, sets: Sequence[str], methods: Sequence[str], as_json: bool) -> None:
    """Calls and time by role, success patterns, what the recovery ladder brought, and errors as in OPERA's table 11."""
    run = read_run(folder)
    rows = [row for row in run.rows if (not sets or row.set in sets) and (not methods or row.method in methods)]
    named = [(" · ".join(key), agent_stats(outcomes)) for key, outcomes in outcomes_of(run, rows).items()]
    if as_json:
        print_json(dict(named))
        return
    stats = [set_stats(*key, list(group)) for key, group in groupby(sorted(rows, key=_group), key=_group)]
    tables = (agents_table(named), ladder_table(named), opera_table(stats), role_table(stats))
    print(*(table for table in tables if table), sep="\n\n")


def _group(row: ResultRow) -> tuple[str, str]:
    return row.set, row.method

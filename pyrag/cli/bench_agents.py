"""`pyrag bench show RUN --agents`: what the agents of a run did, from its traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyrag.cli.output import print_json
from pyrag.evaluation.opera import agent_stats, agents_table, ladder_table, outcomes_of
from pyrag.evaluation.runs import read_run


def show_agents(folder: Path, *, sets: Sequence[str], methods: Sequence[str], as_json: bool) -> None:
    """Calls by role, success patterns, and what the recovery ladder brought, a line for each set and method."""
    run = read_run(folder)
    rows = [row for row in run.rows if (not sets or row.set in sets) and (not methods or row.method in methods)]
    named = [(" · ".join(key), agent_stats(outcomes)) for key, outcomes in outcomes_of(run, rows).items()]
    if as_json:
        print_json(dict(named))
        return
    print(agents_table(named), ladder_table(named), sep="\n\n")

"""`pyrag bench show RUN --agents`: what the agents of a run did, from its traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyrag.evaluation.datasets import Question
from pyrag.evaluation.metrics import is_claim
from pyrag.evaluation.opera import Outcome, agent_stats, agents_table, ladder_table
from pyrag.evaluation.runs import Run, read_run
from pyrag.evaluation.scoring import Row


def show_agents(folder: Path, *, sets: Sequence[str], methods: Sequence[str], as_json: bool) -> None:
    """Calls by role, success patterns, and what the recovery ladder brought, a line for each set and method."""
    run = read_run(folder)
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in run.rows:
        if (not sets or row.set in sets) and (not methods or row.method in methods):
            groups[row.set, row.method].append(row)
    named = [(" · ".join(key), agent_stats([_outcome(run, row) for row in rows])) for key, rows in groups.items()]
    if as_json:
        import msgspec

        print(msgspec.json.encode(dict(named)).decode())
        return
    print(agents_table(named), ladder_table(named), sep="\n\n")


def _outcome(run: Run, row: Row) -> Outcome:
    """A row does not keep its gold passages' alternatives, so recall here counts the gold passages alone."""
    gold = tuple(hop.gold for hop in row.support)
    question = Question(row.id, row.question, row.gold, row.type, row.hops)
    titled = is_claim(row.gold)
    question = replace(question, supporting_titles=gold) if titled else replace(question, supporting=gold)
    return Outcome(question, run.trace(row), row.em)

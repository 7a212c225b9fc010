"""`pyrag train curriculum` and `pyrag train report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyrag.cli.output import print_json

if TYPE_CHECKING:
    from pyrag_rl.curriculum.stages import Curriculum


def curriculum(
    file: Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file, such as rl/configs/curriculum.yaml.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of all stages; an existing one is continued.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the stages without starting them.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the stages as JSON.")] = False,
) -> None:
    """Train agents in stages. Each stage starts from the result of the one before."""
    from pyrag_rl.curriculum.backend import real_backend
    from pyrag_rl.curriculum.stages import load_curriculum, run, table

    plan = load_curriculum(file, out)
    if dry_run:
        _show_stages(plan, as_json=json)
        return

    def say(line: str) -> None:
        print(line, file=sys.stderr if json else sys.stdout, flush=True)

    done = run(plan, real_backend(say), say)
    if json:
        print_json(done)
    else:
        print(table(done))


def _show_stages(plan: Curriculum, *, as_json: bool) -> None:
    if as_json:
        print_json(plan.stages)
        return
    for stage in plan.stages:
        rows = stage.data or f"built for {stage.build} from {plan.out}/{stage.name}-practice"
        print(f"{stage.name}: {stage.agent} by {stage.algorithm} on {rows} → {plan.out}/{stage.name}")


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run (the --out of pyrag train).")],
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON without writing the page.")] = False,
) -> None:
    """Write RUN/report.html. It shows the course of training and sample completions."""
    from pyrag_rl.report import read_learning, summary, write_report

    if json:
        table = summary(read_learning(run))
        print_json([dict(zip(table.header, row, strict=True)) for row in table.rows])
        return
    path = write_report(run)
    print(summary(read_learning(run)))
    print(f"\n{path}")

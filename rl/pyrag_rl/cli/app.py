"""Options of `pyrag train`. The code that does the work is imported when a command runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyrag.cli.output import print_json
from pyrag_rl.cli import data as train_data

if TYPE_CHECKING:
    from pyrag_rl.curriculum.stages import Curriculum

train_app = typer.Typer(
    help="Train an agent by reward or on examples.",
    rich_markup_mode=None,
)

train_app.command("data")(train_data.data)
train_app.command("prescore")(train_data.prescore)

Run = Annotated[Path, typer.Argument(help="Folder of a run (the --out of pyrag train).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@train_app.callback(invoke_without_command=True)
def train(
    ctx: typer.Context,
    agent: Annotated[str | None, typer.Option(help="Agent to train: answer, plan, decompose or rewrite.")] = None,
    algorithm: Annotated[str, typer.Option(help="Algorithm: grpo, mapgrpo (OPERA) or sft.")] = "grpo",
    model: Annotated[str | None, typer.Option(help="Model folder or hub name.")] = None,
    data: Annotated[str | None, typer.Option(help="Training set (Parquet file of pyrag train data).")] = None,
    eval_data: Annotated[str | None, typer.Option(help="Held-out set, for evaluation during training.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Folder of the run; an existing run is continued.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile: gpu, cpu for small models, or cpu-smoke for tests.")
    ] = None,
    adapter: Annotated[str | None, typer.Option(help="PEFT adapter to start from.")] = None,
    reward: Annotated[
        str | None,
        typer.Option(
            help="Reward of the agents plan and decompose: answer (F1 and exact match), or coverage (share of gold "
            "passages that the program retrieves).",
            show_default="answer",
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file of training settings.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Training setting, such as batch_size=16 or runtime.topk=5. Repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print verl's config and command without starting it.")
    ] = False,
) -> None:
    """Train an agent. The same command continues a stopped run."""
    if ctx.invoked_subcommand is not None:
        return
    from pyrag.errors import UsageError

    if agent is None:
        raise UsageError("which agent? pass --agent answer, plan, decompose or rewrite (or see pyrag train --help)")
    from pyrag_rl.config import load_config, with_settings
    from pyrag_rl.start import start

    flags = {
        "model": model, "data": data, "eval_data": eval_data, "out": out, "profile": profile, "adapter": adapter,
        "reward": reward,
    }  # fmt: skip
    made = with_settings(load_config(agent, algorithm, file=config, **flags), settings or [])
    start(made, console=_say, dry_run=dry_run)


@train_app.command()
def gate(
    data: Annotated[Path, typer.Option("--data", help="Folder with one subfolder per set.")],
    sets: Annotated[list[str], typer.Option("--sets", help="Names of sets, separated by commas. Repeatable.")],
    limit: Annotated[int, typer.Option(help="Questions per set.", min=1)] = 500,
) -> None:
    """Draw the questions of a curriculum's gates.

    They come from the training questions of sets and are written to DATA/SET/gate_questions.jsonl. pyrag train data
    excludes them.
    """
    from pyrag.cli.bench.app import names
    from pyrag_rl.data.gate import write_gate

    for name in names(sets):
        print(f"{limit} questions: {write_gate(data, name, limit)}")


@train_app.command()
def curriculum(
    file: Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file, such as rl/configs/curriculum.yaml.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of all stages; an existing one is continued.")],
    model: Annotated[str | None, typer.Option(help="Model, in place of the file's.")] = None,
    rows: Annotated[str | None, typer.Option(help="Folder of the training sets, in place of the file's.")] = None,
    prompts: Annotated[
        str | None, typer.Option(help="Prompts of all stages, in place of the file's: a folder or a packaged set.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the stages without starting them.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the stages as JSON.")] = False,
) -> None:
    """Train agents in stages. Each stage starts from the result of the one before."""
    from pyrag_rl.curriculum.backend import real_backend
    from pyrag_rl.curriculum.notes import table
    from pyrag_rl.curriculum.stages import load_curriculum, run

    plan = load_curriculum(file, out, model=model, rows=rows, prompts=prompts)
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


@train_app.command()
def report(
    run: Run,
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


@train_app.command()
def export(
    run: Run,
    step: Annotated[int | None, typer.Option(help="Step to export.", min=1, show_default="the last")] = None,
    merged: Annotated[bool, typer.Option("--merged", help="Also write the model with the adapter merged in.")] = False,
    json: Json = False,
) -> None:
    """Export a run's PEFT adapter and print how to serve it."""
    from pyrag_rl.verl.export import export

    done = export(run, step=step, merged=merged)
    if json:
        print_json(done)
        return
    for name, path in (("adapter", done.adapter), ("merged", done.merged)):
        if path is not None:
            print(f"{name}: {path} (step {done.step})")
    print(f"serve it:  {done.serve}")
    print(f"use it:    {done.ask}")


def _say(line: str) -> None:
    print(line, flush=True)

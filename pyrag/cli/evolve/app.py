"""Options of `pyrag evolve`, and of `diff` and `revert` for its prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options
from pyrag.settings import Settings

evolve_app = typer.Typer(
    help="Learn prompts and experiences for --method hera. Trains no weights.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder given with --out.")]


@evolve_app.callback()
@options.with_settings(
    *options.ENGINES, "rewrite_llm", *options.SOURCE, "topk", "prompts", "deadline", "call_timeout", "request",
    "sandbox", "concurrency",
)  # fmt: skip
def evolve(
    settings: Settings,
    context: typer.Context,
    train: Annotated[Path | None, typer.Option(help="File of questions to learn from (questions.jsonl[.gz]).")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run; an existing run is continued.")
    ] = None,
    val: Annotated[str, typer.Option(help="Validation questions: a file, or a share of --train.")] = "0.2",
    limit: Annotated[int | None, typer.Option(help="Questions to learn from, sampled with --seed.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    group: Annotated[int, typer.Option(help="Topologies to sample per question.", min=2, max=64)] = 4,
    epochs: Annotated[int, typer.Option(help="Passes over the questions.", min=1)] = 1,
    topologies: Annotated[
        bool,
        typer.Option("--topologies", help="Learn which topologies suit which questions, without changing prompts."),
    ] = False,
    library: Annotated[
        bool, typer.Option("--library/--no-library", help="Collect insights and show them to the orchestrator.")
    ] = True,
    prompt_evolution: Annotated[
        bool, typer.Option("--prompt-evolution/--no-prompt-evolution", help="Improve the prompts of agents at fault.")
    ] = True,
    mutation: Annotated[
        bool, typer.Option("--mutation/--no-mutation", help="Mutate topologies if all of a group fail.")
    ] = True,
    max_calls: Annotated[int | None, typer.Option(help="Limit of model calls of the whole run.", min=1)] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Limit of tokens of the whole run.", min=1)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Learn prompts and experiences: pyrag evolve --train FILE --out RUN."""
    from pyrag.cli.evolve.learn import learn
    from pyrag.errors import UsageError
    from pyrag.evolve.config import EvolveConfig
    from pyrag.evolve.learning import LearningLimits

    if train is None or out is None:
        raise UsageError("pyrag evolve needs questions and a folder: pyrag evolve --train FILE --out RUN")
    learn(
        train,
        out,
        val,
        settings,
        EvolveConfig(
            group=group,
            epochs=epochs,
            topologies=topologies,
            library=library,
            prompt_evolution=prompt_evolution,
            mutation=mutation,
        ),
        LearningLimits(calls=max_calls, tokens=max_tokens),
        limit=limit,
        seed=seed,
        as_json=json,
    )


@evolve_app.command()
def diff(
    run: RunFolder,
    old: Annotated[
        int | None, typer.Argument(help="Version to compare from.", show_default="the one before NEW")
    ] = None,
    new: Annotated[int | None, typer.Argument(help="Version to compare to.", show_default="the current one")] = None,
) -> None:
    """Print the difference between two versions of the prompts."""
    from pyrag.cli.evolve.learn import show_difference

    show_difference(run, old, new)


@evolve_app.command()
def revert(
    run: RunFolder, version: Annotated[int, typer.Argument(help="Version to return to; 0 is the one before learning.")]
) -> None:
    """Return to an earlier version of the prompts."""
    from pyrag.evolve.learning import revert

    revert(run, version)
    typer.echo(f"{run}/prompts is version {version} now")

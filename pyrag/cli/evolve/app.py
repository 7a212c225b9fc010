"""The options of `pyrag evolve`. `evolve` itself learns; `evolve diff` and `evolve revert` look after its prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options

evolve_app = typer.Typer(
    help="Learn prompts and experiences for --method hera. Weights stay as they are.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder given with --out.")]


@evolve_app.callback()
def evolve(
    context: typer.Context,
    train: Annotated[Path | None, typer.Option(help="Questions to learn from (questions.jsonl[.gz]).")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run's folder; a run there goes on.")] = None,
    val: Annotated[str, typer.Option(help="Questions that nothing is learned from: a file, or a share.")] = "0.2",
    limit: Annotated[int | None, typer.Option(help="Learn from a sample of so many questions.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Of the samples.")] = 0,
    group: Annotated[int, typer.Option(help="Topologies sampled a question.", min=2, max=64)] = 4,
    epochs: Annotated[int, typer.Option(help="Times that the questions are gone through.", min=1)] = 1,
    topologies: Annotated[
        bool, typer.Option("--topologies", help="Learn which topologies suit which questions; leave prompts alone.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(help="Model calls of the whole run.", min=1)] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of the whole run.", min=1)] = None,
    llm: options.Llm = None,
    index: options.Index = None,
    retriever: options.RetrieverUrl = None,
    topk: options.TopK = None,
    prompts: options.Prompts = None,
    deadline: options.Deadline = None,
    call_timeout: options.CallTimeout = None,
    request: options.Request = None,
    sandbox: options.SandboxMode = None,
    concurrency: options.Concurrency = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    config: options.Config = None,
) -> None:
    """Learn from questions: pyrag evolve --train FILE --out RUN."""
    if context.invoked_subcommand:
        return
    from pyrag.cli.evolve.run import learn
    from pyrag.errors import UsageError
    from pyrag.evolve.config import EvolveConfig
    from pyrag.evolve.run import LearningLimits
    from pyrag.settings import load_settings

    if train is None or out is None:
        raise UsageError("pyrag evolve needs questions and a folder: pyrag evolve --train FILE --out RUN")
    flags = {
        "llm": llm, "index": index, "retriever": retriever, "topk": topk, "prompts": prompts,
        "deadline": deadline, "call_timeout": call_timeout, "request": request,
        "sandbox": sandbox, "concurrency": concurrency,
    }  # fmt: skip
    learn(
        train,
        out,
        val,
        load_settings(flags, config=config),
        EvolveConfig(group=group, epochs=epochs, topologies=topologies),
        LearningLimits(calls=max_calls, tokens=max_tokens),
        limit=limit,
        seed=seed,
        as_json=json,
    )


@evolve_app.command()
def diff(
    run: RunFolder,
    old: Annotated[int | None, typer.Argument(help="A version (the one before NEW).")] = None,
    new: Annotated[int | None, typer.Argument(help="Another version (the current one).")] = None,
) -> None:
    """Show how two versions of the prompts differ."""
    from pyrag.cli.evolve.run import show_difference

    show_difference(run, old, new)


@evolve_app.command()
def revert(run: RunFolder, version: Annotated[int, typer.Argument(help="0 is what learning began with.")]) -> None:
    """Make an earlier version of the prompts the current one."""
    from pyrag.evolve.run import revert

    revert(run, version)
    typer.echo(f"{run}/prompts is version {version} now")

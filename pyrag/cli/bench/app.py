"""The options of `pyrag bench`. `bench` itself is a run; `bench report` and `bench show` look at runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options

bench_app = typer.Typer(
    help="Measure methods on question sets. Without --data: the bundled mini sets.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")]


@bench_app.callback()
def bench(
    context: typer.Context,
    sets: Annotated[list[str] | None, typer.Option("--sets", help="Sets by name, with commas or repeated.")] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="Methods; the others are compared with the first one.", show_default=False),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Questions a set: a sample drawn with --seed.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    concurrency: options.Concurrency = None,
    data: Annotated[Path | None, typer.Option(help="Folder with one folder a set (questions.jsonl[.gz], …).")] = None,
    split: Annotated[str, typer.Option(help="train: the training questions of the sets.")] = "",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The run's folder; a run that is there goes on (runs/TIME).")
    ] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option(help="Documents for the sets without a corpus; repeatable.")
    ] = None,
    index: Annotated[Path | None, typer.Option(help="Index folder for the sets that have no corpus.")] = None,
    retriever: Annotated[str | None, typer.Option(help="URL of a /retrieve server, for all sets.")] = None,
    index_dir: Annotated[Path | None, typer.Option(help="Where indexes are built and kept (beside the run).")] = None,
    workers: Annotated[int, typer.Option(help="Processes to answer in; 0: this one (with --ray: 2).", min=0)] = 0,
    ray: Annotated[str | None, typer.Option(help="Answer on a Ray cluster: its address, or local.")] = None,
    resume_steps: Annotated[
        bool, typer.Option("--resume-steps", help="Keep each question's steps, so that it goes on where it was.")
    ] = False,
    llm: options.Llm = None,
    plan_llm: options.PlanLlm = None,
    rewrite_llm: options.RewriteLlm = None,
    recovery: options.Recovery = None,
    topk: options.TopK = None,
    deadline: options.Deadline = None,
    call_timeout: options.CallTimeout = None,
    request: options.Request = None,
    joint: options.Joint = None,
    max_calls: options.MaxCalls = None,
    sandbox: options.SandboxMode = None,
    prompts: options.Prompts = None,
    cache: options.Cache = None,
    max_cost: options.MaxCost = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    config: options.Config = None,
) -> None:
    """Measure methods on question sets, or look at what was measured (report, show)."""
    if context.invoked_subcommand is not None:
        return
    from pyrag.cli.bench.run import BenchRequest, run
    from pyrag.settings import load_settings

    flags = {
        "llm": llm, "plan_llm": plan_llm, "rewrite_llm": rewrite_llm, "recovery": recovery,
        "topk": topk, "deadline": deadline, "call_timeout": call_timeout, "request": request,
        "joint": joint, "max_calls": max_calls,
        "sandbox": sandbox, "prompts": prompts, "concurrency": concurrency, "retriever": retriever,
        "index": None if index is None else str(index), "cache": cache, "max_cost": max_cost,
    }  # fmt: skip
    chosen = BenchRequest(
        settings=load_settings(flags, config=config), sets=names(sets), methods=names(method), limit=limit, seed=seed,
        data=data, split=split, out=out, corpora=corpus or (), index_dir=index_dir, workers=workers, ray=ray,
        resume_steps=resume_steps, as_json=json,
    )  # fmt: skip
    run(chosen)


@bench_app.command("report")
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, side by side.")],
    out: Annotated[Path | None, typer.Option(help="Where to write report.md and report.html (the first run).")] = None,
) -> None:
    """Write Markdown and one HTML page with plots."""
    from pyrag.cli.bench.view import write_report

    write_report(runs, out)


@bench_app.command("show")
def show(
    run: RunFolder,
    errors: Annotated[bool, typer.Option("--errors", help="Examples of wrong answers with their traces.")] = False,
    agents: Annotated[bool, typer.Option("--agents", help="What each agent did: calls, rewrites, hops.")] = False,
    kind: Annotated[str | None, typer.Option(help="Only this kind of error, such as retrieval_missing.")] = None,
    limit: Annotated[int, typer.Option(help="Examples of each kind.", min=1)] = 1,
    sets: Annotated[list[str] | None, typer.Option("--sets", help="Only these sets.")] = None,
    method: Annotated[list[str] | None, typer.Option("--method", help="Only these methods.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary, or the examples' results, as JSON.")] = False,
) -> None:
    """Print a run's table, its agents' work, or its errors."""
    from pyrag.cli.bench.view import show_agents, show_errors, show_run

    if agents:
        show_agents(run, sets=names(sets), methods=names(method), as_json=json)
    elif errors or kind:
        show_errors(run, kind=kind, limit=limit, sets=names(sets), methods=names(method), as_json=json)
    else:
        show_run(run, sets=names(sets), methods=names(method), as_json=json)


def names(given: list[str] | None) -> list[str]:
    """Names that may be repeated options or joined by commas, each once."""
    return list(dict.fromkeys(name.strip() for one in given or () for name in one.split(",") if name.strip()))

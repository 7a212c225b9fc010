"""Options of `pyrag bench`, which starts a run, and of its subcommands, which show and export runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options
from pyrag.settings import Settings

bench_app = typer.Typer(
    help="Measure methods on question sets. Uses the bundled mini sets unless --data names others.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
CsvFile = Annotated[Path | None, typer.Option(help="File for a table with one row per question.")]
TrecFile = Annotated[Path | None, typer.Option(help="File for the retrieved passages in TREC's run format.")]


@bench_app.callback()
@options.with_settings(
    *options.QUESTION,
    texts={"index": "Index folder for sets without a corpus.", "retriever": "URL of a /retrieve server for all sets."},
)
def bench(
    settings: Settings,
    context: typer.Context,
    sets: Annotated[
        list[str] | None, typer.Option("--sets", help="Names of sets, separated by commas. Repeatable.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="Methods, separated by commas; the first is the baseline of comparisons. Repeatable.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Questions per set, sampled with --seed.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="Folder with one subfolder per set (questions.jsonl[.gz], …).")
    ] = None,
    split: Annotated[str, typer.Option(help="Questions of the sets: train, or gate (see pyrag train gate).")] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the run; an existing run is continued.", show_default="runs/TIME"),
    ] = None,
    corpus: Annotated[list[Path] | None, typer.Option(help="Documents for sets without a corpus. Repeatable.")] = None,
    index_dir: Annotated[
        Path | None, typer.Option(help="Folder for the indexes of corpora.", show_default="next to the run")
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Worker processes; 0 answers in this process (with --ray: 2).", min=0)
    ] = 0,
    ray: Annotated[str | None, typer.Option(help="Answer on a Ray cluster: its address, or local.")] = None,
    resume_steps: Annotated[
        bool,
        typer.Option(
            "--resume-steps", help="Save each step, so that a killed run continues at the step it had reached."
        ),
    ] = False,
    csv: CsvFile = None,
    trec: TrecFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Measure methods on question sets."""
    from pyrag.cli.bench.benchmark import BenchRequest, run

    request = BenchRequest(
        settings=settings, sets=names(sets), methods=names(method), limit=limit, seed=seed, data=data, split=split,
        out=out, corpora=corpus or (), index_dir=index_dir, workers=workers, ray=ray, resume_steps=resume_steps,
        as_json=json, csv=csv, trec=trec,
    )  # fmt: skip
    run(request)


@bench_app.command("export")
def export(
    run: RunFolder,
    csv: CsvFile = None,
    trec: TrecFile = None,
    sets: Annotated[list[str] | None, typer.Option("--sets", help="Restrict to these sets.")] = None,
    method: Annotated[list[str] | None, typer.Option("--method", help="Restrict to these methods.")] = None,
) -> None:
    """Write the results of a run for other programs."""
    from pyrag.cli.bench.view import export as write

    write(run, csv=csv, trec=trec, sets=names(sets), methods=names(method))


@bench_app.command("report")
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of the runs to compare.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write to.", show_default="the first RUN")] = None,
) -> None:
    """Write report.md and report.html about runs."""
    from pyrag.cli.bench.view import write_report

    write_report(runs, out)


@bench_app.command("show")
def show(
    run: RunFolder,
    errors: Annotated[
        bool, typer.Option("--errors", help="Print examples of wrong answers with their traces.")
    ] = False,
    agents: Annotated[bool, typer.Option("--agents", help="Print the calls, rewrites and hops of each agent.")] = False,
    kind: Annotated[str | None, typer.Option(help="Restrict --errors to one kind, such as retrieval_missing.")] = None,
    limit: Annotated[int, typer.Option(help="Examples per kind.", min=1)] = 1,
    sets: Annotated[list[str] | None, typer.Option("--sets", help="Restrict to these sets.")] = None,
    method: Annotated[list[str] | None, typer.Option("--method", help="Restrict to these methods.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the summary, or the results of the examples.")
    ] = False,
) -> None:
    """Print the results of a run, its agents' work or its errors."""
    from pyrag.cli.bench.view import show_agents, show_errors, show_run

    if agents:
        show_agents(run, sets=names(sets), methods=names(method), as_json=json)
    elif errors or kind:
        show_errors(run, kind=kind, limit=limit, sets=names(sets), methods=names(method), as_json=json)
    else:
        show_run(run, sets=names(sets), methods=names(method), as_json=json)


def names(values: list[str] | None) -> list[str]:
    """Return the distinct names in the values of a repeatable option; a value may hold several, separated by commas."""
    return list(dict.fromkeys(name.strip() for value in values or () for name in value.split(",") if name.strip()))

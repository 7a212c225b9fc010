"""Commands `pyrag run` and `pyrag explain`, with their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options
from pyrag.settings import Settings


def add_run(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run")(_run)
    app.command("explain")(_explain)


@options.with_settings(
    "llm", "answer_llm", "rewrite_llm", "recovery", *options.SOURCE, "topk", "where", "deadline", "call_timeout",
    "request", "profile", "max_calls", "max_cost", "sandbox", "prompts", "cache", "embedder", "rerank",
    "least_evidence", "otel", "tools", "flow", "search_effects",
)  # fmt: skip
def _run(
    settings: Settings,
    file: Annotated[str, typer.Argument(help="Python file with the program, or - for stdin.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="Input of the program as NAME=VALUE; the value is JSON or text. Repeatable."),
    ] = None,
    inputs_file: Annotated[Path | None, typer.Option("--inputs", help="JSON file with an object of inputs.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print value, citations, steps and output as JSON.")] = False,
    trace: Annotated[Path | None, typer.Option(help="File to write the trace to, as a JSON line.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="File to append all requests and replies to, for --llm replay:FILE.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="File to save progress in: the same command continues after it was killed or reached a limit."
        ),
    ] = None,
    returns: options.ReturnsType = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the value only, without remarks.")] = False,
) -> None:
    """Run your own program. It calls retrieve() and answer(), and sets final_answer."""
    from pyrag.cli.ask.program import run
    from pyrag.cli.ask.questions import Form

    form = Form(as_json=json, quiet=quiet, returns=returns)
    run(file, inputs or (), inputs_file, settings, form, trace_file=trace, record_file=record, resume_file=resume)


@options.with_settings(
    *options.ENGINES, "rewrite_llm", "recovery", *options.SOURCE, "topk", "where", "method", "deadline", "call_timeout",
    "request", "profile", "joint", "sandbox", "prompts", "cache", "embedder", "rerank", "tools",
)  # fmt: skip
def _explain(
    settings: Settings,
    question: Annotated[str, typer.Argument(metavar="QUESTION|FILE", help="Question, or file with a program.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="Input of the program as NAME=VALUE; the value is JSON or text. Repeatable."),
    ] = None,
    inputs_file: Annotated[Path | None, typer.Option("--inputs", help="JSON file with an object of inputs.")] = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Also run the program, and print the actual amounts.")
    ] = False,
    traces: Annotated[
        list[Path] | None,
        typer.Option(
            "--traces", help="Traces of earlier questions, to estimate recoveries, repairs and time from. Repeatable."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Print what a question or program will cost, line by line. Only planning calls a model."""
    from pyrag.cli.ask.explain import run

    run(question, inputs or (), inputs_file, settings, analyze=analyze, traces=traces or (), as_json=json)

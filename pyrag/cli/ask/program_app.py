"""The command `pyrag run` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options
from pyrag.settings import Settings


def add_run(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("run")(_run)


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
        typer.Option(help="File by which the same command goes on after a kill or a limit; deleted when complete."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the value only, without remarks.")] = False,
) -> None:
    """Run a program of your own over retrieve() and answer(). It sets final_answer."""
    from pyrag.cli.ask.program import run
    from pyrag.cli.ask.questions import Form

    form = Form(as_json=json, quiet=quiet)
    run(file, inputs or (), inputs_file, settings, form, trace_file=trace, record_file=record, resume_file=resume)

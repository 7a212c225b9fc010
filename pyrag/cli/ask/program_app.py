"""The command `pyrag run` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options


def add_run(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("run")(_run)


def _run(
    file: Annotated[str, typer.Argument(help="Python file with the program, or - for stdin.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="Input of the program as NAME=VALUE; the value is JSON or text. Repeatable."),
    ] = None,
    inputs_file: Annotated[Path | None, typer.Option("--inputs", help="JSON file with an object of inputs.")] = None,
    llm: options.Llm = None,
    answer_llm: options.AnswerLlm = None,
    rewrite_llm: options.RewriteLlm = None,
    recovery: options.Recovery = None,
    index: options.Index = None,
    retriever: options.RetrieverUrl = None,
    topk: options.TopK = None,
    where: options.Where = None,
    deadline: options.Deadline = None,
    call_timeout: options.CallTimeout = None,
    request: options.Request = None,
    profile: options.Profile = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    sandbox: options.SandboxMode = None,
    prompts: options.Prompts = None,
    cache: options.Cache = None,
    embedder: options.Embedder = None,
    rerank: options.Rerank = None,
    least_evidence: options.LeastEvidence = None,
    tools: options.Tools = None,
    json: Annotated[bool, typer.Option("--json", help="Print value, citations, steps and output as JSON.")] = False,
    trace: Annotated[Path | None, typer.Option(help="File to write the trace to, as a JSON line.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="File to append all requests and replies to, for --llm replay:FILE.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the value only, without remarks.")] = False,
    config: options.Config = None,
) -> None:
    """Run a program of your own over retrieve() and answer(). It sets final_answer."""
    from pyrag.cli.ask.program import run
    from pyrag.cli.ask.run import Form

    form = Form(as_json=json, quiet=quiet)
    chosen = options.chosen(locals())
    run(file, inputs or (), inputs_file, chosen, form, trace_file=trace, record_file=record)

"""Commands of the core with their options. A command's work is in its own module, imported when it runs.

Commands of plug-ins, including pyrag's own, are found by entry points (`pyrag.cli.commands`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options
from pyrag.cli.ask.program_app import add_run
from pyrag.cli.cache import cache_app
from pyrag.cli.commands import CommandGroup
from pyrag.cli.index.app import index_app
from pyrag.settings import Settings

_EPILOG = """\b
First steps:
  pyrag index FOLDER --out my-index
  pyrag ask "Who founded Acme?" --index my-index

Every command has --help. Add --debug to any command to show the traceback of an error."""

app = typer.Typer(
    cls=CommandGroup,
    name="pyrag",
    help="Answer questions over documents by programs that call retrieve() and answer().",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=_EPILOG,
)
trace_app = typer.Typer(help="Show and replay saved traces.", no_args_is_help=True, rich_markup_mode=None)
sandbox_app = typer.Typer(help="Test the sandbox that runs programs.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(cache_app, name="cache")
app.add_typer(index_app, name="index")
app.add_typer(trace_app, name="trace")
app.add_typer(sandbox_app, name="sandbox")


def _version(is_requested: bool) -> None:
    if is_requested:
        from pyrag import __version__

        typer.echo(f"pyrag {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
@options.with_settings(*options.QUESTION, "method", "stream", "embedder", "rerank", "least_evidence")
def ask(
    settings: Settings,
    question: Annotated[str, typer.Argument(help="The question, or - to read questions from stdin, one per line.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per question.")] = False,
    trace: Annotated[Path | None, typer.Option(help="File to write the traces to, as JSON lines.")] = None,
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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only, without remarks.")] = False,
) -> None:
    """Answer a question over an index. Without --index, search a small bundled corpus."""
    from pyrag.cli.ask.questions import Form, run

    form = Form(as_json=json, quiet=quiet, returns=returns)
    run(question, settings, form, trace_file=trace, record_file=record, resume_file=resume)


@app.command()
@options.with_settings(
    "llm", "plan_llm", *options.SOURCE, "topk", "method", "deadline", "max_calls", "max_cost", "sandbox", "cache",
    "flow", "search_effects",
)  # fmt: skip
def chat(
    settings: Settings,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per question.")] = False,
    trace: Annotated[Path | None, typer.Option(help="File to write the traces to, as JSON lines.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answers only, without remarks.")] = False,
) -> None:
    """Answer a conversation, one question per line."""
    from pyrag.cli.ask.chat import run
    from pyrag.cli.ask.questions import Form

    run(settings, Form(as_json=json, quiet=quiet), trace_file=trace)


@app.command("serve-model")
def serve_model(
    model: Annotated[str, typer.Argument(help="Folder of a model, or its name on the hub.")],
    more: Annotated[list[str] | None, typer.Argument(help="Arguments passed on to vllm serve, after --.")] = None,
    lora: Annotated[list[str] | None, typer.Option(help="LoRA adapter as NAME=FOLDER. Repeatable.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 listens on all interfaces.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    name: Annotated[str | None, typer.Option(help="Name that clients use for the model.", show_default="MODEL")] = None,
    tensor_parallel: Annotated[int, typer.Option(help="GPUs to split one copy of the model over.", min=1)] = 1,
    data_parallel: Annotated[int, typer.Option(help="Copies of the model to run.", min=1)] = 1,
    dtype: Annotated[
        str | None, typer.Option(help="Data type: auto, bfloat16, float16 or float32.", show_default="the model's own")
    ] = None,
    max_model_len: Annotated[
        int | None, typer.Option(help="Context window in tokens.", min=1, show_default="the model's own")
    ] = None,
    gpu_memory: Annotated[
        float | None,
        typer.Option(
            help="Share of each GPU's memory to use; of the machine's memory without a GPU.",
            min=0.0,
            max=1.0,
            show_default="0.9; 0.4 without a GPU",
        ),
    ] = None,
    prefix_caching: Annotated[bool, typer.Option(help="Reuse the computation of common prompt prefixes.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the vllm command without running it.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --dry-run, print JSON.")] = False,
) -> None:
    """Serve a model and its LoRA adapters with vLLM. Set PYRAG_API_KEY to require a key."""
    from pyrag.cli.serve_model import serve_model
    from pyrag.llm.clients.adapters import read_adapter
    from pyrag.llm.clients.serve_line import Serving

    serving = Serving(
        model=model,
        adapters=[read_adapter(adapter) for adapter in lora or ()],
        host=host,
        port=port,
        served_name=name,
        tensor_parallel=tensor_parallel,
        data_parallel=data_parallel,
        dtype=dtype,
        max_model_len=max_model_len,
        gpu_memory=gpu_memory,
        prefix_caching=prefix_caching,
        more=more or (),
    )
    serve_model(serving, dry_run=dry_run, as_json=json)


add_run(app)


@app.command()
@options.with_settings(*options.ENGINES, *options.SOURCE, "tools", "sandbox")
def doctor(
    settings: Settings,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check the installation and the configured engines."""
    from pyrag.cli.doctor import examine

    examine(settings, as_json=json)


@app.command()
@options.with_settings("llm")
def models(
    settings: Settings,
    spec: Annotated[str | None, typer.Argument(help="Engine, as for --llm.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the models as JSON.")] = False,
) -> None:
    """List the models and adapters that a server offers."""
    from pyrag.cli.doctor import show_models

    show_models(replace(settings, llm=spec) if spec else settings, as_json=json)


@trace_app.command("show")
def trace_show(files: Annotated[list[Path], typer.Argument(help="Trace files of pyrag ask --trace.")]) -> None:
    """Print saved traces."""
    from pyrag.cli.traces import show

    show(files)


@trace_app.command("html")
def trace_html(
    files: Annotated[list[Path], typer.Argument(help="Trace files of pyrag ask --trace, or of a run of pyrag bench.")],
    out: Annotated[Path | None, typer.Option(help="The page.", show_default="the first file's name with .html")] = None,
) -> None:
    """Write saved traces as one page for a browser."""
    from pyrag.cli.traces import write_html

    write_html(files, out)


@trace_app.command("replay")
def trace_replay(
    file: Annotated[Path, typer.Argument(help="Trace files of pyrag ask --trace.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per trace.")] = False,
) -> None:
    """Run traces again from their recordings and print the differences."""
    from pyrag.cli.traces import replay

    replay(file, as_json=json)


@sandbox_app.command("check")
def sandbox_check(
    file: Annotated[Path, typer.Argument(help="Program, or a .jsonl suite of objects with id, program and expect.")],
    mode: Annotated[str, typer.Option(help="Layers to test: both, policy or kernel.")] = "both",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per program.")] = False,
) -> None:
    """Run programs in the sandbox and print what happened. Searches and answers are placeholders."""
    from pyrag.cli.sandbox import check

    check(file, mode, as_json=json)

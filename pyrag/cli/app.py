"""All commands and their options. Each command's work is in its own module, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyrag.cli import options
from pyrag.cli.ask.program_app import add_run
from pyrag.cli.bench.app import bench_app
from pyrag.cli.cache import cache_app
from pyrag.cli.data import data_app
from pyrag.cli.evolve.app import evolve_app
from pyrag.cli.evolve.experience import experience_app
from pyrag.cli.index.app import index_app
from pyrag.cli.reproduce.app import add_reproduce
from pyrag.cli.train.app import train_app

app = typer.Typer(
    name="pyrag",
    help="Answer multi-hop questions: a question becomes a Python program over retrieve() and answer().",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Add --debug to any command to show the traceback of an error.",
)
trace_app = typer.Typer(help="Show and replay saved traces.", no_args_is_help=True, rich_markup_mode=None)
sandbox_app = typer.Typer(help="Test the sandbox that runs programs.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(bench_app, name="bench")
app.add_typer(cache_app, name="cache")
app.add_typer(data_app, name="data")
app.add_typer(evolve_app, name="evolve")
app.add_typer(experience_app, name="experience")
app.add_typer(index_app, name="index")
app.add_typer(trace_app, name="trace")
app.add_typer(sandbox_app, name="sandbox")
app.add_typer(train_app, name="train")


def _version(wanted: bool) -> None:
    if wanted:
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
def ask(
    question: Annotated[str, typer.Argument(help="The question, or - to read questions from stdin, one per line.")],
    llm: options.Llm = None,
    plan_llm: options.PlanLlm = None,
    decompose_llm: options.DecomposeLlm = None,
    answer_llm: options.AnswerLlm = None,
    rewrite_llm: options.RewriteLlm = None,
    recovery: options.Recovery = None,
    index: options.Index = None,
    retriever: options.RetrieverUrl = None,
    topk: options.TopK = None,
    where: options.Where = None,
    method: options.Method = None,
    deadline: options.Deadline = None,
    call_timeout: options.CallTimeout = None,
    request: options.Request = None,
    profile: options.Profile = None,
    joint: options.Joint = None,
    synthesis: options.Synthesis = None,
    whole_question: options.WholeQuestion = None,
    stream: options.Stream = None,
    max_calls: options.MaxCalls = None,
    sandbox: options.SandboxMode = None,
    prompts: options.Prompts = None,
    experience: options.Experience = None,
    concurrency: options.Concurrency = None,
    cache: options.Cache = None,
    max_cost: options.MaxCost = None,
    embedder: options.Embedder = None,
    rerank: options.Rerank = None,
    least_evidence: options.LeastEvidence = None,
    otel: options.Otel = None,
    tools: options.Tools = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per question.")] = False,
    trace: Annotated[Path | None, typer.Option(help="File to write the traces to, as JSON lines.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="File to append all requests and replies to, for --llm replay:FILE.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only, without remarks.")] = False,
    config: options.Config = None,
) -> None:
    """Answer a question."""
    from pyrag.cli.ask.run import Form, run

    form = Form(as_json=json, quiet=quiet)
    run(question, options.chosen(locals()), form, trace_file=trace, record_file=record)


@app.command()
def chat(
    llm: options.Llm = None,
    plan_llm: options.PlanLlm = None,
    index: options.Index = None,
    retriever: options.RetrieverUrl = None,
    topk: options.TopK = None,
    method: options.Method = None,
    deadline: options.Deadline = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    sandbox: options.SandboxMode = None,
    cache: options.Cache = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per question.")] = False,
    trace: Annotated[Path | None, typer.Option(help="File to write the traces to, as JSON lines.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answers only, without remarks.")] = False,
    config: options.Config = None,
) -> None:
    """Answer a conversation, one question a line."""
    from pyrag.cli.ask.chat import run
    from pyrag.cli.ask.run import Form

    run(options.chosen(locals()), Form(as_json=json, quiet=quiet), trace_file=trace)


@app.command()
def serve(
    index: Annotated[
        list[str] | None,
        typer.Option(help="Index to serve, as NAME=FOLDER or NAME=URL. Repeatable.", show_default="the bundled corpus"),
    ] = None,
    llm: options.Llm = None,
    plan_llm: options.PlanLlm = None,
    decompose_llm: options.DecomposeLlm = None,
    answer_llm: options.AnswerLlm = None,
    profile: options.Profile = None,
    method: options.Method = None,
    topk: options.TopK = None,
    where: options.Where = None,
    deadline: options.Deadline = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    sandbox: options.SandboxMode = None,
    concurrency: options.Concurrency = None,
    cache: options.Cache = None,
    tools: options.Tools = None,
    otel: options.Otel = None,
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = 8010,
    api_key_file: options.ApiKeyFile = None,
    allow_anonymous: options.AllowAnonymous = False,
    max_waiting: Annotated[int, typer.Option(help="Questions that may wait; further ones get 429.", min=0)] = 64,
    traces: options.TraceFile = None,
    max_traces: Annotated[int, typer.Option(help="Traces to keep.", min=1)] = 1000,
    trace_days: Annotated[
        float | None, typer.Option(help="Days to keep a trace.", min=0.0, show_default="no limit")
    ] = None,
    max_trace_mb: Annotated[float, typer.Option(help="Megabytes that the traces may take.", min=1.0)] = 256.0,
    max_per_address: Annotated[
        int, typer.Option(help="Connections of one address; 0 for no limit, as behind a proxy.", min=0)
    ] = 256,
    config: options.Config = None,
) -> None:
    """Serve questions, passages and traces over HTTP."""
    from pyrag.cli.serve import serve

    serve(
        options.chosen(locals(), index=None),
        index or (),
        api_key_file,
        host=host,
        port=port,
        allow_anonymous=allow_anonymous,
        max_waiting=max_waiting,
        traces=traces,
        max_traces=max_traces,
        trace_days=trace_days,
        max_trace_mb=max_trace_mb,
        max_per_address=max_per_address or None,
    )


@app.command()
def mcp(
    index: Annotated[
        list[str] | None,
        typer.Option(help="Index to offer, as NAME=FOLDER or NAME=URL. Repeatable.", show_default="the bundled corpus"),
    ] = None,
    llm: options.Llm = None,
    plan_llm: options.PlanLlm = None,
    decompose_llm: options.DecomposeLlm = None,
    answer_llm: options.AnswerLlm = None,
    profile: options.Profile = None,
    method: options.Method = None,
    topk: options.TopK = None,
    where: options.Where = None,
    deadline: options.Deadline = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    sandbox: options.SandboxMode = None,
    concurrency: options.Concurrency = None,
    cache: options.Cache = None,
    otel: options.Otel = None,
    http: Annotated[bool, typer.Option("--http", help="Speak streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="Address for --http; other than loopback needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for --http; 0 picks a free one.", min=0, max=65535)] = 8011,
    api_key_file: options.ApiKeyFile = None,
    allow_anonymous: options.AllowAnonymous = False,
    traces: options.TraceFile = None,
    config: options.Config = None,
) -> None:
    """Serve an assistant by MCP: tools and resources."""
    from pyrag.cli.serve import serve_mcp

    serve_mcp(
        options.chosen(locals(), index=None),
        index or (),
        api_key_file,
        http=http,
        host=host,
        port=port,
        allow_anonymous=allow_anonymous,
        traces=traces,
    )


@app.command("serve-retriever")
def serve_retriever(
    spec: Annotated[str, typer.Argument(help="Index folder, qdrant:COLLECTION@URL or pgvector:TABLE@URL.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 listens on all interfaces.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = 8008,
    embedder: options.Embedder = None,
    dense_weight: options.DenseWeight = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Refuse an index whose vectors are searched approximately.")
    ] = False,
    rerank: options.Rerank = None,
    where: options.Where = None,
    config: options.Config = None,
) -> None:
    """Serve an index over HTTP. It answers POST /retrieve, for --retriever URL."""
    from pyrag.cli.serve import serve_retriever

    serve_retriever(spec, host, port, options.chosen(locals()), exact=exact)


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
        float | None, typer.Option(help="Share of each GPU's memory to use.", min=0.0, max=1.0, show_default="0.9")
    ] = None,
    prefix_caching: Annotated[bool, typer.Option(help="Reuse the computation of common prompt prefixes.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the vllm command without running it.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --dry-run, print JSON.")] = False,
) -> None:
    """Serve a model and its LoRA adapters with vLLM. Set PYRAG_API_KEY to require a key."""
    from pyrag.cli.serve import serve_model
    from pyrag.llm.clients.adapters import read_adapter
    from pyrag.llm.clients.serve_line import Serving

    serving = Serving(
        model=model,
        adapters=[read_adapter(one) for one in lora or ()],
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


add_reproduce(app)
add_run(app)


@app.command()
def doctor(
    llm: options.Llm = None,
    plan_llm: options.PlanLlm = None,
    decompose_llm: options.DecomposeLlm = None,
    answer_llm: options.AnswerLlm = None,
    index: options.Index = None,
    retriever: options.RetrieverUrl = None,
    tools: options.Tools = None,
    sandbox: options.SandboxMode = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    config: options.Config = None,
) -> None:
    """Check the installation and the configured engines."""
    from pyrag.cli.doctor import examine

    examine(options.chosen(locals()), as_json=json)


@app.command()
def models(
    spec: Annotated[str | None, typer.Argument(help="Engine, as for --llm.")] = None,
    llm: options.Llm = None,
    json: Annotated[bool, typer.Option("--json", help="Print the models as JSON.")] = False,
    config: options.Config = None,
) -> None:
    """List the models and adapters that a server offers."""
    from pyrag.cli.doctor import show_models

    show_models(options.chosen(locals(), llm=spec or llm), as_json=json)


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
    """Run programs in the sandbox and print verdicts. Primitives are stubs."""
    from pyrag.cli.sandbox import check

    check(file, mode, as_json=json)

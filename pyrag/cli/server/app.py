"""Options of `pyrag serve`, `pyrag mcp` and `pyrag serve-retriever`."""

from __future__ import annotations

from typing import Annotated

import typer

from pyrag.cli import options
from pyrag.settings import Settings

serve_app = typer.Typer(rich_markup_mode=None)
mcp_app = typer.Typer(rich_markup_mode=None)
serve_retriever_app = typer.Typer(rich_markup_mode=None)


@serve_app.command()
@options.with_settings(*options.SERVED, "tools")
def serve(
    settings: Settings,
    index: Annotated[
        list[str] | None,
        typer.Option(help="Index to serve, as NAME=FOLDER or NAME=URL. Repeatable.", show_default="the bundled corpus"),
    ] = None,
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
) -> None:
    """Serve questions, passages and traces over HTTP."""
    from pyrag.cli.server.serving import serve

    serve(
        settings,
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


@mcp_app.command()
@options.with_settings(*options.SERVED)
def mcp(
    settings: Settings,
    index: Annotated[
        list[str] | None,
        typer.Option(help="Index to offer, as NAME=FOLDER or NAME=URL. Repeatable.", show_default="the bundled corpus"),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Speak streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="Address for --http; other than loopback needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for --http; 0 picks a free one.", min=0, max=65535)] = 8011,
    api_key_file: options.ApiKeyFile = None,
    allow_anonymous: options.AllowAnonymous = False,
    traces: options.TraceFile = None,
) -> None:
    """Let an assistant ask and search over MCP."""
    from pyrag.cli.server.serving import serve_mcp

    serve_mcp(
        settings,
        index or (),
        api_key_file,
        http=http,
        host=host,
        port=port,
        allow_anonymous=allow_anonymous,
        traces=traces,
    )


@serve_retriever_app.command()
@options.with_settings("embedder", "dense_weight", "rerank", "where")
def serve_retriever(
    settings: Settings,
    spec: Annotated[str, typer.Argument(help="Index folder, qdrant:COLLECTION@URL or pgvector:TABLE@URL.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 listens on all interfaces.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = 8008,
    exact: Annotated[
        bool, typer.Option("--exact", help="Refuse an index whose vectors are searched approximately.")
    ] = False,
) -> None:
    """Serve an index over HTTP. It answers POST /retrieve, for --retriever URL."""
    from pyrag.cli.server.serving import serve_retriever

    serve_retriever(spec, host, port, settings, exact=exact)

"""`pyrag serve`, `mcp` and `serve-retriever`: servers, with their options read and checked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag.settings import Settings

if TYPE_CHECKING:
    from pyrag.server.config import ApiKeys, ServerConfig


def serve(settings: Settings, named: Iterable[str], api_key_file: Path | None, **limits: Any) -> None:
    """Serve questions over HTTP until a signal ends it.

    Args:
        settings: of all questions; `concurrency` is the number answered at once.
        named: indexes as `NAME=FOLDER`; without one, that of the settings.
        api_key_file: keys that are accepted, besides that of the environment.
        limits: fields of `ServerConfig`.

    Raises:
        PyRAGError: an option is wrong, an index cannot be used, or the port is taken.
    """
    from pyrag.server.config import read_keys
    from pyrag.server.processes import serve

    settings, config = _served(settings, named, read_keys(api_key_file, os.environ), limits)
    asyncio.run(serve(settings, config, lambda url: print(f"pyrag: serving at {url} (Ctrl-C ends)", flush=True)))


def serve_mcp(
    settings: Settings, named: Iterable[str], api_key_file: Path | None, *, http: bool, **limits: Any
) -> None:
    """Serve an assistant by MCP until stdin ends or a signal comes.

    Args:
        settings: as for `serve`.
        named: as for `serve`.
        api_key_file: keys that are accepted over HTTP, besides that of the environment.
        http: True for streamable HTTP, False for stdin and stdout.
        limits: fields of `ServerConfig`.

    Raises:
        PyRAGError: as for `serve`.
    """
    from pyrag.cli.views.terminal import raw_stream
    from pyrag.server.config import ApiKeys, read_keys
    from pyrag.server.mcp.transports import serve_http, serve_stdio

    keys = read_keys(api_key_file, os.environ) if http else ApiKeys()
    settings, config = _served(settings, named, keys, limits)
    if http:
        asyncio.run(serve_http(settings, config, lambda url: print(f"pyrag: MCP at {url} (Ctrl-C ends)", flush=True)))
        return
    with contextlib.redirect_stdout(raw_stream(sys.stdout)):  # JSON, which the printing of untrusted texts would cut
        asyncio.run(serve_stdio(settings, config))


def _served(
    settings: Settings, named: Iterable[str], keys: ApiKeys, limits: Mapping[str, Any]
) -> tuple[Settings, ServerConfig]:
    """Return the settings of questions and those of the server; named indexes take the place of the settings' own."""
    from pyrag.server.config import ServerConfig, read_indexes

    config = ServerConfig(indexes=read_indexes(named), keys=keys, max_running=settings.concurrency, **limits)
    return replace(settings, index=None, retriever=None) if config.indexes else settings, config


def serve_retriever(spec: str, host: str, port: int, settings: Settings, *, exact: bool) -> None:
    """Serve an index over HTTP until interrupted: one index for many processes.

    Args:
        spec: Index folder, `qdrant:COLLECTION@URL` or `pgvector:TABLE@URL`.
        host: Address to listen on.
        port: Port; 0 picks a free one.
        settings: Embedder of queries, weight of vectors, reranker, and a filter that all passages must pass, whatever
            a request asks for.
        exact: Refuse an index whose vectors are searched approximately.
    """
    from pyrag.retrieval import Options, open_retriever
    from pyrag.retrieval.filters.language import parsed
    from pyrag.server.config import ServerConfig
    from pyrag.server.processes import serve_retriever

    folder = Path(spec).expanduser()

    def started(url: str, name: str) -> None:
        print(f"serving {name} at {url}; use it with: pyrag ask --retriever {url} (Ctrl-C ends)", flush=True)

    options = Options(
        embedder=settings.embedder,
        dense_weight=settings.dense_weight,
        exact=exact,
        rerank=settings.rerank,
        where=None if settings.where is None else parsed(settings.where),
    )
    # Search-R1's clients send no key, and may be the many processes of one machine.
    config = ServerConfig(host=host, port=port, allow_anonymous=True, max_per_address=None)
    asyncio.run(
        serve_retriever(
            lambda: open_retriever(spec, options=options), folder if folder.is_dir() else None, config, started
        )
    )

"""`pyrag serve`, `mcp` and `serve-retriever`: checks of the options, and the running servers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag._io.specs import expanded
from pyrag.settings import Settings

if TYPE_CHECKING:
    from pyrag.server.config import ApiKeys, ServerConfig


def serve(settings: Settings, indexes: Iterable[str], api_key_file: Path | None, **limits: Any) -> None:
    """Serve questions over HTTP until a signal arrives.

    Args:
        settings: Settings of all questions. `concurrency` is the number of questions answered at once.
        indexes: Indexes as `NAME=FOLDER` or `NAME=URL`. If empty, the index of the settings is served.
        api_key_file: File of accepted keys, which are added to the key in the environment. None to read no file.
        **limits: Other fields of `ServerConfig`.

    Raises:
        PyRAGError: An option is wrong, an index cannot be used, or the port is in use.
    """
    from pyrag.server.config import read_keys
    from pyrag.server.processes import serve

    settings, config = _served(settings, indexes, read_keys(api_key_file, os.environ), limits)
    asyncio.run(serve(settings, config, lambda url: print(f"pyrag: serving at {url} (Ctrl-C ends)", flush=True)))


def serve_mcp(
    settings: Settings, indexes: Iterable[str], api_key_file: Path | None, *, http: bool, **limits: Any
) -> None:
    """Serve an assistant by MCP until stdin ends or a signal arrives.

    Args:
        settings: Settings of all questions. `concurrency` is the number of questions answered at once.
        indexes: Indexes as `NAME=FOLDER` or `NAME=URL`. If empty, the index of the settings is served.
        api_key_file: File of keys accepted over HTTP, which are added to the key in the environment. None to read no
            file.
        http: True for streamable HTTP, False for stdin and stdout.
        **limits: Other fields of `ServerConfig`.

    Raises:
        PyRAGError: An option is wrong, an index cannot be used, or the port is in use.
    """
    from pyrag.cli.views.terminal import raw_stream
    from pyrag.server.config import ApiKeys, read_keys
    from pyrag.server.mcp.transports import serve_http, serve_stdio

    keys = read_keys(api_key_file, os.environ) if http else ApiKeys()
    settings, config = _served(settings, indexes, keys, limits)
    if http:
        asyncio.run(serve_http(settings, config, lambda url: print(f"pyrag: MCP at {url} (Ctrl-C ends)", flush=True)))
        return
    with contextlib.redirect_stdout(raw_stream(sys.stdout)):  # the safe stream would remove characters of the JSON
        asyncio.run(serve_stdio(settings, config))


def _served(
    settings: Settings, indexes: Iterable[str], keys: ApiKeys, limits: Mapping[str, Any]
) -> tuple[Settings, ServerConfig]:
    """Return the settings of questions and of the server. Indexes on the command line override the settings' index."""
    from pyrag.server.config import ServerConfig, read_indexes

    config = ServerConfig(indexes=read_indexes(indexes), keys=keys, max_running=settings.concurrency, **limits)
    return replace(settings, index=None, retriever=None, sources=()) if config.indexes else settings, config


def serve_retriever(spec: str, host: str, port: int, settings: Settings, *, exact: bool) -> None:
    """Serve an index to other processes over HTTP until interrupted.

    Args:
        spec: Index folder, `qdrant:COLLECTION@URL` or `pgvector:TABLE@URL`.
        host: Address to listen on.
        port: Port to listen on. 0 picks a free one.
        settings: Embedder of queries, weight of vectors, reranker, and a filter that all passages must pass in
            addition to a request's own filter.
        exact: Whether to refuse an index whose vectors are searched approximately.
    """
    from pyrag.retrieval import Options, open_retriever
    from pyrag.retrieval.filters.language import parsed
    from pyrag.server.config import ServerConfig
    from pyrag.server.processes import serve_retriever

    folder = expanded(spec)

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

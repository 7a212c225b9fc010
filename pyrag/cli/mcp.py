"""`pyrag mcp`: the MCP server, with its options read and checked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrag.settings import Settings


def run(settings: Settings, named: Iterable[str], api_key_file: Path | None, *, http: bool, **limits: Any) -> None:
    """Serve until stdin ends or a signal comes.

    Args:
        settings: of all questions; `concurrency` is the number answered at once.
        named: indexes as `NAME=FOLDER`; without one, that of the settings.
        api_key_file: keys that are accepted over HTTP, besides that of the environment.
        http: True for streamable HTTP, False for stdin and stdout.
        limits: fields of `ServerConfig`.

    Raises:
        PyRAGError: an option is wrong, an index cannot be used, or the port is taken.
    """
    from pyrag.cli.views.terminal import raw_stream
    from pyrag.server.config import ApiKeys, ServerConfig, read_indexes, read_keys
    from pyrag.server.mcp.run import serve_http, serve_stdio

    keys = read_keys(api_key_file, os.environ) if http else ApiKeys()
    config = ServerConfig(indexes=read_indexes(named), max_running=settings.concurrency, keys=keys, **limits)
    settings = replace(settings, index=None, retriever=None) if config.indexes else settings
    if http:
        asyncio.run(serve_http(settings, config, lambda url: print(f"pyrag: MCP at {url} (Ctrl-C ends)", flush=True)))
        return
    with contextlib.redirect_stdout(raw_stream(sys.stdout)):  # JSON, which the printing of untrusted texts would cut
        asyncio.run(serve_stdio(settings, config))

"""`pyrag serve`: the HTTP service, with its options read and checked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrag.settings import Settings


def run(settings: Settings, named: Iterable[str], api_key_file: Path | None, **limits: Any) -> None:
    """Serve until a signal ends it.

    Args:
        settings: of all questions; `concurrency` is the number answered at once.
        named: indexes as `NAME=FOLDER`; without one, that of the settings.
        api_key_file: keys that are accepted, besides that of the environment.
        limits: fields of `ServerConfig`.

    Raises:
        PyRAGError: an option is wrong, an index cannot be used, or the port is taken.
    """
    from pyrag.server.config import ServerConfig, read_indexes, read_keys
    from pyrag.server.run import serve

    config = ServerConfig(
        indexes=read_indexes(named),
        keys=read_keys(api_key_file, os.environ),
        max_running=settings.concurrency,
        **limits,
    )
    settings = replace(settings, index=None, retriever=None) if config.indexes else settings
    asyncio.run(serve(settings, config, lambda url: print(f"pyrag: serving at {url} (Ctrl-C ends)", flush=True)))

"""`pyrag serve`, `mcp`, `serve-retriever` and `serve-model`: servers, with their options read and checked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag.cli.output import print_json, tell
from pyrag.errors import UsageError, install_extra
from pyrag.settings import Settings

if TYPE_CHECKING:
    from pyrag.llm.clients.serve_line import Serving
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
    from pyrag.server.run import serve

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
    from pyrag.server.mcp.run import serve_http, serve_stdio

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
    from pyrag.server.run import serve_retriever

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


def serve_model(serving: Serving, *, dry_run: bool, as_json: bool) -> None:
    """Replace this process by vLLM's server, with the flags that pyrag needs, or print its command.

    Args:
        serving: Model, adapters and resources.
        dry_run: Print the command only.
        as_json: Print it as JSON.

    Raises:
        ConfigError: The options contradict each other.
        DataError: The model's folder is incomplete.
        UsageError: vLLM is not installed.
    """
    from pyrag.llm.clients.local_spec import model_folder
    from pyrag.llm.clients.serve_line import KEY_VARIABLE, LOOPBACK, serve_line, shown

    serving = replace(serving, model=str(model_folder(serving.model) or serving.model))
    line = serve_line(serving)
    if dry_run:
        print_json({"line": line, "llm": _specs(serving)}) if as_json else print(shown(line))
        return
    program = shutil.which(line[0], path=str(Path(sys.executable).parent)) or shutil.which(line[0])
    if program is None:
        raise UsageError(
            f"vLLM is not installed: {install_extra('vllm')}, or copy the line of --dry-run to where it is"
        )
    key = _key(os.environ)
    if key is None and serving.host not in (LOOPBACK, "localhost", "::1"):
        tell(f"who can reach {serving.host} can use this model: set PYRAG_API_KEY to a key that it asks for")
    tell(shown(line))
    tell(f"use it with --llm {' or --llm '.join(_specs(serving))}")
    environment = {"VLLM_NO_USAGE_STATS": "1", **os.environ, **({KEY_VARIABLE: key} if key else {})}
    # In place of this process, so that signals and exit codes are vLLM's own.
    os.execve(program, line, environment)  # noqa: S606


def _key(environ: Mapping[str, str]) -> str | None:
    """Return vLLM's own key variable, else pyrag's. OpenAI's key belongs to another server."""
    from pyrag.llm.clients.openai import key_from_environment
    from pyrag.llm.clients.serve_line import KEY_VARIABLE

    given = environ.get(KEY_VARIABLE, "").strip()
    return given or key_from_environment({name: text for name, text in environ.items() if name != "OPENAI_API_KEY"})


def _specs(serving: Serving) -> list[str]:
    host = f"[{serving.host}]" if ":" in serving.host else serving.host
    names = [serving.served_name or serving.model, *(adapter.name for adapter in serving.adapters)]
    return [f"openai:{name}@http://{host}:{serving.port}/v1" for name in names]

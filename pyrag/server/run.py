"""The process of `pyrag serve`: uvicorn with the application, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyrag.errors import PyRAGError, UsageError
from pyrag.server.config import ServerConfig
from pyrag.settings import Settings

if TYPE_CHECKING:
    from pyrag.server.service import QuestionService


def _ignore(_: str) -> None:
    pass


async def serve(
    settings: Settings,
    config: ServerConfig,
    started: Callable[[str], None] = _ignore,
    application: Callable[[QuestionService], Any] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; requests that have begun get `config.shutdown_timeout` seconds to end.

    Args:
        settings: of all questions.
        config: address, indexes, limits and keys.
        started: called with the URL once the port is bound and the indexes answer.
        application: makes the ASGI application, whose lifespan closes the service; None stands for that of
            `pyrag serve`.

    Raises:
        UsageError: fastapi or uvicorn is not installed.
        PyRAGError: an index or a model cannot be used, or the port is taken.
    """
    try:
        import uvicorn

        from pyrag.server.service import QuestionService

        if application is None:
            from pyrag.server.app import create_app

            application = create_app
    except ImportError as error:
        raise UsageError(
            f"pyrag serve needs {error.name}, which is not installed: run pip install 'pyrag-runtime[serve]'"
        ) from error
    listener = _listener(config)
    service = QuestionService(settings, config)
    try:
        await service.start()  # before uvicorn runs, so that a failure is one sentence
    except PyRAGError:
        listener.close()
        await service.aclose()
        raise
    server = uvicorn.Server(
        uvicorn.Config(
            application(service),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=config.shutdown_timeout,
        )
    )
    vars(server)["capture_signals"] = contextlib.nullcontext  # uvicorn's own raises signals again at the end
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    host, port = listener.getsockname()[:2]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():  # noqa: ASYNC110 (uvicorn has no event for it)
        await asyncio.sleep(0.01)
    if server.started:
        started(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    await serving


def _listener(config: ServerConfig) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        return socket.create_server((config.host, config.port), family=family, backlog=1024)
    except OSError as error:
        raise PyRAGError(
            f"cannot listen on {config.host}:{config.port} ({error.strerror or error}): choose another --port or --host"
        ) from error

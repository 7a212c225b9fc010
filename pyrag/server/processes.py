"""Processes of `pyrag serve` and `pyrag serve-retriever`: uvicorn with an application, until a signal arrives."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag._io.excerpts import mark_excerpts
from pyrag._io.processes import settle_collector
from pyrag.errors import PyRAGError, UsageError, install_extra
from pyrag.retrieval.protocol import Retriever
from pyrag.server.config import DEFAULT_INDEX, ServerConfig
from pyrag.settings import Settings

if TYPE_CHECKING:
    from pyrag.server.search import SearchService
    from pyrag.server.service import QuestionService

_KEEP_ALIVE = 75  # seconds that a connection may stay idle between two requests
_FLUSH = 2  # seconds that the last replies have to be sent


def _ignore(_: str) -> None:
    pass


async def serve(
    settings: Settings,
    config: ServerConfig,
    started: Callable[[str], None] = _ignore,
    application: Callable[[QuestionService], Any] | None = None,
) -> None:
    """Serve questions until SIGINT or SIGTERM; running work then has `config.shutdown_timeout` seconds to finish.

    Args:
        settings: Settings of all questions.
        config: Address, indexes, limits and keys.
        started: Called with the URL after the port is bound and the indexes answer.
        application: Function that makes the ASGI application, whose lifespan closes the service; None for the
            application of `pyrag serve`.

    Raises:
        UsageError: fastapi or uvicorn is not installed.
        PyRAGError: An index or a model cannot be used, or the port is in use.
    """
    with _extra("pyrag serve"):
        from pyrag.server.service import QuestionService

        if application is None:
            from pyrag.server.app import create_app

            application = create_app
    listener = _listener(config)
    with contextlib.closing(listener):
        service = QuestionService(settings, config)
        await _run(service, application(service), listener, started)


async def serve_retriever(
    opener: Callable[[], Retriever],
    folder: Path | None,
    config: ServerConfig,
    started: Callable[[str, str], None] = lambda _url, _name: None,
) -> None:
    """Serve a retriever until SIGINT or SIGTERM. Searches that have begun are answered.

    Args:
        opener: Function that opens the retriever. It is called again for each new generation.
        folder: Index folder to watch; None for a retriever that does not change.
        config: Address and limits.
        started: Called with the URL and the retriever's name.

    Raises:
        UsageError: fastapi or uvicorn is not installed.
        PyRAGError: The index or a required model is missing, or the port is in use.
    """
    with _extra("pyrag serve-retriever"):
        from pyrag.server.app import create_search_app
        from pyrag.server.search import SearchService, following
    own_name = ""

    def named() -> Retriever:
        nonlocal own_name
        retriever = opener()
        own_name = retriever.name
        return retriever

    retriever = following(named, folder, DEFAULT_INDEX)
    listener = _listener(config)
    with contextlib.closing(listener):
        service = SearchService(config, {DEFAULT_INDEX: retriever})
        await _run(service, create_search_app(service), listener, lambda url: started(url, own_name))


@contextlib.contextmanager
def _extra(command: str) -> Any:
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{command} needs {error.name}, which is not installed: {install_extra('serve')}") from error


async def _run(service: SearchService, app: Any, listener: socket.socket, started: Callable[[str], None]) -> None:
    """Run an application until a signal arrives. Drain the service while the port is open, then close everything."""
    mark_excerpts()
    try:
        await service.start()  # before uvicorn runs, so that a failure is reported in one sentence
    except PyRAGError:
        await service.aclose()
        raise
    settle_collector()
    server = server_of(service, app)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    host, port = listener.getsockname()[:2]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    while not server.started and not serving.done():  # noqa: ASYNC110 (uvicorn has no event for it)
        await asyncio.sleep(0.01)
    if server.started:
        started(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await service.drain()
    server.should_exit = True
    await serving


def server_of(service: SearchService, app: Any, **options: Any) -> Any:
    """Return a uvicorn server for an application, which leaves signals to its caller.

    Args:
        service: Service behind the application.
        app: The ASGI application.
        options: Additional options of uvicorn.
    """
    import uvicorn

    from pyrag.server.connections import OpenConnections, PatientConnection, SignalFreeServer
    from pyrag.server.guard import MAX_HEAD

    config = service.config
    return SignalFreeServer(
        uvicorn.Config(
            app,
            http=PatientConnection.counted(OpenConnections(config, service.metrics.refused)),
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=3 * _FLUSH,  # a reply that takes longer is a defect, and uvicorn logs it
            **options,
        ),
        _FLUSH,
    )


def _listener(config: ServerConfig) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        return socket.create_server((config.host, config.port), family=family, backlog=1024)
    except OSError as error:
        raise PyRAGError(
            f"cannot listen on {config.host}:{config.port} ({error.strerror or error}): choose another --port or --host"
        ) from error

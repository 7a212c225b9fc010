"""The processes of `pyrag serve` and `pyrag serve-retriever`: uvicorn with an application, until a signal ends it."""

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

_KEEP_ALIVE = 75  # seconds that a connection may rest between two requests
_FLUSH = 2  # seconds that the last replies get to leave


def _ignore(_: str) -> None:
    pass


async def serve(
    settings: Settings,
    config: ServerConfig,
    started: Callable[[str], None] = _ignore,
    application: Callable[[QuestionService], Any] | None = None,
) -> None:
    """Serve questions until SIGINT or SIGTERM; work that has begun gets `config.shutdown_timeout` seconds to end.

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
    """Serve a retriever until SIGINT or SIGTERM; searches that have begun are answered.

    Args:
        opener: opens the retriever; called again for each new generation.
        folder: index folder to watch; None for a retriever that does not change.
        config: address and limits.
        started: called with the URL and the retriever's name.

    Raises:
        UsageError: fastapi or uvicorn is not installed.
        PyRAGError: there is no index, a required model is missing, or the port is taken.
    """
    with _extra("pyrag serve-retriever"):
        from pyrag.server.app import create_search_app
        from pyrag.server.search import SearchService, following
    name = ""

    def named() -> Retriever:
        nonlocal name
        retriever = opener()
        name = retriever.name
        return retriever

    retriever = following(named, folder, DEFAULT_INDEX)
    listener = _listener(config)
    with contextlib.closing(listener):
        service = SearchService(config, {DEFAULT_INDEX: retriever})
        await _run(service, create_search_app(service), listener, lambda url: started(url, name))


@contextlib.contextmanager
def _extra(command: str) -> Any:
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{command} needs {error.name}, which is not installed: {install_extra('serve')}") from error


async def _run(service: SearchService, app: Any, listener: socket.socket, started: Callable[[str], None]) -> None:
    """Run an application until a signal: the service is drained while the port stays open, then all is closed."""
    mark_excerpts()
    try:
        await service.start()  # before uvicorn runs, so that a failure is one sentence
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
    """Return the uvicorn server of an application, which leaves signals to its caller.

    Args:
        service: of the application.
        app: the application.
        options: further options of uvicorn.
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
            timeout_graceful_shutdown=3 * _FLUSH,  # a reply without an end then has a defect, which is logged
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

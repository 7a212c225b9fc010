"""MCP over streamable HTTP, as its own application or as a route of `pyrag serve`, with the same checks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pyrag.server.bodies import read_value
from pyrag.server.errors import ApiError
from pyrag.server.guard import App, Guard, Receive, Scope, Send, refuse, replayed
from pyrag.server.service import QuestionService

if TYPE_CHECKING:
    from starlette.applications import Starlette

PATH = "/mcp"


def create_mcp_app(service: QuestionService) -> Starlette:
    """Return an application that serves only MCP, at `/mcp`. Its lifespan starts and closes the service."""
    from starlette.applications import Starlette

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            await service.start()
            async with mounted(app, service):
                yield
        finally:
            await service.aclose()

    app = Starlette(lifespan=lifespan)
    app.add_middleware(Guard, service=service)
    return app


@asynccontextmanager
async def mounted(app: Starlette, service: QuestionService) -> AsyncIterator[None]:
    """Serve MCP at an application's `/mcp` inside the block. Without the package `mcp`, do nothing.

    Args:
        app: The application, behind a `Guard`, which checks hosts, origins, keys and sizes.
        service: Service that answers the questions.
    """
    try:
        manager = _session_manager(service)
    except ImportError:
        yield
        return
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
    from starlette.routing import Route

    app.router.routes.append(Route(PATH, endpoint=CheckedBodies(StreamableHTTPASGIApp(manager), service)))
    async with manager.run():
        yield


class CheckedBodies:
    """ASGI middleware that checks bodies before the package `mcp` decodes and validates them."""

    def __init__(self, app: App, service: QuestionService) -> None:
        self._app, self._metrics = app, service.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive()).get("body", b"")  # `Guard` has read the whole body
        try:
            if body:
                await read_value(body)
        except ApiError as error:
            self._metrics.refused(error.code)
            await refuse(error, scope["path"], replayed(b"", receive), send)
            return
        await self._app(scope, replayed(body, receive), send)


def _session_manager(service: QuestionService) -> Any:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from pyrag.server.mcp.server import ProtocolServer
    from pyrag.server.mcp.tools import Tools

    tools = Tools(service)

    async def opened() -> Tools:
        return tools

    server = ProtocolServer(service.config, opened, next(iter(service.indexes.values())).settings).build()
    return StreamableHTTPSessionManager(server, max_request_body_size=service.config.max_body)

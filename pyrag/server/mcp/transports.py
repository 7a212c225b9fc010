"""Process of `pyrag mcp`: the protocol over stdin and stdout, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyrag._io.excerpts import mark_excerpts
from pyrag.errors import UsageError, install_extra
from pyrag.server.config import ServerConfig
from pyrag.settings import Settings

if TYPE_CHECKING:
    from pyrag.server.mcp.tools import Tools

PATIENCE = 1.0  # seconds to wait for a client's first message before the service is opened
MAX_LINE = 8 << 20  # bytes per message
EXTRA = install_extra("mcp")


async def serve_stdio(settings: Settings, config: ServerConfig) -> None:
    """Serve MCP on stdin and stdout until stdin ends or a signal arrives. Other output goes to stderr.

    Args:
        settings: Settings of all questions.
        config: Indexes and limits.

    Raises:
        UsageError: The package `mcp` is not installed.
        PyRAGError: An index or a model cannot be used.
    """
    mark_excerpts()
    server_of = _protocol()
    greeted = asyncio.Event()
    opening = asyncio.create_task(_open(settings, config, greeted))
    server = server_of(config, lambda: asyncio.shield(opening), settings).build()
    speaking = asyncio.create_task(_speak(server, greeted))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, speaking.cancel)
    try:
        await asyncio.wait({speaking, opening}, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            opening.result()
        await asyncio.wait({speaking})
        if not speaking.cancelled():
            speaking.result()
    finally:
        for task in (speaking, opening):
            task.cancel()
        _, tools = await asyncio.gather(speaking, opening, return_exceptions=True)
        if not isinstance(tools, BaseException):
            await tools.service.aclose()


async def serve_http(settings: Settings, config: ServerConfig, started: Callable[[str], None]) -> None:
    """Serve `/mcp` until SIGINT or SIGTERM.

    Args:
        settings: Settings of all questions.
        config: Address, indexes, limits and keys.
        started: Called with the URL after the port is bound and the indexes answer.

    Raises:
        UsageError: The package `mcp` is not installed.
        PyRAGError: An index or a model cannot be used, or the port is in use.
    """
    _protocol()
    from pyrag.server.mcp.http import PATH, create_mcp_app
    from pyrag.server.processes import serve

    await serve(settings, config, lambda url: started(url + PATH), create_mcp_app)


def _protocol() -> Any:
    try:
        from pyrag.server.mcp.server import ProtocolServer
    except ImportError as error:
        raise UsageError(f"pyrag mcp needs the package mcp, version 2 ({error.name} is missing): {EXTRA}") from error
    return ProtocolServer


async def _open(settings: Settings, config: ServerConfig, greeted: asyncio.Event) -> Tools:
    """Open the service after the first reply to the client, because the imports alone take half a second."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(greeted.wait(), PATIENCE)

    def opened() -> Tools:
        from pyrag.server.mcp.tools import Tools
        from pyrag.server.service import QuestionService

        return Tools(QuestionService(settings, config))

    tools = await asyncio.to_thread(opened)
    await tools.service.start()
    return tools


async def _speak(server: Any, greeted: asyncio.Event) -> None:
    from mcp.server.stdio import stdio_server

    with _own_stdin() as descriptor:
        lines: Any = _announced(await _lines(descriptor), greeted)  # the package only iterates over the file
        async with stdio_server(stdin=lines) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


@contextlib.contextmanager
def _own_stdin() -> Iterator[int]:
    """Yield a descriptor of stdin that no other part of this process and no child process can read from."""
    private = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    try:
        yield private
    finally:
        os.dup2(private, 0)
        os.close(private)


async def _lines(descriptor: int) -> Any:
    """Return the lines of stdin as an asynchronous iterator.

    The event loop reads from a pipe, so that a signal or a failure can end the process; a thread that waits for a line
    cannot be interrupted. Files and terminals are read in a thread.
    """
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        import anyio

        return anyio.wrap_file(os.fdopen(descriptor, encoding="utf-8", errors="replace", closefd=False))
    reader = asyncio.StreamReader(limit=MAX_LINE)
    pipe = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return _decoded(reader)


async def _announced(lines: AsyncIterator[str], greeted: asyncio.Event) -> AsyncIterator[str]:
    """Yield lines, and set the event at the second line, which a client sends after the first reply."""
    number = 0
    async for line in lines:
        number += 1
        if number > 1:
            greeted.set()
        yield line


async def _decoded(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := await _next_line(reader):
        yield line.decode("utf-8", "replace")


async def _next_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError:  # longer than the limit; the rest of the line arrives as further invalid messages
        logging.getLogger(__name__).warning("a message has more than %s bytes and is left out", f"{MAX_LINE:,}")
        return b"\n"

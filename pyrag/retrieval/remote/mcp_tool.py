"""Retriever that uses the search tool of an MCP server. It needs the package `mcp`, version 2.

Each event loop keeps a connection with a process; after a crash, the next search starts a new process. A command runs
with the user's rights, so it must come from the user, never from a program or a passage.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import logging
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyrag._io.excerpts import excerpt, without_keys
from pyrag._io.threads import PerLoop
from pyrag.errors import (
    ConfigError,
    MalformedReplyError,
    PermanentServiceError,
    PyRAGError,
    RetryableServiceError,
    ServiceError,
    install_extra,
)
from pyrag.retrieval.checked import Passages, checked
from pyrag.retrieval.remote.hits import fields_of_hit, hits_in, ranked
from pyrag.retrieval.remote.mcp_spec import TOKEN_VARIABLE, McpTarget, SearchTool, choose_tool, read_spec

if TYPE_CHECKING:
    from mcp import Client

START_SECONDS = 60.0  # limit for a server to start and list its tools
MAX_PAGES = 10  # of tools
MAX_SAID = 300  # characters of a server's own messages
_ATTEMPTS = 2
_SILENT = logging.NullHandler()


class McpRetriever:
    """Retriever that uses the search tool of an MCP server.

    Args:
        spec: `mcp+stdio:COMMAND` or `mcp+http:URL`; see `pyrag.retrieval.remote.mcp_spec.read_spec`.
        timeout: Seconds for one search.

    Raises:
        ConfigError: The spec is malformed, or the package `mcp` is not installed.
    """

    def __init__(self, spec: str, *, timeout: float = 10.0) -> None:
        self._target = read_spec(spec)
        if importlib.util.find_spec("mcp_types") is None:
            needs = f"needs the package mcp, version 2: {install_extra('mcp')}"
            raise ConfigError(f"the retriever {self._target.name} {needs}")
        self._timeout = timeout
        self._connections: PerLoop[_Connection] = PerLoop(self._connection)

    @property
    def name(self) -> str:
        return self._target.name

    async def retrieve(self, query: str, topk: int) -> Passages:
        """Call the tool. A blank query is not sent. A server that has ended is restarted once.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.

        Raises:
            ServiceError: The server cannot be started or reached, its tool fails, or its reply holds no passages.
        """
        if not query.strip() or topk < 1:
            return Passages()
        connection = self._connections.get()
        for remaining in reversed(range(_ATTEMPTS)):
            try:
                return await connection.search(query, topk)
            except _ConnectionLostError as lost:
                await connection.drop(lost.owner)
                if not remaining:
                    message = f"{self.name} ended while it searched{connection.last_words}: look into its log"
                    raise RetryableServiceError(message, service=self.name) from lost
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """End the server of this event loop; servers of other loops end with their loops."""
        await self._connections.get().drop()

    def _connection(self) -> _Connection:
        return _Connection(self._target, self._timeout)


class _ConnectionLostError(Exception):
    """Error for a connection whose server ended. `owner` is the connection's task."""

    def __init__(self, owner: asyncio.Task[None]) -> None:
        super().__init__()
        self.owner = owner


class _Connection:
    """Client with its own task, since the task that opened a client must close it."""

    def __init__(self, target: McpTarget, timeout: float) -> None:
        self._target, self._timeout = target, timeout
        self._lock = asyncio.Lock()
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[tuple[Client, SearchTool]] | None = None
        self.last_words = ""  # last words of a command that has ended, in brackets

    async def search(self, query: str, topk: int) -> Passages:
        from mcp import MCPError
        from mcp_types import (
            CONNECTION_CLOSED,
            REQUEST_TIMEOUT,
            CallToolRequest,
            CallToolRequestParams,
            CallToolResult,
        )

        name = self._target.name
        owner, client, tool = await self._open()
        arguments = tool.arguments(query.encode("utf-8", "replace").decode(), topk)
        request = CallToolRequest(params=CallToolRequestParams(name=tool.name, arguments=arguments))
        try:  # not `call_tool`, which refuses texts of a tool that announces a schema
            reply = await client.session.send_request(request, CallToolResult, self._timeout)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise _ConnectionLostError(owner) from error
            if error.code == REQUEST_TIMEOUT:
                message = f"{name} did not reply within {self._timeout:g} s: give it more with retrieve_timeout"
                raise RetryableServiceError(message, service=name, timed_out=True) from error
            raise PermanentServiceError(f"{name} refused the search ({_short(error)})", service=name) from error
        except (OSError, ValueError, RuntimeError) as error:  # closed streams, and results against the protocol
            if owner.done():
                raise _ConnectionLostError(owner) from error
            raise MalformedReplyError(f"{name} sent no result of a tool ({_short(error)})", service=name) from error
        if reply.is_error:
            text = _short(" ".join(_texts(reply))) or "without a word"
            raise ServiceError(f"the tool {tool.name} of {name} failed ({text}): look into that server", service=name)
        return _passages(reply, topk, name)

    async def drop(self, lost: asyncio.Task[None] | None = None) -> None:
        """Close the client and end its process.

        Args:
            lost: Owner of the lost client; a client that another search has started since is kept. None to close any
                client.
        """
        owner = self._owner
        if owner is None or (lost is not None and lost is not owner):
            return
        self._owner = None
        owner.cancel()
        await asyncio.wait([owner])

    async def _open(self) -> tuple[asyncio.Task[None], Client, SearchTool]:
        async with self._lock:
            if self._owner is None or self._owner.done():
                self.last_words = ""
                self._ready = asyncio.get_running_loop().create_future()
                self._owner = asyncio.create_task(self._own(self._ready))
            owner, ready = self._owner, self._ready
            assert ready is not None
            try:
                return owner, *await asyncio.wait_for(asyncio.shield(ready), START_SECONDS)
            except TimeoutError:
                name = self._target.name
                message = f"{name} did not start within {START_SECONDS:g} s: try it by hand"
                raise RetryableServiceError(message, service=name, timed_out=True) from None

    async def _own(self, ready: asyncio.Future[tuple[Client, SearchTool]]) -> None:
        try:
            async with self._client() as client:
                ready.set_result((client, choose_tool(await _schemas(client), self._target)))
                await asyncio.Event().wait()  # until it is cancelled
        except Exception as error:
            if not ready.done():
                ready.set_exception(self._not_started(_leaf(error)))
                ready.exception()  # mark it as retrieved, since nobody may wait for it any more

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        # A line of a command that is not a message is logged with a traceback, which reaches stderr without a handler.
        logging.getLogger("mcp").addHandler(_SILENT)
        if not self._target.command:
            async with self._client_over_http() as client:
                yield client
            return
        program, *arguments = self._target.command
        variables = dict(self._target.environment or {})
        parameters = StdioServerParameters(command=program, args=arguments, env=variables, cwd=Path.cwd())
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            try:
                async with Client(stdio_client(parameters, errlog=log)) as client:
                    yield client
            finally:
                self.last_words = _last_words(log)

    @contextlib.asynccontextmanager
    async def _client_over_http(self) -> AsyncIterator[Client]:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        token = os.environ.get(TOKEN_VARIABLE, "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx2.Timeout(self._timeout, read=None)  # a stream may be silent; the call has its own limit
        async with (
            httpx2.AsyncClient(headers=headers, timeout=limits) as http,
            Client(streamable_http_client(self._target.url, http_client=http)) as client,
        ):
            yield client

    def _not_started(self, error: BaseException) -> PyRAGError:
        name = self._target.name
        if isinstance(error, PyRAGError):
            return error
        if isinstance(error, FileNotFoundError | PermissionError):
            what = f"{name} cannot be started ({error.strerror}): check the command"
            return PermanentServiceError(what, service=name)
        reason = self.last_words or f" ({_short(error) or type(error).__name__})"
        cure = "try its command by hand" if self._target.command else "start it, or check its URL"
        return RetryableServiceError(f"{name} gave no connection{reason}: {cure}", service=name)


def _last_words(log: IO[str]) -> str:
    """Return the end of a command's output on stderr, in brackets."""
    log.seek(0)
    text = excerpt(without_keys(log.read()[-16 * MAX_SAID :])[-MAX_SAID:], MAX_SAID)
    return f" (it said: {text})" if text else ""


async def _schemas(client: Client) -> dict[str, dict[str, Any]]:
    """Return the input schemas of the server's tools, by name."""
    schemas: dict[str, dict[str, Any]] = {}
    cursor = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        schemas |= {tool.name: tool.input_schema for tool in page.tools}
        cursor = page.next_cursor
        if cursor is None:
            break
    return schemas


def _passages(reply: Any, topk: int, name: str) -> Passages:
    """Return the passages in a tool result's structured content, or else in its texts."""
    structured = hits_in(reply.structured_content) if reply.structured_content is not None else []
    passages = _checked(structured, topk, name)
    if passages:
        return passages
    texts = [hit for block in reply.content for hit in _hits_of_block(block)]
    passages = _checked(texts, topk, name)
    if (structured or texts) and not passages:
        raise MalformedReplyError(f"{name} replied with no text that could be a passage", service=name)
    return passages


def _checked(hits: list[Any], topk: int, name: str) -> Passages:
    rows = ranked([fields_of_hit(hit) for hit in hits[:topk]])
    return checked(
        [row | {"source": row.get("source") or name} if isinstance(row, dict) else row for row in rows], topk
    )


def _hits_of_block(block: Any) -> list[Any]:
    """Return the hits in the JSON of a content block, or else its text as a hit."""
    text = getattr(block, "text", None)
    if isinstance(text, str):
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(value := json.loads(text), dict | list):
                return hits_in(value)
        return [text] if text.strip() else []
    resource = getattr(block, "resource", None)
    if isinstance(inner := getattr(resource, "text", None), str):
        return [{"text": inner, "source": str(getattr(resource, "uri", ""))}]
    return []


def _texts(reply: Any) -> list[str]:
    return [block.text for block in reply.content if isinstance(getattr(block, "text", None), str)]


def _leaf(error: BaseException) -> BaseException:
    """Return the first error in nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _short(text: object) -> str:
    return excerpt(text, MAX_SAID)

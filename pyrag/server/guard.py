"""Checks of each request before its application sees it: host, origin, API key, and size and arrival of the body.

The connection of a refused request is closed, so that a client without a key cannot keep it open. If the headers name a
span of the caller, the request's span becomes its child.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from pyrag._io.excerpts import mark_excerpts
from pyrag.runtime.telemetry import with_caller
from pyrag.server.config import NOBODY, Access, is_loopback
from pyrag.server.errors import ApiError
from pyrag.server.search import SearchService
from pyrag.trace.html import page_paths

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_HEAD = 1 << 16  # bytes of a request's line and headers
_LINGER = 2.0  # seconds in which a client that is still sending may read its refusal
ACCESS = "pyrag.access"  # key of the caller's `Access` in an ASGI scope
_METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH")
_OPEN = frozenset(("/healthz", "/readyz", *page_paths()))  # browsers load pages without a key


class Guard:
    """ASGI middleware that checks requests and counts their replies."""

    def __init__(self, app: App, service: SearchService) -> None:
        self._app, self._config, self._metrics, self._otel = app, service.config, service.metrics, service.otel

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        began, answered = time.monotonic(), False

        async def counted(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                route = getattr(scope.get("route"), "path", "other")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._metrics.requested(route, method, message["status"], time.monotonic() - began)
                message["headers"] = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            await send(message)

        try:
            mark_excerpts()
            _check_head(scope)
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            self._check_origin(headers)
            scope[ACCESS] = self._access(scope["path"], headers)
            body = await self._body(receive, headers)
        except ApiError as error:
            self._metrics.refused(error.code)
            await refuse(error, scope["path"], receive, counted)
            return
        try:
            with with_caller(self._otel, headers):
                await self._app(scope, replayed(body, receive), counted)
        except Exception:
            if not answered:
                self._metrics.requested("failed", scope["method"], 500, time.monotonic() - began)
            raise

    def _check_origin(self, headers: dict[str, str]) -> None:
        """Refuse pages of other sites, by their origin, or by a host name that they made point to this machine."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise ApiError(403, "other_origin", "requests of pages from other sites are refused")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if self._config.local_only and not is_loopback(name.strip("[]")):
            raise ApiError(403, "other_host", "this server answers to localhost alone: ask it by that name")

    def _access(self, path: str, headers: dict[str, str]) -> Access:
        if not self._config.keys:
            return Access()
        scheme, _, token = headers.get("authorization", "").partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        access = self._config.keys.access(key)
        if access is None and path in _OPEN:
            return NOBODY
        if access is None:
            raise ApiError(401, "invalid_api_key", "the API key is missing or unknown: send Authorization: Bearer KEY")
        return access

    async def _body(self, receive: Receive, headers: dict[str, str]) -> bytes:
        if headers.get("content-encoding", "identity") != "identity":
            raise ApiError(415, "unsupported_encoding", "the request is packed: send plain JSON")
        limit, length = self._config.max_body, headers.get("content-length", "0")
        too_large = ApiError(413, "body_too_large", f"the request is larger than {limit:,} bytes: send less at once")
        if length.isdecimal() and int(length) > limit:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._config.body_timeout):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ApiError(400, "client_gone", "the client went away before its request was complete")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > limit:
                        raise too_large
        except TimeoutError:
            raise ApiError(408, "body_too_slow", "the request did not arrive in time: send it whole") from None
        return bytes(body)


def _check_head(scope: Scope) -> None:
    sizes = (len(name) + len(value) for name, value in scope["headers"])
    if sum(sizes) + len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEAD:
        raise ApiError(
            431, "head_too_large", f"the address and headers have more than {MAX_HEAD:,} bytes: shorten them"
        )


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a whole body first, and then the messages of the connection.

    Args:
        body: Complete body of the request.
        receive: Function that returns the connection's next message.
    """
    is_sent = False

    async def again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(error: ApiError, path: str, receive: Receive, send: Send) -> None:
    """Refuse a request and close its connection. The rest of its body is read for a moment and discarded.

    Args:
        error: The refusal.
        path: Path of the request.
        receive: Function that returns the connection's next message.
        send: Function that sends a message over the connection.
    """
    body = msgspec.json.encode(error.body_at(path))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    with contextlib.suppress(TimeoutError):  # if closed at once, a client that is still sending could miss the refusal
        async with asyncio.timeout(_LINGER):
            while (await receive()).get("more_body", False):
                pass
    await send({"type": "http.response.body", "body": b""})

"""JSON over HTTP to a service: connection reuse, time limits, retries, and a clear error for each failure.

`HttpService` is the base of the retriever client and the model client. A client describes its service once, calls
`post_json` or `get_json` with a decoder for the reply, and gets a value or a `pyrag.errors.ServiceError`:

    service = HttpService("http://127.0.0.1:8000/v1", name="model server", timeout=60.0, cure="start it or pass --llm")
    reply = await service.post_json("/chat/completions", body, msgspec.json.Decoder(Completion).decode)
    await service.aclose()

* After a transient fault (no connection, no reply in time, a cut-off reply, 408, 429, 5xx), the call is tried again, at
  most `retries` times, after 0.1-0.5 s or the time in `Retry-After`; then it is a `RetryableServiceError`.
* Any other status is a `PermanentServiceError`. A reply that the decoder refuses (it raised `msgspec.DecodeError` or
  `ValueError`) is a `MalformedReplyError`, and is not tried again.
* `timeout` limits an attempt, and `total` the whole call including pauses (default: twice `timeout`), not counting
  time spent waiting for a `gate`. In a stream, `timeout` limits the time to the next event instead.
* `limit` bounds the size of a reply. Only the start of an error's body is read.
* A `gate` decides when an attempt may start and learns how it ended. A busy server (429, 503) behind a gate is tried
  more often before the call fails.
* Messages name the service and its URL without credentials and query, quote excerpts of the server's message
  (`pyrag._io.excerpts`), and end with advice (`cure`); `cures` replaces it for single statuses.
* Cancelling a call closes its connection. A service object may be used from several event loops, each with its own
  connections, which `aclose` or the end of the loop closes.

`post_events` reads its reply in pieces (server-sent events), for at most an hour.

Import this module only where a client is created, since importing aiohttp takes longer than the rest of the start.

`pyrag._io.http.routes` handles proxies and certificates. Cookies are not supported. A redirect is an error that names
its target.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import aiohttp
import msgspec

from pyrag._io.excerpts import excerpt
from pyrag._io.http.address import checked_headers, read_address, secrets_of_headers
from pyrag._io.http.bodies import check_values, chunks_of, events_of, read_body, read_start
from pyrag._io.http.errors import (
    Fault,
    FaultError,
    ReplyFormError,
    ReportedError,
    TransportError,
    connection_fault,
    is_transient,
    seconds_to_wait,
    server_words,
    status_cure,
)
from pyrag._io.http.options import BodyLimit, Transport
from pyrag._io.http.routes import route_to
from pyrag._io.http.sessions import CONNECT_SECONDS, LoopSessions
from pyrag._io.redaction import Redactor, without_secrets
from pyrag.errors import (
    MalformedReplyError,
    PermanentServiceError,
    RetryableServiceError,
    ServiceError,
)

T = TypeVar("T")

_LARGE_BODY = 1 << 20  # above this aiohttp warns about raw bytes and wants a file
_DETAIL = 4_000  # characters of a refusal's body that an error keeps for diagnosis
_NO_CURES: Mapping[int, str] = MappingProxyType({})
_MAX_STREAM_SECONDS = 3600.0
_DEFAULT_LIMIT = BodyLimit()
_DEFAULT_TRANSPORT = Transport()
_BUSY_RETRIES = 6  # further retries of a call behind a gate if the server is busy


class Gate(Protocol):
    """Control over the start of attempts. `pyrag.llm.limiter` has one that adapts to the server."""

    async def enter(self, *, again: bool = False) -> int:
        """Wait for this caller's turn and return a ticket for `leave`. `again` is True for a retry after a fault."""
        ...

    def leave(self, ticket: int, fault: Fault | None = None, retry_after: float | None = None) -> None:
        """Report the end of an attempt.

        Args:
            ticket: Result of `enter`.
            fault: Kind of failure. None after success.
            retry_after: Seconds to wait that the server requested. None if it requested no time.
        """
        ...


class _Clock:
    """Time limit of an attempt. In a stream, it restarts with each line."""

    def __init__(self, seconds: float, idle: float) -> None:
        self.seconds = seconds
        self.timeout = asyncio.timeout(seconds)
        self.streamed = 0.0  # seconds until the last line
        self._idle = idle
        self._started = asyncio.get_running_loop().time()

    def on_line(self) -> None:
        now = asyncio.get_running_loop().time()
        self.streamed = now - self._started
        self.timeout.reschedule(min(now + self._idle, self._started + _MAX_STREAM_SECONDS))


Read = Callable[[aiohttp.ClientResponse, _Clock], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class _Request:
    """Request; `read` returns the value of a successful reply, or raises `ReportedError` if it reports a failure."""

    method: str
    path: str
    body: bytes | None
    read: Read


@dataclass(frozen=True, slots=True)
class _Malformed:
    """Reply that its decoder refused."""

    error: Exception
    content: bytes


class HttpService:
    """Service at a base URL; see the module's docstring for the guarantees of its calls.

    `name` is the service's name in messages ("retriever"). `cure` is the advice if it cannot be reached, and `patience`
    is the setting that raises its time limit. User and password in the URL are sent as basic authentication and appear
    nowhere else: `redactor` removes them from the service's replies.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        timeout: float,
        total: float | None = None,
        retries: int = 2,
        headers: Mapping[str, str] | None = None,
        cure: str = "start it or give another URL",
        patience: str = "",
        cures: Mapping[int, str] = _NO_CURES,
        gate: Gate | None = None,
        limit: BodyLimit = _DEFAULT_LIMIT,
        transport: Transport = _DEFAULT_TRANSPORT,
    ) -> None:
        self.name = name
        self._address = address = read_address(url, name)
        sent = {"Content-Type": "application/json", **address.login, **checked_headers(headers or {}, name)}
        self._timeout = timeout
        self._total = 2 * timeout if total is None else total
        self._retries = retries
        self._cure = cure
        self._cures = cures
        self._patience = patience
        self.gate = gate
        self._limit = limit
        self._route = route_to(address.base, transport)
        self.redactor = Redactor([*secrets_of_headers(sent), *address.secrets, *self._route.secrets])
        self._sessions = LoopSessions(sent, self._route)

    @property
    def url(self) -> str:
        """Base URL without credentials and query."""
        return self._address.base

    async def post_json(self, path: str, body: Any, decode: Callable[[bytes], T]) -> T:
        """Send JSON by POST and decode the reply.

        Args:
            path: Path to append to the base URL.
            body: Value to encode.
            decode: Function that turns the reply's bytes into a value. It raises `ValueError` for a malformed reply,
                and `ReportedError` for a reply of status 200 that reports a failure.

        Raises:
            ServiceError: The call failed; see the module's docstring.
        """
        request = _Request("POST", path, msgspec.json.encode(body), self._whole_reader(decode))
        value: T = self._well_formed(await self._request(request), path)
        return value

    async def get_json(self, path: str, decode: Callable[[bytes], T]) -> T:
        """Send a GET request and decode the reply.

        Args:
            path: Path to append to the base URL.
            decode: Function that turns the reply's bytes into a value. It raises `ValueError` for a malformed reply.

        Raises:
            ServiceError: The call failed; see the module's docstring.
        """
        value: T = self._well_formed(await self._request(_Request("GET", path, None, self._whole_reader(decode))), path)
        return value

    async def post_events(
        self,
        path: str,
        body: Any,
        read: Callable[[AsyncIterator[bytes]], Awaitable[T]],
        decode: Callable[[bytes], T],
    ) -> T:
        """Send JSON by POST and read the reply as server-sent events; a reply in one piece is decoded.

        Args:
            path: Path to append to the base URL.
            body: Value to encode.
            read: Function that makes a value of the events' data, called again in each attempt. It raises
                `ReportedError` if the server reports a failure, and `ConnectionError` if the events end too soon.
            decode: Function that turns a reply in one piece into a value, as in `post_json`.

        Raises:
            ServiceError: The call failed; see the module's docstring.
        """
        read_whole = self._whole_reader(decode)

        async def read_reply(response: aiohttp.ClientResponse, clock: _Clock) -> Any:
            if response.content_type != "text/event-stream":
                return await read_whole(response, clock)
            async with aclosing(chunks_of(response, self._limit)) as chunks:
                return await read(events_of(chunks, clock.on_line))

        try:
            reply = await self._request(_Request("POST", path, msgspec.json.encode(body), read_reply))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise self._malformed(path, error, b"") from error
        value: T = self._well_formed(reply, path)
        return value

    async def aclose(self) -> None:
        await self._sessions.aclose()

    async def _request(self, request: _Request) -> Any:
        deadline = time.monotonic() + self._total
        faults: list[Fault] = []
        while True:
            gate = self.gate if request.method == "POST" else None
            ticket = 0
            if gate:
                queued = time.monotonic()
                ticket = await gate.enter(again=bool(faults))
                deadline += time.monotonic() - queued
            clock = _Clock(min(self._timeout, deadline - time.monotonic()), self._timeout)
            try:
                return await self._gated(gate, ticket, request, clock)
            except FaultError as fault:
                deadline += clock.streamed  # time in which the server was writing does not count
                pause = max(_backoff(len(faults)), fault.retry_after or 0.0)
                faults.append(fault.kind)
                no_time = time.monotonic() + pause >= deadline
                if not fault.retryable or self._exhausted(faults) or no_time:
                    raise self._error(fault, request.path, len(faults)) from self._shown_cause(fault.__cause__)
                await asyncio.sleep(pause)

    def _exhausted(self, faults: list[Fault]) -> bool:
        busy = faults.count("busy") if self.gate else 0
        return len(faults) - busy > self._retries or busy > _BUSY_RETRIES

    async def _gated(self, gate: Gate | None, ticket: int, request: _Request, clock: _Clock) -> Any:
        kind: Fault | None = "other"  # if the call is cancelled
        retry_after = None
        try:
            value = await self._attempt(request, clock)
            kind = None
            return value
        except FaultError as fault:
            kind, retry_after = fault.kind, fault.retry_after
            raise
        finally:
            if gate:
                gate.leave(ticket, kind, retry_after)

    async def _attempt(self, request: _Request, clock: _Clock) -> Any:
        try:
            async with (
                clock.timeout,
                (await self._sessions.here()).request(
                    request.method,
                    self._address.base + request.path + self._address.query,
                    data=_payload(request.body),
                    allow_redirects=False,
                ) as response,
            ):
                if response.status // 100 == 2:
                    return await request.read(response, clock)
                content = await read_start(response)
        except aiohttp.ConnectionTimeoutError as error:
            what = f"could not be reached within {CONNECT_SECONDS:g} s"
            raise FaultError(what, self._cure, True, kind="unreachable") from error
        except TimeoutError as error:
            raise self._timeout_fault(clock) from error
        except (aiohttp.ClientError, OSError) as error:
            raise connection_fault(error, self._cure, self._route.shown_proxy) from error
        except ReportedError as error:
            raise self._status_fault(error.status, {}, error.content) from error
        raise self._status_fault(response.status, response.headers, content)

    def _whole_reader(self, decode: Callable[[bytes], Any]) -> Read:
        """Return a function that reads a reply in one piece; it returns `_Malformed` if `decode` rejects the reply."""

        async def read(response: aiohttp.ClientResponse, _: _Clock) -> Any:
            content = await read_body(response, self._limit)
            try:
                check_values(content)
                return decode(self.redactor.body(content))
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                return _Malformed(error, content)

        return read

    def _timeout_fault(self, clock: _Clock) -> FaultError:
        more_time = f"allow it more time with {self._patience}" if self._patience else "allow it more time"
        cure = f"look whether it is overloaded or stuck, or {more_time}"
        if not clock.streamed:
            return FaultError(f"did not reply within {clock.seconds:.3g} s", cure, True, kind="timeout")
        if clock.streamed >= _MAX_STREAM_SECONDS - self._timeout:
            return FaultError(f"had not ended a reply after {_MAX_STREAM_SECONDS:g} s", cure, kind="timeout")
        what = f"paused for {self._timeout:.3g} s in the middle of a reply"
        return FaultError(what, cure, True, kind="timeout")

    def _status_fault(self, status: int, headers: Mapping[str, str], content: bytes) -> FaultError:
        redact = self.redactor.message
        words = server_words(redact(content.decode("utf-8", "replace")), redact)
        what = f"replied HTTP {status}" + (f" ({words})" if words else "")
        retryable = is_transient(status, content)
        cure = self._cures.get(status) or status_cure(status, headers)
        return FaultError(
            what,
            redact(cure),
            retryable,
            seconds_to_wait(headers) if retryable else None,
            kind="busy" if status in (429, 503) else "other",
            status=status,
            detail=redact(content.decode("utf-8", "replace"))[:_DETAIL],
        )

    def _error(self, fault: FaultError, path: str, attempts: int) -> ServiceError:
        service = f"{self.name} {self._address.base}{path}"
        tries = f" in {attempts} attempts" if attempts > 1 else ""
        message = f"{service} {fault.what}{tries}: {fault.cure}"
        if fault.retryable:
            late = fault.kind == "timeout"
            return RetryableServiceError(message, service=service, retry_after=fault.retry_after, timed_out=late)
        return PermanentServiceError(message, service=service, status=fault.status, detail=fault.detail)

    def _shown_cause(self, error: BaseException | None) -> Exception | None:
        """Return the cause to show in a traceback: the library's error without its URL."""
        if error is None:
            return None
        text = self.redactor.message(without_secrets(str(error)))
        return TransportError(f"{type(error).__name__}: {text}").with_traceback(error.__traceback__)

    def _well_formed(self, reply: Any, path: str) -> Any:
        if isinstance(reply, _Malformed):
            raise self._malformed(path, reply.error, reply.content) from reply.error
        return reply

    def _malformed(self, path: str, error: Exception, content: bytes) -> MalformedReplyError:
        service = f"{self.name} {self._address.base}{path}"
        own = isinstance(error, ReplyFormError)
        reason = str(error) if own else excerpt(self.redactor.message(str(error)), 200)
        start = excerpt(self.redactor.message(content[:_DETAIL].decode("utf-8", "replace")), 80)
        return MalformedReplyError(
            f"{service} sent a reply of the wrong form ({reason}; it starts {start!r}): "
            f"check that the URL is that of a {self.name}",
            service=service,
        )


def _payload(body: bytes | None) -> Any:
    if body is None or len(body) < _LARGE_BODY:
        return body
    import io

    return io.BytesIO(body)


def _backoff(attempt: int) -> float:
    return random.uniform(0.1, 0.25) * min(attempt + 1, 2)  # noqa: S311 (jitter, not a secret)

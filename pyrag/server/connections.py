"""uvicorn's connections and server, with time limits, a maximum number of connections and an orderly shutdown.

uvicorn waits indefinitely for the head of a request and for a client that does not read, and each such connection holds
a file descriptor. Here, both waits have time limits, and the number of connections is limited in total and per address;
idle connections are closed to make room for new ones. At shutdown, endless replies are completed and closed; uvicorn
would cancel them and log an error for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections import defaultdict
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pyrag.server.config import ServerConfig
from pyrag.server.errors import ApiError

_FULL = ApiError(503, "too_many_connections", "too many connections are open: close some, or try again in a moment")
_READ_AT_ONCE = 1 << 14  # bytes parsed before other connections get their turn: asyncio's 256 KB may be 43,000 chunks
_IPV6_NETWORK = 64  # prefix length of one customer's IPv6 network


class OpenConnections:
    """Open connections of a server.

    Args:
        config: Limits and timeouts.
        refused: Called with the error code of each refused connection.
    """

    def __init__(self, config: ServerConfig, refused: Callable[[str], None]) -> None:
        self.config, self._refused = config, refused
        self._all: dict[PatientConnection, None] = {}
        self._by_address: defaultdict[str, dict[PatientConnection, None]] = defaultdict(dict)

    def admit(self, connection: PatientConnection) -> bool:
        """Add a connection, closing an idle one if there are too many. Return False if all are in use."""
        own = self._by_address[connection.address]
        for group, limit in ((own, self.config.max_per_address), (self._all, self.config.max_connections)):
            if limit is not None and len(group) + 1 >= limit and not _make_room(group):
                self._refused(_FULL.code)
                return False
        self._all[connection] = self._by_address[connection.address][connection] = None
        return True

    def remove(self, connection: PatientConnection) -> None:
        self._all.pop(connection, None)
        own = self._by_address[connection.address]
        own.pop(connection, None)
        if not own:
            del self._by_address[connection.address]


def _make_room(group: dict[PatientConnection, None]) -> bool:
    """Close the connection that has been idle longest. Return False if all are in use."""
    waiting = (connection for connection in group if connection.is_waiting)
    longest = min(waiting, key=lambda connection: connection.waits_since, default=None)
    if longest is not None:
        longest.give_up()
    return longest is not None


class PatientConnection(H11Protocol):
    """uvicorn's connection, closed if the head of a request does not arrive in time or the client stops reading.

    The guard limits the time for a body; uvicorn limits the time between two requests.
    """

    def __init__(self, *args: Any, among: OpenConnections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._among, self.address = among, ""
        self._refused = False
        self.waits_since = 0.0
        self._waiting: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    @classmethod
    def counted(cls, connections: OpenConnections) -> Any:
        """Return a factory of connections that are counted together."""
        return partial(cls, among=connections)

    @property
    def is_waiting(self) -> bool:
        """True if no complete request is being handled."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        with contextlib.suppress(AttributeError):  # other event loops have no such attribute
            transport.max_size = _READ_AT_ONCE  # type: ignore[attr-defined]
        self.address = network_of(self.client)
        self.waits_since = self.loop.time()
        if self._among.admit(self):
            self._wait()
        else:
            self._refused = True
            transport.write(_refusal(_FULL))
            transport.close()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._waiting is None and self.conn.trailing_data[0]:
            self._wait()

    def on_response_complete(self) -> None:
        self.waits_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self._among.config.stall_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_stalling()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_stalling()
        self._among.remove(self)
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close an idle connection and stop counting it."""
        self._among.remove(self)
        self.transport.abort() if self.transport.get_write_buffer_size() else self.transport.close()

    def end(self) -> None:
        """Complete the reply in progress and close the connection; cut the reply off if the client does not read."""
        if self.flow.write_paused:
            self.transport.abort()
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            with contextlib.suppress(h11.LocalProtocolError):  # the reply is shorter than its announced length
                self.transport.write(self.conn.send(h11.EndOfMessage()))
        self.transport.close()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self._among.config.header_timeout, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_stalling(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def network_of(client: tuple[str, int] | None) -> str:
    """Return the address used to count a connection: an IPv4 address, or the network of an IPv6 address."""
    try:
        address = ipaddress.ip_address((client or ("",))[0].partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))


def _refusal(error: ApiError) -> bytes:
    """Return a refusal in a form that can be sent before a request has been read."""
    body = msgspec.json.encode(error.body)
    head = f"HTTP/1.1 {error.status} Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n"
    return f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class SignalFreeServer(uvicorn.Server):
    """uvicorn's server without signal handlers; its caller handles signals.

    Args:
        config: Configuration of uvicorn, with `PatientConnection`.
        flush: Seconds that replies in progress have to finish at shutdown.
    """

    def __init__(self, config: Any, flush: float) -> None:
        super().__init__(config)
        self._flush = flush

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # uvicorn's own method raises the signals again at the end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.get_running_loop().call_later(self._flush, self._end_connections)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    def _end_connections(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, PatientConnection):
                connection.end()

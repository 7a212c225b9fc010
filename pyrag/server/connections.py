"""uvicorn's connections and server with ends of their own.

A connection waits only so long for the head of a request, and for a client that does not read: uvicorn waits for ever,
and each costs a descriptor. Connections are bounded in number, over all and by address; those that wait for a request
make room for new ones. A server that ends closes the replies that would not end by themselves: uvicorn cancels them,
and logs each as an error.
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
_READ_AT_ONCE = 1 << 14  # bytes that are parsed before others have their turn: asyncio's 256 KB may be 43,000 chunks
_IPV6_NETWORK = 64  # bits that name one customer's network


class OpenConnections:
    """The open connections of a server.

    Args:
        config: limits and patience.
        refused: called with the code of a connection's refusal.
    """

    def __init__(self, config: ServerConfig, refused: Callable[[str], None]) -> None:
        self.config, self._refused = config, refused
        self._all: dict[PatientConnection, None] = {}
        self._by_address: defaultdict[str, dict[PatientConnection, None]] = defaultdict(dict)

    def admit(self, connection: PatientConnection) -> bool:
        """Add a connection, and end one that waits for a request where there are too many. False: all are in use."""
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
    """End the connection that has waited longest for a request; False if all are in use."""
    longest = min((one for one in group if one.is_waiting), key=lambda one: one.waits_since, default=None)
    if longest is not None:
        longest.give_up()
    return longest is not None


class PatientConnection(H11Protocol):
    """uvicorn's connection, closed where the head of a request does not arrive in time, or the client does not read.

    The body has the guard's limit, and a connection at rest between two requests uvicorn's own.
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
        """True where no whole request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        with contextlib.suppress(AttributeError):  # of another event loop
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
        """End a connection that waits, and stop counting it."""
        self._among.remove(self)
        self.transport.abort() if self.transport.get_write_buffer_size() else self.transport.close()

    def end(self) -> None:
        """End the connection with the reply under way: complete where it stands, cut if its client does not read."""
        if self.flow.write_paused:
            self.transport.abort()
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            with contextlib.suppress(h11.LocalProtocolError):  # a reply whose announced length is not reached
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
    """Return the address that a connection counts for: an IPv4 address, or the network of an IPv6 address."""
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
    """Return a refusal as it is sent before any request was read."""
    body = msgspec.json.encode(error.body)
    head = f"HTTP/1.1 {error.status} Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n"
    return f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class SignalFreeServer(uvicorn.Server):
    """uvicorn's server, which leaves signals to its caller.

    Args:
        config: of uvicorn, with `PatientConnection`.
        flush: seconds that replies under way get to end at shutdown.
    """

    def __init__(self, config: Any, flush: float) -> None:
        super().__init__(config)
        self._flush = flush

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # uvicorn's own raises signals again at the end

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

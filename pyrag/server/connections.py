"""uvicorn's connections and server with ends of their own.

A connection waits for the head of a request only so long: uvicorn waits for ever, and each costs a descriptor. A server
that ends closes the replies that would not end by themselves: uvicorn cancels them, and logs each as an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientConnection(H11Protocol):
    """uvicorn's connection, closed where the head of a request does not arrive in time.

    The body has the guard's limit, and a connection at rest between two requests uvicorn's own.
    """

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._waiting: asyncio.TimerHandle | None = None

    @classmethod
    def within(cls, seconds: float) -> Any:
        """Return a factory of connections whose requests have so many seconds for their head."""
        return partial(cls, seconds=seconds)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._waiting is None and self.conn.trailing_data[0]:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

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
        self._waiting = self.loop.call_later(self._seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


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

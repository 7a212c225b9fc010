"""Connections that wait for the head of a request only so long: uvicorn waits for ever, and each costs a descriptor."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import h11
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

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self._seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

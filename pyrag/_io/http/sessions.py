"""Connections to a service: one session per event loop that uses it, closed with that loop at the latest.

An asynchronous generator of the loop holds a session open: `asyncio.run` shuts generators down before it closes the
loop, so no connection stays open even if the caller closes nothing. The connections of a loop that is
closed without `shutdown_asyncgens` stay open until the process ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple

import aiohttp

from pyrag._io.http.routes import ServiceRoute

CONNECT_SECONDS = 5.0  # for connecting, so that an unreachable host does not use up a model's whole timeout


class _Held(NamedTuple):
    """Open session with the generator that holds it open."""

    session: aiohttp.ClientSession
    keeper: AsyncGenerator[aiohttp.ClientSession, None]


class LoopSessions:
    """Sessions by event loop, safe to use from loops of several threads."""

    def __init__(self, headers: Mapping[str, str], route: ServiceRoute) -> None:
        self._headers = headers
        self._route = route
        self._held: dict[asyncio.AbstractEventLoop, _Held] = {}

    async def here(self) -> aiohttp.ClientSession:
        """Return the session of the running loop, opened on first use."""
        loop = asyncio.get_running_loop()
        entry = self._held.get(loop)
        if entry is None or entry.session.closed:
            self._forget_closed_loops()
            keeper = _kept_open(self._headers, self._route)
            entry = self._held[loop] = _Held(await anext(keeper), keeper)
        return entry.session

    async def aclose(self) -> None:
        """Close all sessions; sessions of other loops are closed there shortly afterwards."""
        while self._held:
            loop, entry = self._held.popitem()
            if loop is asyncio.get_running_loop():
                await entry.keeper.aclose()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(entry.keeper.aclose(), loop)

    def _forget_closed_loops(self) -> None:
        for loop in [known for known in list(self._held) if known.is_closed()]:
            self._held.pop(loop, None)


async def _kept_open(headers: Mapping[str, str], route: ServiceRoute) -> AsyncGenerator[aiohttp.ClientSession, None]:
    session = aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, ssl=route.tls),
        proxy=route.proxy or None,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
    )
    try:
        yield session
    finally:
        await session.close()

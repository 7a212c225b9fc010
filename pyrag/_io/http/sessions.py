"""Connections of one service, kept for each event loop that calls it and closed with that loop at the latest.

A session is held open by an asynchronous generator of its loop: `asyncio.run` shuts these down before it closes the
loop, so that a caller who closes nothing leaves no connection behind. Left out: loops that are closed by hand without
`shutdown_asyncgens`; their connections end with the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple

import aiohttp

from pyrag._io.http.routes import ServiceRoute

CONNECT_SECONDS = 5.0  # a host that swallows packets must not cost a model's whole timeout


class _Held(NamedTuple):
    session: aiohttp.ClientSession
    keeper: AsyncGenerator[aiohttp.ClientSession, None]


class LoopSessions:
    """Sessions by loop; safe to use from loops of several threads."""

    def __init__(self, headers: Mapping[str, str], route: ServiceRoute) -> None:
        self._headers = headers
        self._route = route
        self._held: dict[asyncio.AbstractEventLoop, _Held] = {}

    async def here(self) -> aiohttp.ClientSession:
        """The session of the running loop."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None or held.session.closed:
            self._forget_closed_loops()
            keeper = _kept_open(self._headers, self._route)
            held = self._held[loop] = _Held(await anext(keeper), keeper)
        return held.session

    async def aclose(self) -> None:
        """Close all sessions; those of other loops are closed there, soon."""
        while self._held:
            loop, held = self._held.popitem()
            if loop is asyncio.get_running_loop():
                await held.keeper.aclose()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(held.keeper.aclose(), loop)

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

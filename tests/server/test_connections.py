"""Connections that are slow, many or kept open: they end, and others are served."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.server import guard
from pyrag.server.config import ServerConfig, read_keys
from pyrag.server.connections import network_of
from tests.server.live import QUESTION
from tests.server.test_serve import Client, hold, running

KEY = "k-0123456789abcdef"
HEAD = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
ALLOWED = b"X-API-Key: " + KEY.encode() + b"\r\n"
LONG = b"Content-Length: 4000000\r\n\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def keyed(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> AsyncIterator[Client]:
    """A server that asks for a key, and does not linger for long."""
    monkeypatch.setattr(guard, "_LINGER", 0.3)
    config = ServerConfig(keys=read_keys(None, {"PYRAG_SERVE_API_KEY": KEY}), body_timeout=0.5, **limits)
    async with running(config) as client:
        yield client


@asynccontextmanager
async def connected(client: Client, address: str = "127.0.0.1") -> AsyncIterator[Connection]:
    host, port = client.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=(address, 0))
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def dripped(writer: asyncio.StreamWriter) -> None:
    """Send a byte from time to time, until the server ends the connection."""
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEAD + LONG, 401),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", 401),
        (HEAD + b"X-API-Key: wrong\r\nExpect: 100-continue\r\n" + LONG, 401),
        (b"GET /v1/traces HTTP/1.1\r\nHost: localhost\r\n\r\n", 401),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + LONG, 401),
        (HEAD + ALLOWED + b"Content-Length: 40000000\r\n\r\n", 413),
        (HEAD + ALLOWED + b"Content-Encoding: gzip\r\n" + LONG, 415),
        (HEAD + ALLOWED + b"Origin: http://evil.example\r\n" + LONG, 403),
        (HEAD + ALLOWED + LONG + b"{", 408),
    ],
)
async def test_a_refusal_ends_its_connection(monkeypatch: pytest.MonkeyPatch, head: bytes, status: int) -> None:
    async with keyed(monkeypatch) as client, connected(client) as (reader, writer):
        writer.write(head)
        dripping = asyncio.create_task(dripped(writer))
        received = b""
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                while piece := await reader.read(1 << 16):
                    received += piece
            await dripping
        assert received.startswith(b"HTTP/1.1 %d" % status)
        assert received.count(b"HTTP/1.1") == 1
        assert b"connection: close" in received.lower()
        assert "message" in json.loads(received.partition(b"\r\n\r\n")[2])["error"]


async def test_a_client_that_still_sends_reads_its_refusal() -> None:
    async with running() as client:
        for size in (5 << 20, 20 << 20):
            async with client.session.post(client.url + "/v1/ask", data=io.BytesIO(b"x" * size)) as reply:
                assert reply.status == 413


async def test_connections_without_requests_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"max_per_address": 5, "max_connections": 9}
    async with keyed(monkeypatch, **limits) as client, contextlib.AsyncExitStack() as stack:
        begun = [b"", HEAD, HEAD + LONG, HEAD + ALLOWED + LONG, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"]
        held: list[Connection] = []
        for number in range(40):
            held.append(await stack.enter_async_context(connected(client, f"127.0.0.{number % 3 + 1}")))
            held[-1][1].write(begun[number % len(begun)])
            async with client.session.get(client.url + "/healthz", headers={"Connection": "close"}) as reply:
                assert reply.status == 200
        async with asyncio.timeout(60):
            for reader, _ in held[:30]:
                with contextlib.suppress(ConnectionError):
                    await reader.read()


@pytest.mark.parametrize("limits", [{"max_per_address": 2}, {"max_connections": 2, "max_per_address": None}])
async def test_connections_in_use_are_kept(limits: dict[str, Any]) -> None:
    async with running(ServerConfig(**limits)) as client:
        held = hold(client)
        asking = asyncio.create_task(client.post("/v1/ask", {"question": QUESTION}))
        await asyncio.wait_for(held.begun.wait(), 60)
        async with connected(client) as (reader, _):
            refused = (await asyncio.wait_for(reader.read(), 60)).partition(b"\r\n\r\n")
        assert refused[0].startswith(b"HTTP/1.1 503")
        assert json.loads(refused[2])["error"]["code"] == "too_many_connections"
        if "max_connections" not in limits:
            async with connected(client, "127.0.0.2") as (other, writer):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert (await asyncio.wait_for(other.read(), 60)).startswith(b"HTTP/1.1 200")
        held.go.set()
        assert (await asking)[0] == 200
        assert 'pyrag_refusals_total{code="too_many_connections"} 1' in (await client.get("/metrics"))[1]


async def test_a_client_that_does_not_read_is_cut() -> None:
    body = json.dumps({"model": "pyrag", "input": QUESTION, "stream": True, "instructions": "x" * (3 << 20)}).encode()
    path = HEAD.replace(b"/v1/ask", b"/v1/responses")
    async with running(ServerConfig(stall_timeout=0.3)) as client, connected(client) as (reader, writer):
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(path + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        async with asyncio.timeout(60):
            while 'outcome="known"' not in (await client.get("/metrics"))[1]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.6)
            reader._transport.resume_reading()  # type: ignore[attr-defined]
            received = b""
            with contextlib.suppress(ConnectionError):
                received = await reader.read()
        assert b"response.completed" not in received


def test_an_ipv6_network_counts_as_one_address() -> None:
    assert network_of(("192.0.2.7", 1)) == network_of(("::ffff:192.0.2.7", 2)) == "192.0.2.7"
    assert network_of(("2001:db8:1:2::1", 1)) == network_of(("2001:db8:1:2:ffff::9", 2)) == "2001:db8:1:2::/64"
    assert network_of(("2001:db8:1:3::1", 1)) != network_of(("2001:db8:1:2::1", 1))
    assert network_of(None) == network_of(("a socket", 0)) == ""

"""The HTTP client against a real server: what is retried, what each error says, and that connections are reused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from pyrag._io.http import errors
from pyrag._io.http.client import HttpService
from pyrag.errors import (
    ConfigError,
    MalformedReplyError,
    PermanentServiceError,
    PyRAGError,
    RetryableServiceError,
    ServiceError,
)

from .conftest import Server


def decode(content: bytes) -> Any:
    return msgspec.json.decode(content)


def service(url: str, **settings: Any) -> HttpService:
    return HttpService(url, **{"name": "retriever", "timeout": 2.0, "cure": "start it or pass --retriever", **settings})


async def failure(client: HttpService) -> PyRAGError:
    try:
        await client.post_json("/retrieve", {"a": 1}, decode)
    except PyRAGError as error:
        return error
    finally:
        await client.aclose()
    raise AssertionError("no error")


def replies(*statuses: int, headers: dict[str, str] | None = None, body: str = "{}") -> Any:
    """A handler that gives each status once, then 200 for ever."""
    rest: Iterator[int] = iter(statuses)

    async def handler(request: web.Request) -> web.Response:
        status = next(rest, 200)
        return web.Response(status=status, text=body, headers=headers if status != 200 else None)

    return handler


async def test_posts_json_and_keeps_the_query_of_the_url(server: Server) -> None:
    client = service(server.url + "/v1/?version=2")
    assert await client.post_json("/chat", {"é": [1]}, decode) == {"path": "/v1/chat", "body": {"é": [1]}}
    assert server.requests[0][1] == "/v1/chat?version=2"
    assert client.url == server.url + "/v1"
    await client.aclose()


async def test_gets_json(server: Server) -> None:
    server.handler = replies(body='{"models": []}')
    client = service(server.url)
    assert await client.get_json("/models", decode) == {"models": []}
    assert server.requests[0][:2] == ("GET", "/models")
    await client.aclose()


async def test_one_connection_serves_calls_in_a_row(server: Server) -> None:
    client = service(server.url)
    for _ in range(5):
        await client.post_json("/x", {}, decode)
    assert len(server.peers) == 1
    await client.aclose()


async def test_more_than_a_hundred_calls_run_at_once(server: Server) -> None:
    arrived = 0
    everybody = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        nonlocal arrived
        arrived += 1
        if arrived == 150:
            everybody.set()
        await everybody.wait()
        return web.json_response(1)

    server.handler = handler
    client = service(server.url, timeout=10.0)
    assert await asyncio.gather(*(client.post_json("/x", {}, decode) for _ in range(150))) == [1] * 150
    await client.aclose()


async def test_a_large_body_is_sent(server: Server) -> None:
    client = service(server.url)
    reply = await client.post_json("/x", {"text": "x" * 3_000_000}, decode)
    assert len(reply["body"]["text"]) == 3_000_000
    await client.aclose()


@pytest.mark.parametrize("statuses", [(500,), (429,), (503, 502), (408,)])
async def test_a_passing_fault_is_survived(server: Server, statuses: tuple[int, ...]) -> None:
    server.handler = replies(*statuses)
    client = service(server.url)
    assert await client.post_json("/x", {}, decode) == {}
    assert len(server.requests) == len(statuses) + 1
    await client.aclose()


async def test_gives_up_after_the_last_retry(server: Server) -> None:
    server.handler = replies(*[500] * 9, body='{"error": {"message": "out of\\n memory"}}')
    error = await failure(service(server.url))
    assert isinstance(error, RetryableServiceError)
    assert len(server.requests) == 3
    assert str(error) == (
        f"retriever {server.url}/retrieve replied HTTP 500 (out of memory) in 3 attempts: "
        "look into its log, or try again later"
    )


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        (400, "change what"),
        (401, "check the API"),
        (403, "check the API"),
        (404, "check the URL"),
        (422, "change"),
        (302, "use"),
    ],
)
async def test_other_statuses_are_permanent(server: Server, status: int, cure: str) -> None:
    server.handler = replies(status, headers={"Location": "http://user:pw@there/x"}, body='{"detail": "no"}')
    error = await failure(service(server.url))
    assert isinstance(error, PermanentServiceError)
    assert len(server.requests) == 1
    assert f"HTTP {status} (no): {cure}" in str(error)
    assert "user:pw" not in str(error)


async def test_the_cure_of_a_status_can_be_replaced(server: Server) -> None:
    server.handler = replies(404, body="")
    assert str(await failure(service(server.url, cures={404: "pull the model"}))).endswith("HTTP 404: pull the model")


async def test_retry_after_is_obeyed(server: Server) -> None:
    server.handler = replies(429, headers={"Retry-After": "1"})
    client = service(server.url)
    started = time.monotonic()
    await client.post_json("/x", {}, decode)
    assert time.monotonic() - started >= 1.0
    await client.aclose()


@pytest.mark.parametrize("value", ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
async def test_a_retry_after_beyond_the_total_fails_at_once(server: Server, value: str) -> None:
    server.handler = replies(*[429] * 9, headers={"Retry-After": value})
    error = await failure(service(server.url))
    assert isinstance(error, RetryableServiceError)
    assert error.retry_after is not None
    assert error.retry_after >= 3600
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("1.5", 1.5),
        (" 0.25 ", 0.25),
        ("2.", 2),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 60),
        ("Thursday, 01-Jan-70 00:01:40 GMT", 60),
        ("Thu Jan  1 00:01:40 1970", 60),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0),
        *((one, None) for one in ("", "soon", "-1", "nan", "inf", "1e3", "1,5", "1.5 s", "²", "Fri, 99 Dec 2100")),
    ],
)
def test_retry_after_is_a_number_or_a_date(monkeypatch: pytest.MonkeyPatch, value: str, seconds: float | None) -> None:
    monkeypatch.setattr(errors.time, "time", lambda: 40.0)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert errors.seconds_to_wait({"Retry-After": value}) == seconds
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
async def test_an_unreadable_retry_after_is_ignored(server: Server, value: str) -> None:
    server.handler = replies(503, headers={"Retry-After": value})
    client = service(server.url)
    assert await client.post_json("/x", {}, decode) == {}
    await client.aclose()


async def test_a_dead_server_fails_soon_and_says_so(dead_url: str) -> None:
    error = await failure(service(dead_url))
    assert isinstance(error, RetryableServiceError)
    assert error.exit_code == 3
    assert str(error) == (
        f"retriever {dead_url}/retrieve refused the connection in 3 attempts: start it or pass --retriever"
    )


async def test_a_silent_server_ends_with_the_total(server: Server) -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    server.handler = handler
    error = await failure(service(server.url, timeout=0.3, total=0.5))
    assert isinstance(error, RetryableServiceError)
    assert "did not reply within" in str(error)


async def test_a_cut_off_reply_is_retried(server: Server) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if len(server.requests) > 2:
            return web.json_response("whole")
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b'"half')
        assert request.transport is not None
        request.transport.abort()
        return response

    server.handler = handler
    client = service(server.url)
    assert await client.post_json("/x", {}, decode) == "whole"
    await client.aclose()


async def test_what_is_not_http_is_told_apart() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        error = await failure(service(f"http://127.0.0.1:{port}"))
    assert isinstance(error, ServiceError)
    assert "proper HTTP" in str(error) or "closed the connection" in str(error)


@pytest.mark.parametrize("body", ["<html>", "", '{"x": ', "\x00"])
async def test_a_reply_that_is_not_json_is_malformed(server: Server, body: str) -> None:
    server.handler = replies(body=body)
    error = await failure(service(server.url))
    assert isinstance(error, MalformedReplyError)
    assert len(server.requests) == 1
    assert "check that the URL is that of a retriever" in str(error)


async def test_secrets_are_never_repeated(server: Server) -> None:
    server.handler = replies(401, 401, body='{"error": {"message": "bad key sk-abcdef"}}')
    url = server.url.replace("http://", "http://bob:hunter2@") + "?token=t0ken"
    error = await failure(service(url))
    assert server.requests[0][2]["Authorization"] == "Basic Ym9iOmh1bnRlcjI="
    assert not any(secret in str(error) for secret in ("bob", "hunter2", "t0ken"))
    error = await failure(service(server.url, headers={"Authorization": "Bearer sk-abcdef"}))
    assert "sk-abcdef" not in str(error) + repr(error)


@pytest.mark.parametrize(
    "url", ["", "notes", "ftp://x", "http://", "http://h:port", "http://a:b@h:99999", "http://[::1"]
)
def test_a_bad_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="write it like http") as caught:
        service(url)
    assert "a:b" not in str(caught.value)


def test_a_key_with_a_line_break_is_refused_unshown() -> None:
    with pytest.raises(ConfigError, match="check the key") as caught:
        service("http://h", headers={"Authorization": "Bearer x\r\nEvil: 1"})
    assert "Evil" not in str(caught.value)


async def test_cancelling_closes_the_connection(server: Server) -> None:
    gone = asyncio.Event()
    reached = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        reached.set()
        while request.transport and not request.transport.is_closing():  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(0.01)
        gone.set()
        return web.Response()

    server.handler = handler
    client = service(server.url)
    task = asyncio.create_task(client.post_json("/x", {}, decode))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(gone.wait(), 120)
    await client.aclose()


async def test_works_from_one_event_loop_after_another(server: Server) -> None:
    client = service(server.url)

    async def once(close: bool) -> Any:
        reply = await client.post_json("/x", {}, decode)
        if close:
            await client.aclose()
        return reply["path"]

    for close in (True, True, True):
        assert await asyncio.to_thread(asyncio.run, once(close)) == "/x"


async def test_two_loops_may_use_it_at_once(server: Server) -> None:
    client = service(server.url)
    assert (await client.post_json("/x", {}, decode))["path"] == "/x"

    async def other() -> Any:
        reply = await client.post_json("/y", {}, decode)
        await client.aclose()  # also asks this test's loop to close its session
        return reply["path"]

    assert await asyncio.to_thread(asyncio.run, other()) == "/y"
    await asyncio.sleep(0.05)
    assert (await client.post_json("/z", {}, decode))["path"] == "/z"
    await client.aclose()

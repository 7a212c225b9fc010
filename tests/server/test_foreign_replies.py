"""Replies of other servers: no words of them reach a client of the service, whatever went wrong; its log has them."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.server.config import ServerConfig, read_keys
from pyrag.server.search import _FIRST
from tests.server.conftest import ModelServer, Run
from tests.server.test_inner_addresses import REQUESTS
from tests.server.test_serve import SCRIPTED, Client, running

WORDS = "salaries of the board were cut"
SECRET = "sk-live-0123456789abcdef"
KEY = "k-0123456789abcdef"
PASSAGE = {"id": "hr", "title": WORDS, "text": WORDS, "contents": WORDS, "metadata": {"team": "hr", "note": WORDS}}
Handler = Callable[[web.Request], web.StreamResponse]


def said(status: int = 200, body: Any = WORDS, **headers: str) -> Handler:
    text = body if isinstance(body, str) else json.dumps(body)
    return lambda _: web.Response(text=text, status=status, headers=headers, content_type="application/json")


RETRIEVERS: dict[str, Handler] = {
    "ignores the filter": said(200, {"result": [[{"document": PASSAGE, "score": 1.0}]]}),
    "repeats another filter": said(200, {"result": [[PASSAGE]], "where": WORDS}),
    "sends text": said(200, WORDS),
    "sends lists": said(200, [[WORDS]]),
    "sends an object": said(200, {WORDS: WORDS}),
    "sends odd documents": said(200, {"result": [[WORDS, {WORDS: 1}]], "where": 'team = "ops"'}),
    "sends two lists": said(200, {"result": [[PASSAGE], [PASSAGE]], "where": 'team = "ops"'}),
    "fails": said(500, {"error": f"{WORDS} {SECRET}"}),
    "refuses": said(400, {"detail": [{"msg": WORDS, "input": SECRET}]}),
    "refuses in text": said(403, f"{WORDS}: {SECRET}"),
    "redirects": said(302, "", Location=f"http://x.example/{WORDS}"),
}


@asynccontextmanager
async def retriever(handler: Handler) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.StreamResponse:
        first = (await request.json())["queries"] == [_FIRST]  # what the service searches for before it serves
        return web.json_response({"result": [[{"id": "a", "text": "a"}]]}) if first else handler(request)

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def everything(client: Client, **headers: str) -> str:
    """All that the service sends about questions, searches and its state."""
    received = []
    for path, body in REQUESTS:
        async with client.session.post(client.url + path, json=body, headers=headers) as reply:
            received.append(f"{await reply.text()} {reply.headers}")
    listed = (await client.get("/v1/traces", **headers))[1]["traces"]
    kept = [await client.get(f"/v1/traces/{one['id']}", **headers) for one in listed]
    assert len(kept) > 3
    state = [await client.get(path, **headers) for path in ("/readyz", "/health", "/v1/options", "/metrics")]
    return "\n".join([*received, json.dumps(kept), json.dumps(state)])


def leaks(text: str) -> list[str]:
    return [word for word in (*WORDS.split(), SECRET[:12], SECRET[-12:]) if len(word) > 4 and word in text]


def test_the_look_for_leaks_sees_them() -> None:
    assert leaks(f"x {WORDS[3:]}")
    assert leaks(SECRET)
    assert not leaks("the retriever failed")


@pytest.mark.parametrize("kind", RETRIEVERS)
async def test_no_words_of_a_retriever_reach_a_client(
    kind: str, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pyrag.server")
    keys = read_keys(None, {"PYRAG_SERVE_API_KEY": f'{KEY} where team = "ops"'})
    async with (
        retriever(RETRIEVERS[kind]) as url,
        running(ServerConfig(keys=keys), llm=f"openai:tiny@{server.url}", retriever=url) as client,
    ):
        assert leaks(await everything(client, **{"X-API-Key": KEY})) == []
    logged = caplog.text
    assert "retriever" in logged
    assert SECRET[:12] not in logged
    if kind not in ("sends two lists", "redirects"):
        assert "salaries" in logged


@pytest.mark.parametrize("status", [0, 200, 400, 401, 404, 500, pytest.param(429, marks=pytest.mark.slow)])
async def test_no_words_of_a_model_server_reach_a_client(
    status: int, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pyrag.server")
    body = {"error": {"message": f"{WORDS} {SECRET}", "code": WORDS}} if status != 200 else {"choices": WORDS}
    stream = f"data: {json.dumps(body)}\n\n"
    server.refuse = lambda asked: (status, body) if status else (0, stream) if asked.get("stream") else (500, body)
    async with running(llm=f"openai:tiny@{server.url}") as client:
        assert leaks(await everything(client)) == []
    assert "model server" in caplog.text
    assert SECRET[:12] not in caplog.text


def test_the_command_shows_words_without_keys(server: ModelServer, pyrag: Run) -> None:
    server.refuse = lambda _: (400, {"error": {"message": f"{WORDS} {SECRET}"}})
    done = pyrag("ask", SCRIPTED, "--llm", f"openai:tiny@{server.url}")
    assert WORDS in done.stderr
    assert "‹" not in done.stderr
    assert SECRET[:12] not in done.stdout + done.stderr


async def test_a_session_of_mcp_shows_no_words_either(server: ModelServer) -> None:
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    from mcp import Client as McpClient

    async with (
        retriever(RETRIEVERS["refuses"]) as url,
        running(llm=f"openai:tiny@{server.url}", retriever=url) as client,
        McpClient(f"{client.url}/mcp") as session,
    ):
        for name, arguments in (("search", {"query": "x"}), ("ask", {"question": SCRIPTED})):
            reply = await session.call_tool(name, arguments)
            assert reply.is_error
            assert leaks(reply.model_dump_json()) == []

"""Ends of requests before their time: clients that go away, and servers that do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.server.config import ServerConfig
from tests.cli.conftest import COMMAND, environment
from tests.server.live import QUESTION
from tests.server.test_serve import Client, hold, running

CHAT = {"model": "pyrag", "messages": [{"role": "user", "content": QUESTION}]}


class SilentModel:
    """A model server that reads requests and never answers; it knows how many connections are open."""

    def __init__(self) -> None:
        self.begun, self.left = asyncio.Event(), asyncio.Event()
        self.open = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        await reader.readuntil(b"\r\n\r\n")
        self.begun.set()
        await reader.read()  # until the client closes
        self.open -= 1
        self.left.set()
        writer.close()


@asynccontextmanager
async def silent_model() -> AsyncIterator[tuple[SilentModel, str]]:
    model = SilentModel()
    async with await asyncio.start_server(model.talk, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield model, f"openai:tiny@http://{host}:{port}/v1"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/ask", {"question": QUESTION}),
        ("/v1/ask", {"question": QUESTION, "stream": True}),
        ("/v1/ask/batch", {"questions": [QUESTION]}),
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", {**CHAT, "stream": True}),
        ("/v1/responses", {"model": "pyrag", "input": QUESTION, "stream": True}),
    ],
)
async def test_a_vanished_client_leaves_no_model_call(path: str, body: dict[str, Any]) -> None:
    async with silent_model() as (model, spec), running(llm=spec) as client:
        asking = asyncio.create_task(client.post(path, body))
        await asyncio.wait_for(model.begun.wait(), 60)
        asking.cancel()
        await asyncio.wait_for(model.left.wait(), 60)
        await emptied(client)
        assert model.open == 0


async def emptied(client: Client) -> None:
    async with asyncio.timeout(60):
        while client.service.gauges["pyrag_requests_in_flight"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_draining_server_refuses_and_lets_work_end() -> None:
    async with running(ServerConfig(shutdown_timeout=60)) as client:
        held = hold(client)
        asking = asyncio.create_task(client.post("/v1/ask", {"question": QUESTION}))
        await asyncio.wait_for(held.begun.wait(), 60)
        draining = asyncio.create_task(client.service.drain())
        await asyncio.sleep(0)
        problems = ["the server is shutting down"]
        assert await client.get("/readyz") == (503, {"status": "not ready", "problems": problems})
        for path, body in (("/v1/ask", {"question": QUESTION}), ("/retrieve", {"queries": ["x"]})):
            async with client.session.post(client.url + path, json=body) as reply:
                assert (reply.status, reply.headers["Retry-After"]) == (503, "2")
        assert not draining.done()
        held.go.set()
        assert (await asking)[0] == 200
        await asyncio.wait_for(draining, 60)


async def test_work_that_is_cut_ends_in_an_error() -> None:
    async with running(ServerConfig(shutdown_timeout=0, max_running=3)) as client:
        held = hold(client)
        bodies = [{"question": QUESTION}, {"question": QUESTION, "stream": True}]
        asking = [asyncio.create_task(_text(client, "/v1/ask", body)) for body in bodies]
        asking.append(asyncio.create_task(_text(client, "/v1/chat/completions", {**CHAT, "stream": True})))
        await asyncio.wait_for(held.begun.wait(), 60)
        async with asyncio.timeout(60):
            while client.service.gauges["pyrag_questions_running"] < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await client.service.drain()
        plain, stream, chat = await asyncio.gather(*asking)
        assert plain[0] == 503
        assert "the server ended before the work was done" in plain[1]
        assert (
            stream[1].rstrip().split("\n\n")[-1].startswith('event: error\ndata: {"error":{"message":"the server ended')
        )
        assert chat[1].rstrip().split("\n\n")[-1].startswith('data: {"error":{"message":"the server ended')


async def _text(client: Client, path: str, body: Any) -> tuple[int, str]:
    async with client.session.post(client.url + path, json=body) as reply:
        return reply.status, await reply.text()


async def test_a_store_that_fails_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as client:
        await client.service.store._run(lambda: client.service.store._database.execute("DROP TABLE traces"))
        status, reply = await client.post("/v1/ask", {"question": QUESTION})
        assert (status, reply["answer"]) == (200, "Uppsala")
        assert reply["warnings"][-1].startswith("the trace was not kept: the traces in memory cannot be used")
        assert (await client.get("/v1/traces"))[0] == 503
        assert "pyrag_store_errors_total 1" in (await client.get("/metrics"))[1]


async def test_a_killed_sandbox_is_started_again() -> None:
    async with running() as client:
        assert (await client.get("/readyz"))[0] == 200
        client.service._owner.engines.sandbox.close()
        _, reply = await client.post("/v1/ask", {"question": QUESTION})
        assert reply["answer"] == "Uppsala"
        assert "pyrag_sandbox_restarts 1" in (await client.get("/metrics"))[1]


async def test_a_connection_too_many_is_refused() -> None:
    async with running(ServerConfig(max_connections=2)) as client:
        held = hold(client)
        asking = asyncio.create_task(client.post("/v1/ask", {"question": QUESTION}))
        await asyncio.wait_for(held.begun.wait(), 60)
        async with client.session.get(client.url + "/healthz") as reply:
            assert reply.status == 503
        held.go.set()
        assert (await asking)[0] == 200


@asynccontextmanager
async def process(folder: Path, *options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run the command until the block ends; yield its process and URL."""
    command = (*COMMAND, "serve", "--port", "0", *options)
    started = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert started.stdout is not None
        yield started, (await started.stdout.readline()).decode().split(" at ")[1].split()[0]
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


async def complaints(started: asyncio.subprocess.Process) -> str:
    """End a process by SIGTERM and return what it wrote to stderr."""
    started.terminate()
    _, errors = await asyncio.wait_for(started.communicate(), 120)
    assert started.returncode == 0
    return errors.decode()


async def test_sigterm_ends_a_stream_without_a_traceback(tmp_path: Path) -> None:
    async with silent_model() as (model, spec), process(tmp_path, "--llm", spec) as (started, url):
        body = {"question": QUESTION, "stream": True}
        async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/ask", json=body) as reply:
            await asyncio.wait_for(model.begun.wait(), 60)
            assert await complaints(started) == ""
            assert "the server ended before the work was done" in (await reply.text()).split("\n\n")[-2]


async def test_sigterm_cuts_a_stream_that_nobody_reads(tmp_path: Path) -> None:
    echoed = "x" * (3 << 20)  # fills every buffer between the server and a client that reads nothing
    body = json.dumps({"model": "pyrag", "input": QUESTION, "stream": True, "instructions": echoed}).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    async with process(tmp_path) as (started, url), aiohttp.ClientSession() as session:
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1 << 10)
        writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        async with asyncio.timeout(120):
            while 'outcome="known"' not in await _metrics(session, url):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await complaints(started) == ""
        writer.close()


async def _metrics(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(f"{url}/metrics") as reply:
        return await reply.text()

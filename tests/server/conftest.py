"""A model server on loopback, in a thread of its own, that plays the three agents: for tests of the whole way from a
question over HTTP to a trace, in this process or through the command line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from pyrag.llm.clients.scripted import role_of
from pyrag.llm.protocol import Message
from tests.cli.conftest import Run, pyrag

__all__ = ["ModelServer", "Run", "pyrag", "role_in", "server", "serving"]

PROGRAM = """```python
docs = retrieve("Who is Jed Hoyer?")
job = answer("Who is Jed Hoyer?", docs)
final_answer = answer(f"Given: {job}. Answer the question: Who is Jed Hoyer?")
```"""
REPLIES = {
    "decompose": '["Who is Jed Hoyer?"]',
    "plan": PROGRAM,
    "answer": "<think>Doc [1] says so.</think>\n<answer>an executive</answer> [1]",
}

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass
class ModelServer:
    """`refuse` may return (status, body) for a request's body, with status 0 a stream's text; `bodies` holds every
    request, `keys` and `headers` their headers."""

    replies: dict[str, str] = field(default_factory=lambda: dict(REPLIES))
    refuse: Callable[[dict[str, Any]], tuple[int, Any] | None] = lambda body: None
    usage: Any = field(default_factory=lambda: dict(USAGE))
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "tiny", "object": "model"}])
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    listed: int = 0

    @property
    def roles(self) -> list[str]:
        return [role_in(body) for body in self.bodies]

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.keys.append(request.headers.get("Authorization"))
        self.headers.append(dict(request.headers))
        refused = self.refuse(body)
        if refused and not refused[0]:
            return web.Response(text=refused[1], content_type="text/event-stream")
        if refused:
            return web.json_response(refused[1], status=refused[0])
        message = {"role": "assistant", "content": self.reply(body)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        named = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "tiny"}
        return web.json_response({**named, "choices": [choice], "usage": self.usage})

    def reply(self, body: dict[str, Any]) -> str:
        return self.replies[role_in(body)]

    async def list(self, _: web.Request) -> web.StreamResponse:
        self.listed += 1
        return web.json_response({"object": "list", "data": self.models})


def role_in(body: dict[str, Any]) -> str:
    return role_of([Message(**message) for message in body["messages"]])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(ModelServer()) as script:
        yield script


@contextmanager
def serving(script: ModelServer) -> Iterator[ModelServer]:
    loop = asyncio.new_event_loop()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", script.chat)
    app.router.add_get("/v1/models", script.list)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()

    loop.run_until_complete(start())
    host, port = runner.addresses[0][:2]
    script.url = f"http://{host}:{port}/v1"
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(runner.cleanup())
        loop.close()

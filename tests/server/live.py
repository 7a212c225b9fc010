"""A server of `pyrag serve` in a thread of its own, for the tests of a module: asked over sockets, by any client."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pyrag.server.app import create_app
from pyrag.server.config import ServerConfig
from pyrag.server.processes import server_of
from pyrag.server.service import QuestionService
from pyrag.settings import make_settings

QUESTION = "In which city was the director of The Seventh Seal born?"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])


@dataclass(frozen=True)
class Live:
    url: str
    service: QuestionService

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    def send(self, path: str, body: Any = None, *, method: str | None = None, **headers: str) -> Reply:
        """Send a request; a body that is neither bytes nor None goes as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        head = {"Content-Type": "application/json"} | {name.replace("_", "-"): one for name, one in headers.items()}
        request = Request(self.url + path, data, head, method=method)
        try:
            with urlopen(request, timeout=120) as reply:
                return Reply(reply.status, reply.headers, reply.read())
        except HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read())

    def raw(self, data: bytes) -> bytes:
        """Send bytes and return all that comes back until the connection ends."""
        with socket.create_connection(self.address, timeout=120) as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@contextmanager
def live(config: ServerConfig | None = None, **settings: Any) -> Iterator[Live]:
    """Run a server until the block ends."""
    running, opened = threading.Event(), list[Any]()

    async def run() -> None:
        service = QuestionService(make_settings(settings), config or ServerConfig())
        await service.start()
        server = server_of(service, create_app(service), port=0)
        serving = asyncio.create_task(server.serve())
        while not server.started and not serving.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        opened.extend((Live(f"http://{host}:{port}", service), server))
        running.set()
        await serving

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    while thread.is_alive() and not running.wait(0.1):
        pass
    assert opened, "the server did not start"
    try:
        yield opened[0]
    finally:
        opened[1].should_exit = True
        thread.join()

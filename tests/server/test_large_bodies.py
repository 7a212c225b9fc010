"""Bodies made to cost much: each costs in proportion to its size, and the event loop serves others meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from threading import Event, get_ident
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.server import bodies
from pyrag.server.app import create_app
from pyrag.server.config import ServerConfig
from pyrag.server.errors import ApiError
from pyrag.server.service import QuestionService
from pyrag.settings import make_settings
from tests.server.test_serve import running

SIZE = 60_000  # bytes; read in the loop, four times as much in a thread
GROWTH = 10.0  # linear cost grows by 4, quadratic cost by 16
TRIES = 3
TOO_LITTLE = 0.05  # seconds of processor time that say nothing about growth
BODIES: dict[str, dict[str, Any]] = {
    "/v1/ask": {"question": "?"},
    "/v1/ask/batch": {"questions": ["?"]},
    "/retrieve": {"queries": [""]},
    "/v1/chat/completions": {"model": "pyrag", "messages": [{"role": "user", "content": "?"}]},
    "/v1/responses": {"model": "pyrag", "input": "?"},
}


def filled(item: bytes, size: int) -> bytes:
    return b",".join([item] * (size // (len(item) + 1)))


def names(size: int) -> bytes:
    return b",".join(b'"n%d":1' % number for number in range(size // 10))


SHAPES: dict[str, Callable[[int], bytes]] = {
    "equal numbers": lambda size: b"[" + filled(b"1", size) + b"]",
    "equal texts": lambda size: b"[" + filled(b'"a b"', size) + b"]",
    "equal objects": lambda size: b"[" + filled(b'{"role":1}', size) + b"]",
    "empty messages": lambda size: b"[" + filled(b'{"role":"user","content":[{}]}', size) + b"]",
    "many names": lambda size: b"{" + names(size) + b"}",
    "a repeated name": lambda size: b"{" + names(size) + b',"n%d":2}' % (size // 10 - 1),
    "depth": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "deep objects": lambda size: b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6),
    "a long text": lambda size: b'"' + b"a.b://" * (size // 6) + b'"',
    "a long word": lambda size: b'"' + b"a" * size + b'"',
    "escapes": lambda size: b'"' + b'\\\\\\"' * (size // 4) + b'"',
    "a huge number": lambda size: b"1" * size,
    "a fine number": lambda size: b"1." + b"1" * size,
    "blanks": lambda size: b" " * size + b"null",
}


class Asked:
    """An application that is asked without a socket."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, path: str, body: bytes, query: bytes = b"", **headers: str) -> tuple[int, bytes]:
        sent: list[dict[str, Any]] = []
        waiting = asyncio.Event()
        arriving = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not arriving:
                await waiting.wait()
            return arriving.pop() if arriving else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        given = {"host": "localhost", "content-type": "application/json"} | headers
        scope = {
            "type": "http", "method": "POST" if body else "GET", "path": path, "raw_path": path.encode(),
            "query_string": query, "headers": [(name.encode(), text.encode()) for name, text in given.items()],
            "http_version": "1.1", "scheme": "http", "server": ("localhost", 80), "client": None, "root_path": "",
        }  # fmt: skip
        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


@asynccontextmanager
async def application() -> AsyncIterator[tuple[Asked, dict[str, Any]]]:
    """The application without places for questions: what is asked is read and refused."""
    service = QuestionService(make_settings({}), ServerConfig(max_running=0, max_waiting=0, max_batch=10**6))
    app = create_app(service)
    try:
        yield Asked(app), app.openapi()
    finally:
        await service.aclose()


def fields_of(document: dict[str, Any], path: str) -> Iterator[str]:
    """Yield the fields of a body by the OpenAPI document, and one that it does not have."""
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    yield from schema["properties"]
    yield "unheard_of"


def body_with(path: str, field: str, value: bytes) -> bytes:
    others = {name: one for name, one in BODIES[path].items() if name != field}
    return (
        json.dumps(others).encode()[:-1] + (b", " if others else b"") + json.dumps(field).encode() + b":" + value + b"}"
    )


@pytest.mark.parametrize("path", BODIES)
async def test_no_field_costs_more_than_its_size(path: str) -> None:
    async with application() as (ask, document):
        fields = list(fields_of(document, path))
        assert len(fields) > 4
        for field in fields:
            for shape, made in SHAPES.items():
                cost = [math.inf, math.inf]
                for _ in range(TRIES):  # other threads and the garbage collector take time too
                    for number, size in enumerate((SIZE, 4 * SIZE)):
                        began = time.process_time()
                        status, reply = await ask(path, body_with(path, field, made(size)))
                        cost[number] = min(cost[number], time.process_time() - began)
                        assert 200 <= status < 500, (field, shape, reply)
                        assert len(reply) < 5 * SIZE, (field, shape)
                    if cost[1] < TOO_LITTLE:
                        break
                assert cost[1] < TOO_LITTLE or cost[1] < GROWTH * cost[0], (field, shape, cost)


async def test_no_query_string_or_header_costs_more_than_its_size() -> None:
    texts = (b"a.", b"9", b"a&", b"limit=1&", b"%41", b"://")
    async with application() as (ask, _):
        for name in (b"index", b"before", b"since", b"limit", b"known", b"x"):
            for text in texts:
                status, reply = await ask("/v1/traces", b"", name + b"=" + text * (SIZE // len(text)))
                assert status in (200, 400, 404, 503), (name, text)
                assert len(reply) < 5_000
        for header in ("accept", "authorization", "x-api-key", "traceparent", "content-type", "origin"):
            status, _ = await ask("/v1/ask", b"{}", **{header: "a." * (SIZE // 2)})
            assert status in (400, 403, 415)
        assert (await ask("/v1/traces", b"", b"a=" + b"1" * (1 << 17)))[0] == 431
        assert (await ask("/v1/traces", b"", accept="a" * (1 << 17)))[0] == 431


@pytest.mark.parametrize("shape", SHAPES)
def test_the_layer_takes_time_in_proportion_to_a_body(shape: str) -> None:
    def cost(size: int) -> float:
        body = b'{"a":' + SHAPES[shape](size) + b"}"
        spent = []
        for _ in range(3):
            began = time.process_time()
            with contextlib.suppress(ApiError):
                bodies.read_json(body)
            spent.append(time.process_time() - began)
        return min(spent)

    once, four = cost(1 << 20), cost(1 << 22)
    assert four < TOO_LITTLE or four < GROWTH * once, (once, four)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"a":1,"b":{"c":1,"c":2}}', "'c' twice"),
        (b'{"a":[{"x":1},{"x":1,"\\u0078":2}]}', "'x' twice"),
        (b'{"a\\"b":1,"a\\"b":2}', "twice"),
        (b'{"a\\\\":1,"a\\\\":2}', "twice"),
        (b"[" * (bodies.MAX_DEPTH + 1) + b"]" * (bodies.MAX_DEPTH + 1), "too deeply"),
        (b"[" + b",".join([b"1"] * (bodies.MAX_VALUES + 2)) + b"]", "more than 50,000 values"),
        (b"[" + b",".join([b'""'] * (bodies.MAX_VALUES + 2)) + b"]", "more than 50,000 values"),
    ],
)
def test_ambiguous_or_excessive_bodies_are_refused(body: bytes, says: str) -> None:
    with pytest.raises(ApiError, match=says):
        bodies.read_json(body)


@pytest.mark.parametrize(
    "value",
    [
        {"a": ':,[]{}"\\', "b": {"a": [1, 2.5, None, True]}},
        ["a:b,c" * 20_000, '\\"' * 9_999, "\\", '"', "\u2028\x00"],
        [[[]] * 3] * 100,
        {f"n{number}": number for number in range(20_000)},
    ],
)
def test_other_bodies_are_read_as_they_are(value: Any) -> None:
    assert bodies.read_json(json.dumps(value).encode()) == value
    assert bodies.read_json(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@pytest.mark.parametrize("path", BODIES)
async def test_a_large_body_is_read_beside_the_event_loop(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served, threads = Event(), []

    def read(body: bytes, noun: str = "body") -> Any:
        threads.append(get_ident())
        assert served.wait(60)
        raise ApiError(400, "read", "it was read")

    async with running(ServerConfig(max_running=1)) as client:
        monkeypatch.setattr(bodies, "read_json", read)
        body = {**BODIES[path], "unheard_of": "a" * bodies.IN_LOOP}
        asking = [asyncio.create_task(client.post(path, body)) for _ in range(3)]
        async with asyncio.timeout(60):
            while not threads:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert (await client.get("/healthz"))[0] == 200
        served.set()
        assert [status for status, _ in await asyncio.gather(*asking)] == [400] * 3
        assert get_ident() not in threads


@pytest.mark.parametrize(
    "metadata",
    [{f"n{number}": "x" for number in range(17)}, {"n": "x" * 513}, {"n" * 65: "x"}, {"n": 1}, {"n": ["x"]}],
)
async def test_metadata_has_limits_as_it_is_kept(metadata: dict[str, Any]) -> None:
    async with application() as (ask, _):
        body = {**BODIES["/v1/responses"], "metadata": metadata}
        status, reply = await ask("/v1/responses", json.dumps(body).encode())
        assert status == 400
        assert json.loads(reply)["error"]["param"].startswith("metadata")

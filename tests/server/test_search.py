"""`pyrag serve-retriever`, by our own client and by raw requests: replies, refusals, new generations, its end."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.errors import DataError, PyRAGError, ServiceError
from pyrag.retrieval import Options, following, open_retriever
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.http import HttpRetriever
from pyrag.retrieval.index import read_info, update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.protocol import Retriever
from pyrag.server import search
from pyrag.server.app import create_search_app
from pyrag.server.config import ServerConfig
from pyrag.server.processes import serve_retriever, server_of
from pyrag.server.search import SearchService
from pyrag.trace.model import Passage

LIMITED = ServerConfig(max_body=1 << 13, body_timeout=0.5)
HEAD = {"Content-Type": "application/json"}


class Running:
    def __init__(self, url: str, service: SearchService, session: aiohttp.ClientSession) -> None:
        self.url, self.service, self._session = url, service, session

    async def post(self, body: Any, path: str = "/retrieve") -> tuple[int, Any]:
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        async with self._session.post(self.url + path, data=data, headers=HEAD) as reply:
            return reply.status, await reply.json()

    async def get(self, path: str) -> tuple[int, Any]:
        async with self._session.get(self.url + path) as reply:
            return reply.status, await reply.json()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/a.md").write_text('# "Mill"\nThe mill was founded by Ann.\n\n# Zoo\nA zebra.\n')
    update_index([tmp_path / "n"], tmp_path / "ix")
    return tmp_path / "ix"


async def running(retriever: FollowingRetriever, config: ServerConfig = LIMITED) -> AsyncIterator[Running]:
    service = SearchService(config, {"default": retriever})
    service.started = True
    server = server_of(service, create_search_app(service), port=0)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(60):
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    async with aiohttp.ClientSession() as session:
        yield Running(f"http://{host}:{port}", service, session)
    server.should_exit = True
    await serving


def over(opener: Callable[[], Retriever], folder: Path | None = None) -> FollowingRetriever:
    return search.following(opener, folder, "default")


@pytest.fixture
async def over_index(index: Path) -> AsyncIterator[Running]:
    async for one in running(over(lambda: open_retriever(index), index)):
        yield one


async def test_our_client_gets_what_the_index_has(over_index: Running, index: Path) -> None:
    client, direct = HttpRetriever(over_index.url), open_retriever(index)
    for query in ("who founded the mill", "zebra", "nothing like it"):
        found = [replace(one, source="a.md") for one in await direct.retrieve(query, 3)]
        assert await client.retrieve(query, 3) == found
    (best,) = await client.retrieve("zebra", 1)
    text = (index.parent / "n/a.md").read_text()
    assert (best.source, text[best.start : best.end]) == ("a.md", "A zebra.")
    await client.aclose()


async def test_search_r1s_form(over_index: Running) -> None:
    status, reply = await over_index.post({"queries": ["zebra", "mill", "?"], "topk": 1, "return_scores": True})
    assert (status, len(reply["result"]), reply["result"][2]) == (200, 3, [])
    hit = reply["result"][0][0]
    assert hit["document"]["contents"] == '"Zoo"\nA zebra.'
    assert hit["score"] > 0
    _, bare = await over_index.post({"queries": ["zebra"]})
    assert bare == {"result": [[hit["document"]]]}
    assert (await over_index.post({"queries": []}))[1] == {"result": []}


async def test_scores_of_parts_come_along() -> None:
    class Hybrid(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            return [Passage("a", "", "text", 0.5, "s", {"bm25": 2.0, "dense": 0.25})]

    async for one in running(over(lambda: Hybrid([]))):
        client = HttpRetriever(one.url)
        assert (await client.retrieve("x", 1))[0].parts == {"bm25": 2.0, "dense": 0.25}
        assert await one.get("/health") == (200, {"status": "ok", "retriever": "default"})
        await client.aclose()


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ("{nope", 400, "the request cannot be read (JSON is malformed"),
        ("", 400, "the request cannot be read"),
        (b"\xff", 400, "the request cannot be read"),
        ({"query": "x"}, 400, "missing required field `queries`"),
        ({"queries": "x"}, 400, "Expected `array`"),
        ({"queries": [1]}, 400, "Expected `str`"),
        ({"queries": ["x"], "topk": 0}, 400, "topk is 0: ask for 1 to 1000 passages"),
        ({"queries": ["x"], "topk": 1001}, 400, "ask for 1 to 1000"),
        ({"queries": ["x"], "topk": "5"}, 400, "Expected `int | null`"),
        ({"queries": ["x"] * 1025}, 400, "1025 queries at once: send at most 1024"),
        ({"queries": ["x"] * 101, "topk": 1000}, 400, "101000 passages at once: send fewer queries, at most 100000"),
        (
            {"queries": ["x"] * 100, "topk": 1000, "where": " or ".join(f"a={n}" for n in range(21))},
            400,
            "100000 passages with a filter of 21 comparisons: send fewer queries, a smaller topk",
        ),
        ({"queries": ["x" * 9000]}, 413, "the request is larger than 8,192 bytes: send less"),
    ],
)
async def test_bad_requests(over_index: Running, body: Any, status: int, says: str) -> None:
    got, reply = await over_index.post(body)
    assert got == status
    assert list(reply) == ["error"]
    assert says in reply["error"]


async def test_a_body_that_is_wrong_or_never_arrives(over_index: Running) -> None:
    host, port = over_index.url.removeprefix("http://").split(":")
    for head, body, says in (
        (b"Content-Encoding: gzip\r\nContent-Length: 4", b"\x1f\x8bxx", b"the request is packed: send plain JSON"),
        (b"Content-Length: 100", b"{", b"did not arrive in time: send it whole"),
        (b"Content-Length: -5", b"", b"Invalid HTTP request"),
        (b"Transfer-Encoding: chunked", b"5\r\n{nope\r\n0\r\n\r\n", b"the request cannot be read (JSON is malformed"),
    ):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + head + b"\r\n\r\n" + body)
        assert (await asyncio.wait_for(reader.readuntil(says), 120)).startswith(b"HTTP/1.1 4")
        writer.close()


async def test_what_a_client_has_left_is_not_searched_on() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    class Endless(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            begun.set()
            try:
                return await asyncio.Future()
            finally:
                left.set()

    async for one in running(over(lambda: Endless([]))):
        asking = asyncio.create_task(one.post({"queries": ["x"]}))
        await begun.wait()
        asking.cancel()
        await asyncio.wait_for(left.wait(), 120)


async def test_other_paths_and_methods(over_index: Running) -> None:
    assert (await over_index.get("/"))[0] == 404
    status, reply = await over_index.get("/retrieve")
    assert status == 405
    assert reply["error"].startswith("Method Not Allowed (GET /retrieve): GET /openapi.json lists")


async def test_a_failing_retriever_is_503() -> None:
    class Failing(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            raise ServiceError("the index is gone: build it again")

    async for one in running(over(lambda: Failing([]))):
        assert await one.post({"queries": ["x", "y"]}) == (503, {"error": "the index is gone: build it again"})

    class Broken(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            raise KeyError(query)

    async for one in running(over(lambda: Broken([]))):
        status, reply = await one.post({"queries": ["x"]})
        assert (status, reply["error"]) == (503, "the retriever default failed (KeyError: …): look into its code")


async def test_a_new_generation_is_served_to_new_requests_only(index: Path) -> None:
    closed: list[Retriever] = []
    held = asyncio.Event()

    class Slow:
        def __init__(self) -> None:
            self.inner = open_retriever(index)
            self.name = "slow"

        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            if query.startswith("hold"):
                await held.wait()
            return await self.inner.retrieve(query, topk)

        async def aclose(self) -> None:
            closed.append(self)

    async for one in running(over(Slow, index)):
        before = (await one.get("/health"))[1]["generation"]
        waiting = asyncio.create_task(one.post({"queries": ["hold lion"]}))
        await asyncio.sleep(0.05)
        (index.parent / "n/b.md").write_text("A lion.")
        await asyncio.to_thread(update_index, [index.parent / "n"], index)
        newest = read_info(index).generation
        assert (await one.get("/health"))[1]["generation"] == newest != before
        _, reply = await one.post({"queries": ["lion"]})
        assert reply["result"][0][0]["text"] == "A lion."
        assert not closed
        held.set()
        assert (await waiting)[1] == {"result": [[]]}
        assert len(closed) == 1


async def test_an_index_that_goes_bad_is_served_as_it_was(over_index: Running, index: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(following, "RETRY", 0.0)
    (index / "pyrag-index.json").write_text("{")
    for _ in range(50):
        status, reply = await over_index.post({"queries": ["zebra"], "topk": 1})
        assert (status, len(reply["result"][0])) == (200, 1)
        await asyncio.sleep(0.01)
    assert "cannot be read" in (await over_index.get("/health"))[1]["problem"]


async def test_a_port_that_is_taken(over_index: Running, index: Path) -> None:
    port = int(over_index.url.rpartition(":")[2])
    with pytest.raises(PyRAGError, match=rf"cannot listen on 127\.0\.0\.1:{port} \(.*\): choose another --port"):
        await serve_retriever(lambda: open_retriever(index), index, ServerConfig(port=port))


async def test_a_missing_model_is_reported_before_serving(index: Path, tmp_path: Path) -> None:
    def opener() -> Retriever:
        return open_retriever(index, options=Options(rerank=f"onnx:{tmp_path}/none"))

    (index.parent / "n/c.md").write_text("Who wrote this?")
    update_index([index.parent / "n"], index)
    served: list[str] = []
    with pytest.raises(DataError, match="none holds no model"):
        await serve_retriever(opener, index, ServerConfig(port=0), lambda url, _: served.append(url))
    assert not served


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_ends_when_told(index: Path, number: int) -> None:
    code = "from pyrag.cli.main import main; main()"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, "serve-retriever", str(index), "--port", "0",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    first = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    assert f"serving bm25:{index} at http://127.0.0.1:" in first
    client = HttpRetriever(first.split(" at ")[1].split(";")[0])
    assert (await client.retrieve("zebra", 1))[0].text == "A zebra."
    await client.aclose()
    process.send_signal(number)
    _, complaints = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, complaints) == (0, b"")


async def test_the_command_serves_what_a_filter_passes(tmp_path: Path) -> None:
    lines = [{"id": team, "text": "A zebra.", "team": team} for team in ("ops", "hr")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    update_index([tmp_path / "a.jsonl"], tmp_path / "ix")
    code = "from pyrag.cli.main import main; main()"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, "serve-retriever", str(tmp_path / "ix"), "--port", "0", "--where", 'team = "ops"',
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    first = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    client = HttpRetriever(first.split(" at ")[1].split(";")[0])
    for where, found in ((None, ["ops"]), ('team = "hr"', []), ('team in ("ops", "hr")', ["ops"])):
        asked = None if where is None else parsed(where)
        assert [one.id for one in await client.retrieve("zebra", 5, asked)] == found
    await client.aclose()
    process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(process.communicate(), 60)

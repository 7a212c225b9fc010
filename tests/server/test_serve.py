"""`pyrag serve` over a real uvicorn on loopback: questions, streams, passages, traces, keys, limits."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.errors import ConfigError
from pyrag.retrieval.http import HttpRetriever
from pyrag.retrieval.index import update_index
from pyrag.server.app import create_app
from pyrag.server.config import ServerConfig, read_indexes, read_keys
from pyrag.server.processes import server_of
from pyrag.server.service import QuestionService
from pyrag.settings import make_settings
from pyrag.trace.codec import from_json
from pyrag.trace.model import Passage
from tests.cli.conftest import COMMAND, environment
from tests.server.conftest import ModelServer

QUESTION = "In which city was the director of The Seventh Seal born?"
SCRIPTED = "Who is Jed Hoyer?"  # which the model server has replies for
KEY, BOUND = "k-0123456789abcdef", "k-bound-0123456789"


class Client:
    def __init__(self, url: str, service: QuestionService, session: aiohttp.ClientSession) -> None:
        self.url, self.service, self.session = url, service, session

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        async with self.session.post(self.url + path, json=body, headers=headers) as reply:
            return reply.status, await reply.json()

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(self.url + path, headers=headers) as reply:
            text = await reply.text()
            return reply.status, json.loads(text) if reply.content_type == "application/json" else text


@asynccontextmanager
async def running(config: ServerConfig | None = None, **settings: Any) -> AsyncIterator[Client]:
    service = QuestionService(make_settings(settings), config or ServerConfig())
    server = server_of(service, create_app(service), port=0)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(60):
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    try:
        async with aiohttp.ClientSession() as session:
            yield Client(f"http://{host}:{port}", service, session)
    finally:
        server.should_exit = True
        await serving


@pytest.fixture
def indexes(tmp_path: Path) -> dict[str, str]:
    for name, text in (("zoo", "A zebra lives in the zoo."), ("mill", "The mill was founded by Ann.")):
        (tmp_path / f"{name}.md").write_text(text)
        update_index([tmp_path / f"{name}.md"], tmp_path / f"ix-{name}")
    return {name: str(tmp_path / f"ix-{name}") for name in ("zoo", "mill")}


async def test_a_question_its_trace_and_its_counters() -> None:
    async with running() as client:
        status, reply = await client.post("/v1/ask", {"question": QUESTION})
        assert (status, reply["question"], reply["known"], reply["error"]) == (200, QUESTION, True, None)
        assert "retrieve(" in reply["program"]
        assert reply["citations"][0]["number"] == 1
        assert (await client.get("/readyz"))[0] == (await client.get("/healthz"))[0] == 200
        (listed,) = (await client.get("/v1/traces"))[1]["traces"]
        assert (listed["id"], listed["answer"], listed["index"]) == (reply["id"], reply["answer"], "default")
        trace = from_json(json.dumps((await client.get(f"/v1/traces/{reply['id']}"))[1]))
        assert (trace.answer.text, trace.retriever) == (reply["answer"], "default")
        assert (await client.get("/v1/traces/none"))[0] == 404
        counters = (await client.get("/metrics"))[1]
        assert 'pyrag_questions_total{index="default",outcome="known"} 1' in counters
        assert 'pyrag_requests_total{route="/v1/ask",method="POST",status="200"} 1' in counters
        assert "pyrag_questions_running 0" in counters


async def test_the_stream_shows_events_and_ends_with_the_reply() -> None:
    async with (
        running() as client,
        client.session.post(
            client.url + "/v1/ask", json={"question": QUESTION}, headers={"Accept": "text/event-stream"}
        ) as reply,
    ):
        assert reply.content_type == "text/event-stream"
        blocks = [block.split("\n") for block in (await reply.text()).strip().split("\n\n")]
    names = [block[0].removeprefix("event: ") for block in blocks]
    assert (names[0], names[-1], names[-2]) == ("accepted", "reply", "question_finished")
    assert {"planned", "step_started", "step_finished"} <= set(names)
    values = [json.loads(block[1].removeprefix("data: ")) for block in blocks]
    assert values[-1]["id"] == values[0]["id"]
    assert values[-1]["known"]
    times = [value["at"] for value in values[1:-1]]
    assert times == sorted(times)


async def test_a_batch_keeps_the_order_of_its_questions() -> None:
    async with running() as client:
        questions = [QUESTION, "Who wrote Dracula?", QUESTION]
        status, reply = await client.post("/v1/ask/batch", {"questions": questions})
        assert (status, [one["question"] for one in reply["results"]]) == (200, questions)
        assert (await client.post("/v1/ask/batch", {"questions": ["x"] * 65}))[0] == 400
        assert (await client.post("/v1/ask/batch", {"questions": [QUESTION, " "]}))[0] == 400
        assert client.service.gauges["pyrag_questions_waiting"] == 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "question: Field required"),
        ({"question": "  "}, "the question is empty"),
        ({"question": "x" * 100_000}, "at most"),
        ({"question": "x\udc80"}, "the body cannot be read"),
        ({"question": "x", "topk": 0}, "topk: "),
        ({"question": "x", "stats": 1}, "stats: Extra inputs"),
        ({"question": "x", "method": "nope"}, "nope"),
        ({"question": "x", "max_cost": 1}, "prices"),
        ([], "the body"),
    ],
)
async def test_bad_questions_are_refused_in_one_sentence(body: Any, says: str) -> None:
    async with running() as client:
        status, reply = await client.post("/v1/ask", body)
        assert status == 400
        assert says in reply["error"]["message"]
        assert reply["error"]["type"] == "invalid_request_error"


async def test_retrieve_serves_our_own_client_by_index(indexes: dict[str, str]) -> None:
    async with running(ServerConfig(indexes=indexes)) as client:
        retriever = HttpRetriever(client.url)
        assert [one.text for one in await retriever.retrieve("zebra", 1)] == ["A zebra lives in the zoo."]
        await retriever.aclose()
        status, reply = await client.post("/retrieve?index=mill", {"queries": ["mill"], "topk": 1})
        assert (status, reply["result"][0][0]["text"]) == (200, "The mill was founded by Ann.")
        status, reply = await client.post("/retrieve", {"query": "x"})
        assert (status, type(reply["error"])) == (400, str)
        assert (await client.post("/retrieve?index=no", {"queries": []}))[0] == 404


async def test_keys_are_required_and_bound_to_indexes(indexes: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{BOUND} mill  # for the miller\n")
    keys = read_keys(file, {"PYRAG_SERVE_API_KEY": KEY})
    async with running(ServerConfig(indexes=indexes, keys=keys)) as client:
        body = {"question": "Who founded the mill?"}
        for headers in ({}, {"Authorization": "Bearer wrong-key-wrong-key"}, {"X-API-Key": ""}):
            status, reply = await client.post("/v1/ask", body, **headers)
            assert (status, reply["error"]["code"]) == (401, "invalid_api_key")
        assert (await client.get("/healthz"))[0] == 200
        _, reply = await client.post("/v1/ask", body, Authorization=f"Bearer {BOUND}")
        assert (reply["index"], reply["answer"]) == ("mill", "Ann")
        assert (await client.post("/v1/ask", {**body, "index": "zoo"}, **{"X-API-Key": BOUND}))[0] == 404
        _, other = await client.post("/v1/ask", {**body, "index": "zoo"}, **{"X-API-Key": KEY})
        assert (await client.get(f"/v1/traces/{other['id']}", **{"X-API-Key": BOUND}))[0] == 404
        listed = (await client.get("/v1/traces", **{"X-API-Key": BOUND}))[1]["traces"]
        assert [one["id"] for one in listed] == [reply["id"]]


async def test_state_names_only_indexes_of_the_caller(indexes: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{BOUND} mill\n")
    keys = read_keys(file, {"PYRAG_SERVE_API_KEY": KEY})
    async with running(ServerConfig(indexes=indexes, keys=keys)) as client:
        for index in ("zoo", "mill"):
            body = {"question": "Who founded the mill?", "index": index}
            assert (await client.post("/v1/ask", body, **{"X-API-Key": KEY}))[0] == 200
        (tmp_path / "ix-zoo").rename(tmp_path / "gone")
        state = {}
        for key in ("", BOUND, KEY):
            answers = [await client.get(path, **{"X-API-Key": key}) for path in ("/readyz", "/metrics", "/healthz")]
            state[key] = json.dumps(answers)
            assert answers[0][0] == 503
            assert answers[1][0] == (200 if key else 401)
        assert "zoo" not in state[""] + state[BOUND]
        assert "an index is missing" in state[""]
        assert 'index=\\"mill\\"' in state[BOUND]
        assert "mill" not in state[""]
        assert "the index zoo is missing" in state[KEY]
        assert 'index=\\"zoo\\"' in state[KEY]


async def test_pages_of_other_sites_and_large_bodies_are_refused() -> None:
    async with running(ServerConfig(max_body=1000)) as client:
        body = {"question": QUESTION}
        assert (await client.post("/v1/ask", body, Origin="http://evil.example"))[0] == 403
        assert (await client.post("/v1/ask", body, Host="evil.example"))[0] == 403
        assert (await client.post("/v1/ask", {"question": "x" * 2000}))[0] == 413


class Held:
    """A retriever whose searches wait until they are let go."""

    name = "held"

    def __init__(self) -> None:
        self.begun, self.left, self.go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        self.begun.set()
        try:
            await self.go.wait()
        finally:
            self.left.set()
        return []

    async def aclose(self) -> None:
        return


def hold(client: Client) -> Held:
    """Put a held retriever in the place of the default index's."""
    held = Held()
    client.service.indexes["default"].engines.retriever = held
    return held


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_cancels_its_question(stream: bool) -> None:
    async with running() as client:
        held = hold(client)
        asking = asyncio.create_task(client.post("/v1/ask", {"question": QUESTION, "stream": stream}))
        await asyncio.wait_for(held.begun.wait(), 60)
        asking.cancel()
        await asyncio.wait_for(held.left.wait(), 60)
        assert not held.go.is_set()


async def test_a_full_queue_says_when_to_come_back() -> None:
    async with running(ServerConfig(max_running=1, max_waiting=1)) as client:
        held = hold(client)
        asking = [asyncio.create_task(client.post("/v1/ask", {"question": QUESTION})) for _ in range(2)]
        await asyncio.wait_for(held.begun.wait(), 60)
        async with asyncio.timeout(60):
            while client.service.gauges["pyrag_questions_waiting"] < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        async with client.session.post(client.url + "/v1/ask", json={"question": QUESTION}) as reply:
            assert (reply.status, reply.headers["Retry-After"]) == (429, "2")
        assert (await client.get("/healthz"))[0] == 200
        held.go.set()
        assert [status for status, _ in await asyncio.gather(*asking)] == [200, 200]


async def test_limits_of_a_request_never_exceed_the_servers() -> None:
    async with running(deadline=60, max_calls=3, topk=4) as client:
        body = {"question": QUESTION, "deadline": 1e6, "max_calls": 99, "topk": 100, "include_trace": True}
        config = (await client.post("/v1/ask", body))[1]["trace"]["config"]
        assert (config["max_calls"], config["topk"]) == (3, 10)
        assert config["deadline"] <= 60
        assert "index" not in config
        _, reply = await client.post("/v1/ask", {**body, "topk": 2})
        assert reply["trace"]["config"]["topk"] == 2


async def test_errors_of_engines_show_no_path() -> None:
    async with running(llm="openai:tiny@http://user:secret@127.0.0.1:9/v1", deadline=5) as client:
        status, reply = await client.post("/v1/ask", {"question": QUESTION, "deadline": 0.5})
        assert status == 200
        assert reply["error"]
        assert "secret" not in json.dumps(reply)


async def test_only_the_newest_traces_are_kept(tmp_path: Path) -> None:
    config = ServerConfig(traces=tmp_path / "t.sqlite", max_traces=2)
    async with running(config) as client:
        ids = [(await client.post("/v1/ask", {"question": QUESTION}))[1]["id"] for _ in range(3)]
    async with running(config) as client:
        listed = (await client.get("/v1/traces"))[1]["traces"]
        assert [one["id"] for one in listed] == ids[:0:-1]
        older = (await client.get(f"/v1/traces?before={listed[0]['number']}"))[1]["traces"]
        assert [one["id"] for one in older] == [ids[1]]
        assert (await client.get("/v1/traces?limit=0"))[0] == 400


async def test_a_model_behind_the_service(server: ModelServer) -> None:
    async with running(llm=f"openai:tiny@{server.url}") as client:
        _, reply = await client.post("/v1/ask", {"question": SCRIPTED})
        assert (reply["answer"], reply["usage"]["model_calls"]) == ("an executive", 4)


async def test_several_indexes_share_one_model(server: ModelServer, indexes: dict[str, str]) -> None:
    async with running(ServerConfig(indexes=indexes), llm=f"openai:tiny@{server.url}") as client:
        assert len({id(one.engines.agents) for one in client.service.indexes.values()}) == 1
        for name in indexes:
            _, reply = await client.post("/v1/ask", {"question": SCRIPTED, "index": name})
            assert (reply["engine"], reply["index"]) == ("openai:tiny", name)


async def test_the_document_describes_every_route() -> None:
    async with running() as client:
        document = (await client.get("/openapi.json"))[1]
        known = {"/v1/ask", "/v1/ask/batch", "/retrieve", "/health", "/v1/traces", "/v1/traces/{id}", "/healthz"}
        known |= {
            "/readyz",
            "/metrics",
            "/v1/models",
            "/v1/models/{model}",
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/responses/{response_id}",
        }
        known |= {"/v1/options", "/v1/programs", "/v1/explain", "/v1/documents", "/v1/documents/{id}"}
        assert known == set(document["paths"])
        assert document["components"]["schemas"]["AskRequest"]["properties"]["question"]["examples"]


def test_other_hosts_need_a_key_or_consent() -> None:
    with pytest.raises(ConfigError, match="allow-anonymous"):
        ServerConfig(host="0.0.0.0")
    assert ServerConfig(host="0.0.0.0", allow_anonymous=True).host
    with pytest.raises(ConfigError, match="bound to the index 'nope'"):
        ServerConfig(keys=read_keys(None, {"PYRAG_SERVE_API_KEY": f"{KEY} nope"}))
    with pytest.raises(ConfigError, match="at least 16"):
        read_keys(None, {"PYRAG_SERVE_API_KEY": "short"})
    assert read_indexes(["a", "b"]) == {"default": ("a", "b")}
    assert read_indexes(["a=x", "./y=z"]) == {"a": "x", "default": "./y=z"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_serves_until_told_to_end(tmp_path: Path, number: int) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "serve", "--port", "0", cwd=tmp_path, env=environment(),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    first = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    assert "serving at http://127.0.0.1:" in first
    url = first.split(" at ")[1].split()[0]
    async with aiohttp.ClientSession() as session, session.get(url + "/readyz") as reply:
        assert reply.status == 200
    process.send_signal(number)
    _, complaints = await asyncio.wait_for(process.communicate(), 60)
    assert complaints == b""
    assert process.returncode in (0, 130)

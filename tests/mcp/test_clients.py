"""`pyrag mcp` asked by the official client, over stdin and stdout and over HTTP. `make test-mcp` runs it."""

# ruff: noqa: E402

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="the extra `mcp` is not installed")

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from pyrag.retrieval.index import update_index
from pyrag.server.config import ServerConfig, read_keys
from pyrag.server.mcp.http import create_mcp_app
from pyrag.server.service import QuestionService
from pyrag.settings import Settings, make_settings
from tests.cli.conftest import COMMAND, environment

pytestmark = pytest.mark.filterwarnings("default")  # the library's own deprecations

QUESTION = "In which city was the director of The Seventh Seal born?"
KEY, BOUND = "k-0123456789abcdef", "k-bound-0123456789"
ERAS = ("legacy", "auto")  # the handshake, and protocol 2026-07-28, which has none


@pytest.fixture
def indexes(tmp_path: Path) -> dict[str, str]:
    for name, text in (("zoo", "A zebra lives in the zoo."), ("mill", "The mill was founded by Ann.")):
        (tmp_path / f"{name}.md").write_text(text)
        update_index([tmp_path / f"{name}.md"], tmp_path / f"ix-{name}")
    return {name: str(tmp_path / f"ix-{name}") for name in ("zoo", "mill")}


def command(folder: Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", *options], env=environment(), cwd=folder
    )


@asynccontextmanager
async def served(application: Any = create_mcp_app, config: ServerConfig | None = None) -> AsyncIterator[str]:
    """An application on a real uvicorn; yields the address of its MCP endpoint."""
    service = QuestionService(make_settings({}), config or ServerConfig())
    server = uvicorn.Server(
        uvicorn.Config(application(service), port=0, log_level="error", timeout_graceful_shutdown=1)
    )
    server.capture_signals = nullcontext
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(60):
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}/mcp"
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def client_with(url: str, key: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def try_everything(client: Client) -> None:
    """Call each tool and read each resource of a server over the bundled corpus."""
    tools = (await client.list_tools()).tools
    assert [one.name for one in tools] == ["ask", "search", "open_passage", "run_program"]
    assert all(one.annotations and one.annotations.read_only_hint for one in tools)
    said: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress, message))

    reply = await client.call_tool("ask", {"question": QUESTION}, progress_callback=on_progress)
    result = reply.structured_content
    assert (reply.is_error, result["answer"], result["known"]) == (False, "Uppsala", True)
    assert reply.content[0].text.startswith("Uppsala [1]")
    assert [progress for progress, _ in said] == sorted({progress for progress, _ in said})
    assert any(message and message.startswith("answer: ") for _, message in said)
    cited = result["citations"][0]
    opened = (await client.call_tool("open_passage", {"id": cited["id"]})).structured_content
    assert (opened["text"], opened["title"]) == (cited["text"], cited["title"])
    found = (await client.call_tool("search", {"query": "The Seventh Seal", "topk": 2})).structured_content
    assert len(found["passages"]) == 2

    resource, _ = (await client.list_resources()).resources
    described = json.loads((await client.read_resource(resource.uri)).contents[0].text)
    assert described["passages"] == 349
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "pyrag://{index}/passages/{id}"
    assert json.loads((await client.read_resource(cited["uri"])).contents[0].text)["text"] == cited["text"]
    with pytest.raises(mcp.MCPError, match="there is no passage 'x'"):
        await client.read_resource("pyrag://default/passages/x")


@pytest.mark.parametrize("era", ERAS)
async def test_tools_and_resources_over_stdio(era: str, tmp_path: Path) -> None:
    async with Client(command(tmp_path), mode=era) as client:
        await try_everything(client)


@pytest.mark.parametrize("era", ERAS)
async def test_tools_and_resources_over_http(era: str) -> None:
    async with served() as url, Client(url, mode=era) as client:
        await try_everything(client)


async def test_pyrag_serve_offers_the_same_tools() -> None:
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    from pyrag.server.app import create_app

    async with served(create_app) as url, Client(url) as client:
        await try_everything(client)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search", {"query": "x", "topk": 0}, "the arguments of search are wrong: Expected `int` >= 1 in `topk`"),
        ("ask", {"question": " "}, 'the question is empty: ask something, such as "Who wrote Dracula?"'),
        ("ask", {"question": "x", "index": "no"}, "there is no index 'no': choose from zoo, mill"),
        ("open_passage", {"id": "x"}, "there is no passage 'x' in the index 'zoo': take an id that search or ask gave"),
        ("translate", {}, "there is no tool 'translate': choose from ask, search, open_passage, run_program"),
    ],
)
async def test_failures_are_tool_errors_in_one_sentence(
    tool: str, arguments: dict[str, Any], says: str, indexes: dict[str, str]
) -> None:
    async with served(config=ServerConfig(indexes=indexes)) as url, Client(url) as client:
        reply = await client.call_tool(tool, arguments)
        assert (reply.is_error, [one.text for one in reply.content]) == (True, [says])


async def test_keys_decide_which_indexes_a_client_sees(indexes: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{BOUND} mill\n")
    config = ServerConfig(indexes=indexes, keys=read_keys(file, {"PYRAG_SERVE_API_KEY": KEY}))
    async with served(config=config) as url:
        async with client_with(url, KEY) as client:
            assert len((await client.list_resources()).resources) == 3
        async with client_with(url, BOUND) as client:
            assert [one.name for one in (await client.list_resources()).resources] == ["mill", "programs"]
            schema = (await client.list_tools()).tools[0].input_schema
            assert schema["properties"]["index"]["enum"] == ["mill", None]
            reply = await client.call_tool("ask", {"question": "Who founded the mill?"})
            assert (reply.structured_content["answer"], reply.structured_content["index"]) == ("Ann", "mill")
            assert (await client.call_tool("search", {"query": "zebra", "index": "zoo"})).is_error
        async with aiohttp.ClientSession() as session, session.post(url, json={}) as refused:
            assert (refused.status, (await refused.json())["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"query": "x", "query": "y"}', "it names 'query' twice"),
        ('{"query": [' + "1," * 100_000 + "1]}", "more than 50,000 values"),
        ('{"query": ' + "[" * 500 + "]" * 500 + "}", "nested too deeply"),
    ],
)
async def test_bodies_are_bounded_before_they_are_read(arguments: str, says: str) -> None:
    body = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": ' + arguments
    from pyrag.server.app import create_app

    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    for application in (create_mcp_app, create_app):
        async with (
            served(application) as url,
            aiohttp.ClientSession(headers=accept) as session,
            session.post(url, data=body + "}}") as refused,
        ):
            assert refused.status == 400
            assert says in (await refused.json())["error"]["message"]


async def test_programs_run_over_http_after_reading_their_reference(indexes: dict[str, str]) -> None:
    async with served(config=ServerConfig(indexes=indexes)) as url, Client(url) as client:
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert resources[-1] == "pyrag://reference/programs"
        (reference,) = (await client.read_resource(resources[-1])).contents
        assert "### `retrieve(" in reference.text
        source = "docs = retrieve(what)\nprint(len(docs))\nfinal_answer = {'by': answer('Who founded the mill?', docs)}"
        arguments = {"source": source, "inputs": {"what": "mill"}, "index": "mill"}
        result = (await client.call_tool("run_program", arguments)).structured_content
        assert (result["value"], result["output"]) == ({"by": "Ann"}, "1\n")
        assert [citation["source"] for citation in result["citations"]] == ["mill.md"]
        wrong = await client.call_tool("run_program", {"source": "x = 1\nfinal_answer = anser(x)"})
        assert wrong.is_error
        assert wrong.content[0].text.split("\n") == [
            "line 2: final_answer = anser(x)",
            "NameError: name 'anser' is not defined",
            "Did you mean answer?",
        ]


async def test_pages_of_other_sites_are_refused() -> None:
    async with served() as url, aiohttp.ClientSession() as session:
        for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example:8011"}):
            async with session.post(url, json={}, headers=headers) as refused:
                assert refused.status == 403


class HeldModel:
    """A model server that takes requests and never answers; `gone` is set when a client hangs up."""

    def __init__(self) -> None:
        self.begun, self.gone = asyncio.Event(), asyncio.Event()
        self.spec = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HeldModel]:
        server = await asyncio.start_server(self._hold, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.spec = f"openai:tiny@http://{host}:{port}/v1"
        async with server:
            yield self

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.read(4)) == b"POST":
            self.begun.set()
            await reader.read(-1)
            self.gone.set()
        writer.close()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_cancelled_call_stops_its_model_calls(era: str, way: str, tmp_path: Path) -> None:
    async with (
        HeldModel().running() as model,
        over(way, tmp_path, "--llm", model.spec) as target,
        Client(target, mode=era) as client,
    ):
        asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
        await asyncio.wait_for(model.begun.wait(), 60)
        asking.cancel()
        await asyncio.wait_for(model.gone.wait(), 60)


@asynccontextmanager
async def over(way: str, folder: Path, *options: str) -> AsyncIterator[Any]:
    """Yield what the client connects to: the command itself, or the address that it prints."""
    if way == "stdio":
        yield command(folder, *options)
        return
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "mcp", "--http", "--port", "0", *options, stdout=subprocess.PIPE, env=environment(), cwd=folder
    )
    assert process.stdout
    line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    assert line.startswith("pyrag: MCP at http://127.0.0.1:")
    try:
        yield line.split()[3]
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_sigterm_ends_open_sessions_without_a_traceback(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "mcp", "--http", "--port", "0", env=environment(), cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    url = (await process.stdout.readline()).decode().split()[3]
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(url, data=message("initialize", client, 1)) as reply:
            headers = {"mcp-session-id": reply.headers["mcp-session-id"]}
        async with session.get(url, headers=headers) as stream:  # open until the server ends it
            process.terminate()
            assert await stream.read() == b""
            _, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, errors) == (0, b"")


async def test_a_client_that_hangs_up_ends_process_and_calls(tmp_path: Path) -> None:
    async with HeldModel().running() as model:
        process = await spoken_to(tmp_path, "--llm", model.spec)
        assert process.stdin
        call = {"name": "ask", "arguments": {"question": QUESTION}}
        process.stdin.write(message("tools/call", call, 2))
        await asyncio.wait_for(model.begun.wait(), 60)
        process.stdin.close()
        await asyncio.wait_for(model.gone.wait(), 60)
        assert await process.wait() == 0


async def test_stdout_holds_protocol_and_signals_end_the_process(tmp_path: Path) -> None:
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        process = await spoken_to(tmp_path)
        assert process.stdin
        assert process.stdout
        process.stdin.write(message("tools/call", {"name": "ask", "arguments": {"question": QUESTION}}, 2))
        reply = json.loads(await process.stdout.readline())
        assert (reply["id"], reply["result"]["isError"]) == (2, False)
        process.send_signal(number)
        rest = await process.stdout.read()
        assert (await process.wait(), rest) == (code, b"")


async def spoken_to(folder: Path, *options: str) -> asyncio.subprocess.Process:
    """Start the command and greet it by hand."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "mcp", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), cwd=folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a background job's children ignore
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    process.stdin.write(message("initialize", who, 1))
    assert json.loads(await process.stdout.readline())["result"]["serverInfo"]["name"] == "pyrag"
    process.stdin.write(message("notifications/initialized", {}))
    return process


def message(method: str, params: dict[str, Any], number: int | None = None) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    return json.dumps(body).encode() + b"\n"


def test_a_wrong_index_ends_the_command_in_one_sentence(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "mcp", "--index", "nowhere"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=tmp_path, text=True,
    ) as process:  # fmt: skip
        assert process.stderr
        assert process.stderr.read().startswith("pyrag: there is no index at nowhere: build one with pyrag index")
        assert process.wait() != 0


async def test_messages_from_files_are_read_too(tmp_path: Path) -> None:
    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    (tmp_path / "in").write_bytes(b"not json\n" + message("initialize", who, 1))
    with (tmp_path / "in").open() as given:
        done = await asyncio.to_thread(
            subprocess.run, [*COMMAND, "mcp"], stdin=given, capture_output=True, env=environment(), cwd=tmp_path
        )
    assert done.returncode == 0

    assert [json.loads(line).get("id") for line in done.stdout.splitlines()][-1:] == [1]


@pytest.mark.parametrize(("tools", "reads"), [((), True), (("sql:orders.db",), True), (("orders:place",), False)])
async def test_tools_of_python_may_do_more_than_read(tools: tuple[str, ...], reads: bool) -> None:
    from pyrag.server.mcp.server import ProtocolServer

    async def never() -> None: ...

    server = ProtocolServer(ServerConfig(), never, Settings(tools=tools))
    listed = (await server._list_tools(SimpleNamespace(request=None), None)).tools
    hints = {tool.name: tool.annotations.read_only_hint for tool in listed if tool.annotations}
    assert hints == {"ask": reads, "search": True, "open_passage": True, "run_program": reads}

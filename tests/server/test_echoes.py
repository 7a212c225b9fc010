"""Servers that repeat what they were sent: user, password and query of any address, and the key, are shown nowhere."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from pyrag import PyRAG
from pyrag.errors import PyRAGError
from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag.trace.codec import to_json
from tests.hostile.servers import BEHAVIOURS, hostile
from tests.server.conftest import ModelServer, Run, role_in

QUESTION = "Who is Jed Hoyer?"
KEY = "sk-planted-0123456789abcdef"
USER, PASSWORD, TOKEN = "bobby", "hunter2&more", "t0ken/43+x"
PAIR = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SECRETS = [
    *(USER, PASSWORD, TOKEN, KEY, PAIR, PAIR[:12], KEY[:14], PASSWORD[:8], quote(PASSWORD), quote(TOKEN, safe="")),
    base64.b64encode(TOKEN.encode()).decode(),
]

Echo = Callable[[web.Request], web.Response]


def seen(request: web.Request) -> str:
    """Everything that the client gave away, in several forms."""
    login = request.headers.get("Authorization", "")
    plain = base64.b64decode(login[6:]).decode() if login.startswith("Basic ") else login
    token = request.query.get("token", "")
    forms = [request.path_qs, login, plain, plain[:-2], login[:18], token, quote(token), quote(plain, safe="")]
    return " | ".join([*forms, base64.b64encode(token.encode()).decode(), json.dumps(dict(request.headers))])


ECHOES: dict[str, Echo] = {
    "refusal": lambda request: web.json_response({"error": {"message": seen(request)}}, status=403),
    "text": lambda request: web.Response(text=f"forbidden: {seen(request)}", status=400),
    "failure": lambda request: web.json_response({"detail": [seen(request)]}, status=500),
    "redirect": lambda request: web.Response(status=302, headers={"Location": f"http://x:y@there/?{seen(request)}"}),
    "path": lambda request: web.Response(status=302, headers={"Location": f"http://there/{PASSWORD}/{TOKEN}"}),
    "not JSON": lambda request: web.Response(text=seen(request)),
    "wrong form": lambda request: web.json_response({"result": seen(request), "choices": seen(request)}),
    "escaped": lambda request: web.Response(text="".join(f"\\u{ord(one):04x}" for one in seen(request)), status=401),
    "long": lambda request: web.json_response({"error": "x" * 290 + seen(request)}, status=403),
    "reason": lambda request: web.Response(status=403, reason=f"{PASSWORD} {TOKEN}"),
}


@pytest.fixture
async def echo(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The address of a server that repeats, with secrets in it."""
    behave = ECHOES[request.param]

    async def serve(asked: web.Request) -> web.Response:
        return behave(asked)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield secret_address(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    await runner.cleanup()


def secret_address(url: str) -> str:
    return url.replace("http://", f"http://{USER}:{quote(PASSWORD)}@") + f"?token={quote(TOKEN, safe='')}"


def written_in(folder: Path) -> str:
    """All files of a folder as one text."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return "\n".join(file.read_bytes().decode("utf-8", "replace") for file in files)


def leaked(*texts: str) -> list[str]:
    return [secret for secret in SECRETS for text in texts if secret in text]


@pytest.mark.parametrize("echo", list(ECHOES), indirect=True)
async def test_a_retriever_that_repeats_shows_nothing(echo: str) -> None:
    async with PyRAG(retriever=echo) as rag:
        trace = await rag.aask(QUESTION, keep=True)
    assert trace.error or not trace.answer.known
    assert not leaked(to_json(trace).decode(), repr(trace), repr(rag.settings))


@pytest.mark.parametrize("echo", list(ECHOES), indirect=True)
async def test_a_model_that_repeats_shows_nothing(echo: str) -> None:
    async with PyRAG(f"openai:m@{echo}", answer_llm=f"openai:n@{echo}") as rag:
        trace = await rag.aask(QUESTION, keep=True)
    assert trace.error
    assert not leaked(to_json(trace).decode(), repr(trace), repr(rag.settings))


@pytest.mark.parametrize("echo", list(ECHOES), indirect=True)
async def test_an_embedder_that_repeats_shows_nothing(echo: str) -> None:
    embedder = open_embedder(f"openai:m@{echo}")
    with pytest.raises(PyRAGError) as caught:
        await embedder.embed_queries(["who?"])
    await embedder.aclose()
    assert not leaked(str(caught.value), embedder.name)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_key_as_an_answer_is_struck_out(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stream: bool
) -> None:
    monkeypatch.setenv("PYRAG_API_KEY", KEY)
    server.replies["answer"] = f"<answer>{KEY}</answer> [1]"
    server.replies["plan"] = server.replies["plan"].replace("Who is Jed Hoyer?", f"Who has {KEY}?")
    cache = tmp_path / "replies.sqlite"
    async with PyRAG(f"openai:tiny@{server.url}", cache=str(cache), stream=stream) as rag:
        trace = await rag.aask(QUESTION, keep=True)
    assert server.keys[0] == f"Bearer {KEY}"
    assert {role_in(body) for body in server.bodies} >= {"plan"}
    assert not leaked(to_json(trace).decode())
    assert not leaked(*(json.dumps(body) for body in server.bodies))
    assert not leaked(written_in(tmp_path))


async def test_secrets_in_passages_are_struck_out(server: ModelServer) -> None:
    address = secret_address(server.url.removesuffix("/v1"))
    async with PyRAG(retriever=address) as rag:
        # The model server answers /retrieve with 404: the message names the retriever without its secrets.
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert "retriever http://127.0.0.1" in trace.error.message
    assert not leaked(to_json(trace).decode())


@pytest.mark.slow
@pytest.mark.parametrize("echo", ["refusal", "not JSON"], indirect=True)
async def test_no_command_shows_a_secret(echo: str, pyrag: Run, tmp_path: Path) -> None:
    runs: list[tuple[str, ...]] = [
        ("ask", QUESTION, "--retriever", echo, "--trace", str(tmp_path / "t.json"), "--debug"),
        ("ask", QUESTION, "--llm", f"openai:m@{echo}", "--record", str(tmp_path / "r.jsonl"), "--debug"),
        ("doctor", "--llm", f"openai:m@{echo}", "--retriever", echo),
        ("models", f"openai:@{echo}", "--debug"),
        ("index", str(tmp_path), "--out", str(tmp_path / "ix"), "--embedder", f"openai:m@{echo}"),
    ]
    (tmp_path / "note.txt").write_text("Jed Hoyer is an executive.")
    for run in runs:
        done = await asyncio.to_thread(pyrag, *run)
        assert done.returncode != 0
        assert not leaked(done.stdout, done.stderr), run
    assert not leaked(written_in(tmp_path))


@pytest.mark.parametrize(
    "values",
    [
        {"topk": f"http://{USER}:{PASSWORD}@h/?token={TOKEN}"},
        {"method": f"http://{USER}:{PASSWORD}@h/?token={TOKEN}"},
        {"llm": f"openal:m@http://{USER}:{PASSWORD}@h/?token={TOKEN}"},
        {"retriever": f"qdrant:c@http://{USER}:{PASSWORD}@h:9?token={TOKEN}"},
        {"embedder": f"http://{USER}:{PASSWORD}@h/?token={TOKEN}", "retriever": "qdrant:c@http://h"},
        {"index": f"http://{USER}:{PASSWORD}@h/?token={TOKEN}"},
    ],
)
async def test_wrong_settings_show_no_secret(values: dict[str, Any]) -> None:
    try:
        async with PyRAG(**values) as rag:
            trace = await rag.aask(QUESTION)
            said = to_json(trace).decode() + repr(rag.settings)
    except PyRAGError as error:
        said = str(error)
    assert said
    assert not leaked(said)


def test_tracebacks_show_no_address_of_a_library(pyrag: Run) -> None:
    with hostile(BEHAVIOURS["endless header line"]) as url:
        done = pyrag("models", f"openai:@{secret_address(url)}", "--debug")
    assert "Traceback" in done.stderr
    assert "TransportError: ClientResponseError" in done.stderr
    assert not leaked(done.stdout, done.stderr)

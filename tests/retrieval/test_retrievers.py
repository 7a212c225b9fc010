"""The `/retrieve` client, the retriever in memory, and how a name becomes a retriever."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pyrag.errors import ConfigError, DataError, MalformedReplyError, RetryableServiceError
from pyrag.retrieval import open_retriever
from pyrag.retrieval.http import HttpRetriever
from pyrag.retrieval.index import update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage

from .conftest import Server


def reply(value: Any) -> Any:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(value)

    return handler


async def ask(url: str, topk: int = 5) -> list[Passage]:
    retriever = HttpRetriever(url, timeout=60.0)
    try:
        return await retriever.retrieve("who?", topk)
    finally:
        await retriever.aclose()


@pytest.mark.parametrize("tail", ["", "/", "/retrieve", "/retrieve/", "/retrieve?key=1"])
async def test_speaks_search_r1(server: Server, tail: str) -> None:
    bodies: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        hit = {"document": {"id": "7", "contents": '"Jed Hoyer"\nBorn\nin 1973.'}, "score": 0.5}
        return web.json_response({"result": [[hit]]})

    server.handler = handler
    assert await ask(server.url + tail, 3) == [Passage("7", "Jed Hoyer", "Born\nin 1973.", 0.5, server.url)]
    assert bodies == [{"queries": ["who?"], "topk": 3, "return_scores": True}]
    assert server.requests[0][1] == "/retrieve" + ("?key=1" if "?" in tail else "")


async def test_accepts_documents_without_scores_and_with_title_and_text(server: Server) -> None:
    server.handler = reply(
        {
            "result": [
                [{"id": 1, "title": "T", "text": "x"}, {"contents": "y"}],
            ]
        }
    )
    first, second = await ask(server.url)
    assert first == Passage("1", "T", "x", 0.0, server.url)
    assert (second.title, second.text, len(second.id)) == ("", "y", 16)


async def test_more_than_asked_for_is_cut_and_nothing_is_fine(server: Server) -> None:
    server.handler = reply({"result": [[{"text": str(n)} for n in range(9)]]})
    assert len(await ask(server.url, 2)) == 2
    server.handler = reply({"result": [[]]})
    assert await ask(server.url) == []


async def test_an_empty_query_asks_nobody(dead_url: str) -> None:
    retriever = HttpRetriever(dead_url)
    assert await retriever.retrieve("  ", 5) == await retriever.retrieve("x", 0) == []
    await retriever.aclose()


@pytest.mark.parametrize(
    "value", [{}, [], {"result": []}, {"result": [[], []]}, {"result": [[{"id": 1}]]}, {"result": [[{"document": 3}]]}]
)
async def test_replies_of_another_shape_are_malformed(server: Server, value: Any) -> None:
    server.handler = reply(value)
    with pytest.raises(MalformedReplyError, match=rf"retriever {server.url}/retrieve sent a reply of the wrong form"):
        await ask(server.url)


async def test_a_dead_server_says_what_to_do(dead_url: str) -> None:
    with pytest.raises(RetryableServiceError) as caught:
        await ask(dead_url)
    assert str(caught.value) == (
        f"retriever {dead_url}/retrieve refused the connection in 3 attempts: "
        "start it, or name another with --retriever or an index folder with --index"
    )
    assert caught.value.service == f"retriever {dead_url}/retrieve"


async def test_the_name_of_a_retriever_has_no_credentials() -> None:
    assert HttpRetriever("http://bob:pw@host:8000/retrieve?token=x").name == "http://host:8000"


async def test_two_hundred_questions_at_once(server: Server) -> None:
    async def handler(request: web.Request) -> web.Response:
        query = (await request.json())["queries"][0]
        return web.json_response({"result": [[{"id": query, "text": query}]]})

    server.handler = handler
    retriever = HttpRetriever(server.url)
    found = await asyncio.gather(*(retriever.retrieve(f"q{n}", 1) for n in range(200)))
    assert [passages[0].id for passages in found] == [f"q{n}" for n in range(200)]
    await retriever.aclose()


async def test_in_memory_by_words_and_by_script() -> None:
    one, two = Passage("1", "Paris", "capital of France"), Passage("2", "Rome", "capital of Italy")
    words = InMemoryRetriever([one, two])
    assert [p.id for p in await words.retrieve("Which capital has Italy?", 5)] == ["2", "1"]
    assert [p.id for p in await words.retrieve("capital", 1)] == ["1"]
    assert await words.retrieve("xyz", 5) == await words.retrieve("", 5) == []
    script = InMemoryRetriever({"q": [two, one]}, name="script")
    assert await script.retrieve("q", 1) == [two]
    assert await script.retrieve("r", 1) == []
    assert (script.name, script.queries) == ("script", [("q", 1), ("r", 1)])
    await script.aclose()


async def test_open_retriever(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The zebra has stripes.")
    update_index([tmp_path], tmp_path / "ix")
    for spec in (tmp_path / "ix", str(tmp_path / "ix")):
        retriever = open_retriever(spec)
        assert retriever.name == f"bm25:{tmp_path / 'ix'}"
        assert [p.title for p in await retriever.retrieve("Which animal has a stripe?", 5)] == ["a"]
    client = open_retriever("http://127.0.0.1:1/retrieve", timeout=1.0)
    assert client.name == "http://127.0.0.1:1"
    await client.aclose()
    mine = InMemoryRetriever([])
    assert open_retriever(mine) is mine


@pytest.mark.parametrize(
    ("spec", "error", "says"),
    [
        ("ftp://host", ConfigError, "is not the URL of a retriever: write it like"),
        ("", ConfigError, "is empty: give"),
        (7, ConfigError, "int is not a retriever: give"),
        (None, ConfigError, "NoneType is not a retriever"),
        ("no/such/index", DataError, "there is no index at no/such/index: build one"),
    ],
)
def test_what_is_no_retriever(spec: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        open_retriever(spec)


def test_importing_retrieval_loads_nothing_heavy() -> None:
    modules = "pyrag.retrieval.open, pyrag.retrieval.bm25, pyrag.llm.clients.openai"
    code = f"import sys, json, {modules}; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert not {"tantivy", "aiohttp", "numpy", "msgspec"} & set(loaded)

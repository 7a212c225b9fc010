"""Search engines as retrievers, against stand-ins with the documented forms of their replies."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from pyrag.errors import ConfigError, MalformedReplyError, PermanentServiceError
from pyrag.retrieval.open import is_remote, open_retriever

from .conftest import Server

KEY = "tvly-0123456789"
REPLIES: dict[str, Any] = {
    "searxng": {
        "query": "mill",
        "number_of_results": 2,
        "results": [
            {"url": "http://a", "title": "A &amp; B", "content": "The mill.", "engine": "x", "score": 2.5},
            {"url": "http://b", "title": "B", "content": "", "engine": "x", "score": 1.0},
            {"url": "http://c", "title": "C", "content": "A zoo.", "engine": "x", "score": 0.5},
        ],
        "answers": [],
        "infoboxes": [],
    },
    "tavily": {
        "query": "mill",
        "answer": None,
        "results": [
            {"title": "A & B", "url": "http://a", "content": "The mill.", "score": 2.5, "raw_content": None},
            {"title": "C", "url": "http://c", "content": "A zoo.", "score": 0.5, "raw_content": None},
        ],
        "response_time": 1.67,
    },
    "brave": {
        "type": "search",
        "query": {"original": "mill"},
        "web": {
            "results": [
                {"title": "A & B", "url": "http://a", "description": "The <strong>mill</strong>."},
                {"title": "C", "url": "http://c", "description": "A zoo.", "extra_snippets": ["With a zebra."]},
            ]
        },
    },
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", KEY)
    monkeypatch.setenv("BRAVE_SEARCH_API_KEY", KEY)


def replying(server: Server, value: Any, status: int = 200) -> list[Any]:
    """Let the server reply so; returns the bodies of its requests."""
    bodies: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json() if request.method == "POST" else dict(request.query))
        return web.json_response(value, status=status)

    server.handler = handler
    return bodies


@pytest.mark.parametrize("engine", list(REPLIES))
async def test_snippets_become_passages(engine: str, server: Server) -> None:
    replying(server, REPLIES[engine])
    retriever = open_retriever(f"{engine}:{server.url}")
    first, second = await retriever.retrieve("mill", 5)
    assert (first.id, first.title, first.text, first.source) == ("http://a", "A & B", "The mill.", "http://a")
    assert second.text.startswith("A zoo.")
    assert first.score > second.score
    assert await retriever.retrieve(" ", 5) == []
    await retriever.aclose()


async def test_requests_have_the_documented_form(server: Server) -> None:
    asked = {}
    for engine in REPLIES:
        bodies = replying(server, {})
        retriever = open_retriever(f"{engine}:{server.url}")
        assert await retriever.retrieve("mill & zoo", 50) == []
        asked[engine] = (*server.requests[-1][:2], bodies[-1])
        await retriever.aclose()
    assert asked["searxng"][2] == {"q": "mill & zoo", "format": "json"}
    assert asked["tavily"] == ("POST", "/search", {"query": "mill & zoo", "max_results": 20})
    assert asked["brave"][2] == {"q": "mill & zoo", "count": "20"}
    assert asked["brave"][1].startswith("/web/search?")
    assert server.requests[-2][2]["Authorization"] == f"Bearer {KEY}"
    assert server.requests[-1][2]["X-Subscription-Token"] == KEY


async def test_long_queries_are_cut_to_the_engines_limit(server: Server) -> None:
    bodies = replying(server, REPLIES["brave"])
    retriever = open_retriever(f"brave:{server.url}")
    await retriever.retrieve("word " * 100, 1)
    assert len(bodies[0]["q"].split()) == 50
    await retriever.aclose()


async def test_failures_are_one_sentence_without_the_key(server: Server) -> None:
    retriever = open_retriever(f"tavily:{server.url}")
    replying(server, {"detail": {"error": f"Unauthorized: {KEY}"}}, 401)
    with pytest.raises(PermanentServiceError, match="TAVILY_API_KEY") as refused:
        await retriever.retrieve("mill", 1)
    assert KEY not in str(refused.value)
    replying(server, ["odd"])
    with pytest.raises(MalformedReplyError):
        await retriever.retrieve("mill", 1)
    await retriever.aclose()


def test_keys_and_addresses_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_SEARCH_API_KEY")
    with pytest.raises(ConfigError, match="set BRAVE_SEARCH_API_KEY"):
        open_retriever("brave:")
    with pytest.raises(ConfigError, match="needs the address of an instance"):
        open_retriever("searxng:")
    assert is_remote("tavily:")
    assert open_retriever("tavily:").name == "tavily"

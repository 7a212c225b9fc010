"""Schemas, addresses and the work of the MCP tools, without the package `mcp`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever
from pyrag.retrieval.index import update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.protocol import fetch_passages
from pyrag.server.config import Access, ServerConfig
from pyrag.server.errors import ApiError
from pyrag.server.mcp.addresses import index_uri, passage_uri, read_uri
from pyrag.server.mcp.schemas import (
    TOOLS,
    AskArguments,
    OpenArguments,
    SearchArguments,
    arguments_of,
    object_schema,
)
from pyrag.server.mcp.tools import MAX_SEEN, Tools, answer_text, passages_text
from pyrag.server.service import QuestionService
from pyrag.settings import make_settings
from pyrag.trace.model import Passage

QUESTION = "In which city was the director of The Seventh Seal born?"
ASK, SEARCH, OPEN, RUN = TOOLS
ALL = Access()


@asynccontextmanager
async def opened(config: ServerConfig | None = None, **settings: Any) -> AsyncIterator[Tools]:
    service = QuestionService(make_settings(settings), config or ServerConfig())
    try:
        yield Tools(service)
    finally:
        await service.aclose()


@pytest.fixture
def indexes(tmp_path: Path) -> dict[str, str]:
    for name, text in (("zoo", "A zebra lives in the zoo."), ("mill", "The mill was founded by Ann.")):
        (tmp_path / f"{name}.md").write_text(text)
        update_index([tmp_path / f"{name}.md"], tmp_path / f"ix-{name}")
    return {name: str(tmp_path / f"ix-{name}") for name in ("zoo", "mill")}


def test_every_argument_is_described_and_bounded() -> None:
    for tool in TOOLS:
        schema = tool.input_schema(["zoo", "mill"])
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert all(one["description"] for one in schema["properties"].values())
        assert schema["properties"]["index"]["enum"] == ["zoo", "mill", None]
        text = schema["properties"][schema["required"][0]]
        assert text["minLength"] == 1
        assert text["maxLength"] > 1
    assert SEARCH.input_schema([])["properties"]["topk"]["maximum"] == 50


def test_results_are_objects_at_the_root() -> None:
    for tool in TOOLS:
        schema = object_schema(tool.result)
        assert schema["type"] == "object"
        assert "$ref" not in schema
    citation = object_schema(ASK.result)["$defs"]["CitationResult"]
    assert {"number", "id", "title", "source", "text", "uri"} <= set(citation["required"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "missing required field `query`"),
        ({"query": ""}, "length >= 1 in `query`"),
        ({"query": "x", "topk": 51}, "<= 50 in `topk`"),
        ({"query": "x", "topk": "many"}, "Expected `int`, got `str` in `topk`"),
        ({"query": "x", "where": 1}, "unknown field `where`"),
    ],
)
def test_wrong_arguments_are_named_in_one_sentence(given: Any, says: str) -> None:
    with pytest.raises(ApiError, match="the arguments of search are wrong") as refused:
        arguments_of(SEARCH, given)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("key", ["a", "docs/a b.md#3", "ü/passages/x?y=%20"])
def test_addresses_keep_any_id(key: str) -> None:
    assert read_uri(passage_uri("my.notes", key)) == ("my.notes", key)
    assert read_uri(index_uri("zoo")) == ("zoo", None)
    with pytest.raises(ApiError, match="must open with pyrag://"):
        read_uri("file:///etc/passwd")


async def test_ask_reports_steps_and_cites_passages_to_open() -> None:
    said: list[tuple[int, str]] = []

    async def report(number: int, line: str) -> None:
        said.append((number, line))

    async with opened() as tools:
        result = await tools.ask(AskArguments(question=QUESTION), ALL, report)
        assert (result.answer, result.known, result.index) == ("Uppsala", True, "default")
        assert [number for number, _ in said] == list(range(1, len(said) + 1))
        assert any(line.startswith("retrieve: ") for _, line in said)
        cited = result.citations[0]
        found = await tools.open_passage(OpenArguments(id=cited.id), ALL)
        assert (found.text, found.uri) == (cited.text, cited.uri)
        assert await tools.service.store.get(result.trace_id) is not None
        text = answer_text(result)
        assert text.startswith("Uppsala [1]")
        assert f"[1] {cited.title} (id {cited.id}" in text


async def test_search_returns_scored_passages_of_the_named_index(indexes: dict[str, str]) -> None:
    async with opened(ServerConfig(indexes=indexes)) as tools:
        found = await tools.search(SearchArguments(query="mill", index="mill"), ALL)
        assert [one.text for one in found.passages] == ["The mill was founded by Ann."]
        assert found.passages[0].score
        assert "mill.md" in passages_text(found.passages)
        nothing = await tools.search(SearchArguments(query="mill", index="zoo"), ALL)
        assert passages_text(nothing.passages) == "No passage matches: try other words."


async def test_callers_reach_only_their_indexes(indexes: dict[str, str]) -> None:
    bound = Access(frozenset({"zoo"}))
    async with opened(ServerConfig(indexes=indexes)) as tools:
        found = await tools.search(SearchArguments(query="zebra"), bound)
        assert found.index == "zoo"
        key = (await tools.search(SearchArguments(query="mill", index="mill"), ALL)).passages[0].id
        for refused in (SearchArguments(query="mill", index="mill"), OpenArguments(id=key, index="mill")):
            call = tools.search if isinstance(refused, SearchArguments) else tools.open_passage
            with pytest.raises(ApiError, match="there is no index 'mill': choose from zoo"):
                await call(refused, bound)  # type: ignore[arg-type]
        with pytest.raises(ApiError, match="there is no passage"):
            await tools.open_passage(OpenArguments(id=key), bound)
        with pytest.raises(ApiError, match="there is no index"):
            tools.about("mill", bound)


async def test_an_index_is_described_without_paths(indexes: dict[str, str], tmp_path: Path) -> None:
    async with opened(ServerConfig(indexes=indexes)) as tools:
        described = tools.about("zoo", ALL)
        assert (described["passages"], described["files"], described["kind"]) == (1, 1, "bm25")
        assert str(tmp_path) not in str(described)
    async with opened() as tools:
        assert tools.about("default", ALL)["passages"] == 349


async def test_passages_of_a_search_api_open_while_remembered() -> None:
    async with opened() as tools:
        passages = [Passage(f"p{number}", "", f"word {number}") for number in range(MAX_SEEN + 1)]
        tools.service.indexes["default"].engines.retriever = InMemoryRetriever(passages)
        await tools.search(SearchArguments(query="word 7", topk=1), ALL)
        assert (await tools.open_passage(OpenArguments(id="p7"), ALL)).text == "word 7"
        with pytest.raises(ApiError, match="those of recent searches only"):
            await tools.open_passage(OpenArguments(id="p8"), ALL)


async def test_a_cancelled_caller_cancels_its_question() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    class Held:
        name = "held"

        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
            return []

        async def aclose(self) -> None:
            return

    async def report(number: int, line: str) -> None:
        return

    async with opened() as tools:
        tools.service.indexes["default"].engines.retriever = Held()
        asking = asyncio.create_task(tools.ask(AskArguments(question=QUESTION), ALL, report))
        await asyncio.wait_for(begun.wait(), 60)
        asking.cancel()
        await asyncio.wait_for(left.wait(), 60)
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert tools.service.gauges["pyrag_questions_waiting"] == 0


async def test_lookup_passes_through_hybrids_to_an_index(indexes: dict[str, str]) -> None:
    from pyrag.retrieval.open import open_retriever

    zoo = open_retriever(indexes["zoo"])
    memory = InMemoryRetriever([Passage("a", "", "a")])
    assert await fetch_passages(memory, ["a"]) is None
    (found,) = await zoo.retrieve("zebra", 1)
    for retriever in (zoo, HybridRetriever({"m": WeightedRetriever(memory), "z": WeightedRetriever(zoo)})):
        assert [one.text for one in await fetch_passages(retriever, [found.id, "none"]) or ()] == [found.text]

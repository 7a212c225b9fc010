"""A caller's own model, answerer and retriever: what they cannot do, how they fail, and use after closing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Reading
from pyrag.errors import FilterError, UsageError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.methods.hera.experience.library import Library
from pyrag.methods.hera.topology import Characterisation
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.protocol import OwnRetriever, check_filters
from pyrag.retrieval.rerank import RerankingRetriever
from pyrag.trace.model import Passage
from tests.runtime.conftest import World

FILTERED = """```python
docs = retrieve("Who wrote it?", where="year >= 2020")
final_answer = answer("Who wrote it?", docs)
```"""
PLAIN = FILTERED.replace(', where="year >= 2020"', "")


class Catalogue:
    """Takes no filter."""

    name = "catalogue"

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        return [Passage("a", "Ada", "Ada wrote it.")]


class Late:
    name = "late"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        raise TimeoutError

    async def aclose(self) -> None:
        return


class LateAnswerer:
    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        raise TimeoutError("no reply")


@pytest.mark.parametrize("rerank", [None, "reader"])
async def test_a_filter_that_nothing_takes_goes_back(rerank: str | None) -> None:
    said: list[str] = []

    def script(messages: Sequence[Message]) -> str:
        system, user = messages[0].content, messages[-1].content
        if "Decompose Agent" in system:
            return '["Who wrote it?"]'
        if "Plan Agent" in system:
            said.append(user)
            return PLAIN if "takes no filter" in user else FILTERED
        return "<answer>Ada</answer> [1]"

    async with PyRAG(ScriptedChat(script), retriever=Catalogue(), rerank=rerank, stream=False) as rag:
        trace = await rag.aask("Who wrote it?")
    assert (trace.answer.text, trace.error) == ("Ada", None)
    assert "the retriever catalogue takes no filter" in said[1]


def test_wrappers_filter_as_far_as_what_they_wrap() -> None:
    inner: Any = OwnRetriever(Catalogue())

    async def score(query: str, passages: Sequence[Passage]) -> list[float]:
        return [1.0 for _ in passages]

    def around(one: Any) -> list[Any]:
        return [
            RerankingRetriever(one, score),
            HybridRetriever({"a": WeightedRetriever(InMemoryRetriever([])), "b": WeightedRetriever(one)}),
            FollowingRetriever(lambda: one, None),
            RerankingRetriever(FollowingRetriever(lambda: one, None), score),
        ]

    for one in [inner, *around(inner)]:
        with pytest.raises(FilterError, match="the retriever catalogue takes no filter"):
            check_filters(one)
    for one in around(InMemoryRetriever([])):
        check_filters(one)


@pytest.mark.parametrize("retriever", ["other-index", ["other-index"], Catalogue()])
@pytest.mark.parametrize("setting", [{"index": "my-index"}, {"sources": ("my-index", "third-index")}])
def test_two_places_of_passages_are_refused(retriever: Any, setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"takes {next(iter(setting))} or retriever, not both"):
        PyRAG(retriever=retriever, **setting)


@pytest.mark.parametrize("deadline", [None, 60.0])
async def test_an_own_timeout_is_no_deadline(deadline: float | None) -> None:
    async with PyRAG(Late(), retriever=Catalogue(), deadline=deadline) as rag:
        trace = await rag.aask("Who wrote it?")
    assert trace.error is not None
    assert trace.error.kind == "service"
    assert "the model late failed (TimeoutError)" in trace.error.message
    model = ScriptedChat({"decompose": '["Who?"]', "plan": PLAIN})
    async with PyRAG(model, retriever=Catalogue(), answerer=LateAnswerer(), deadline=deadline) as rag:
        trace = await rag.aask("Who wrote it?")
    assert trace.error is not None
    assert (trace.error.kind, "TimeoutError: no reply" in trace.error.message) == ("service", True)


async def test_a_rewrite_keeps_every_filter_of_the_program(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    class Years:
        name = "years"

        async def retrieve(self, query: str, topk: int, where: Any = None) -> list[Passage]:
            asked.append((query, str(where)))
            year = 2020 if "2020" in str(where) else 2010
            return [Passage(f"{query}-{year}", "t", f"{query} in {year}", metadata={"year": year})]

    program = """```python
docs = retrieve("Who?", where="year = 2020") + retrieve("Who?", where="year = 2010")
final_answer = answer("Who?", docs)
```"""
    model = ScriptedChat(
        {
            "decompose": '["Who?"]',
            "plan": program,
            "rewrite": '{"strategy": "x", "query": "someone else entirely", "keywords": []}',
            "answer": "<answer>unknown</answer>",
        }
    )
    async with PyRAG(model, retriever=Years(), recovery="rewrite", stream=False) as rag:
        trace = await rag.aask("Who?")
    assert trace.error is None
    rewritten = {where for query, where in asked if query == "someone else entirely"}
    assert rewritten == {"year = 2020", "year = 2010"}


async def test_warnings_survive_streaming() -> None:
    ahead: list[bool] = []

    class Odd(Catalogue):
        async def retrieve(self, query: str, topk: int) -> list[Any]:
            ahead.append(planning.is_set())
            return [Passage("a", "Ada", "Ada wrote it."), {"no": "text"}]

    class Streaming(ScriptedChat):
        async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Any) -> Reply:
            planning.set()
            await asyncio.sleep(0.05)  # the search for the sub-query begins meanwhile
            planning.clear()
            reply = await self.complete(messages, sampling)
            for line in reply.text.splitlines(keepends=True):
                on_text(line)
            return reply

    script = {
        "decompose": '["Who wrote Alpha?"]',
        "plan": PLAIN.replace("it?", "Alpha?"),
        "answer": "<answer>Ada</answer> [1]",
    }
    planning = asyncio.Event()
    for stream in (False, True):
        async with PyRAG(Streaming(script), retriever=Odd(), stream=stream) as rag:
            trace = await rag.aask("Who wrote Alpha?")
        assert trace.answer.text == "Ada"
        assert sum("a document without a text" in warning for warning in trace.warnings) == 1
    assert ahead == [False, True]


@pytest.mark.parametrize("method", ["hera", "pyrag"])
def test_an_object_can_be_used_after_closing(tmp_path: Path, method: str) -> None:
    library = tmp_path / "library.sqlite"
    with Library.open(library, write=True) as opened, opened.update() as draft:
        draft.add(Characterisation("bridge", "medium", "date"), "Look for the director first.")
    rag = PyRAG(method=method, experience=str(library) if method == "hera" else None)
    for _ in range(3):
        trace = rag.ask("Who directed The Seventh Seal?")
        assert (trace.error, trace.answer.text) == (None, "Ingmar Bergman")
        rag.close()

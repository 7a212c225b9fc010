"""Retrievers of other frameworks, told by their methods."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError
from pyrag.retrieval.protocol import passages_of
from pyrag.retrieval.remote.frameworks import adapted
from pyrag.trace.model import Passage

TEXT = "The mill was founded by Ann."


class LangChainLike:
    async def ainvoke(self, query: str) -> list[Any]:
        return [SimpleNamespace(id="m", page_content=TEXT, metadata={"title": "Mill", "source": "m.md", "year": 1999})]


class LlamaIndexLike:
    def retrieve(self, query: str) -> list[Any]:
        raise AssertionError("the asynchronous method is there")

    async def aretrieve(self, query: str) -> list[Any]:
        node = SimpleNamespace(node_id="m", metadata={"title": "Mill", "source": "m.md"}, get_content=lambda: TEXT)
        return [SimpleNamespace(node=node, score=0.5)]


class HaystackLike:
    __haystack_input__ = None

    def run(self, query: str, top_k: int) -> dict[str, Any]:
        meta = {"title": "Mill", "source": "m.md"}
        return {"documents": [SimpleNamespace(id="m", content=TEXT, meta=meta, score=0.5)] * top_k}


class EmbeddingRetriever:
    __haystack_input__ = None

    def run(self, query_embedding: list[float]) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("kind", [LangChainLike, LlamaIndexLike, HaystackLike])
async def test_their_documents_become_passages(kind: type) -> None:
    retriever = adapted(kind())
    (found,) = await passages_of(retriever, "mill", 1)
    assert (found.id, found.title, found.text, found.source) == ("m", "Mill", TEXT, "m.md")
    assert found.score > 0
    assert retriever.name == kind.__name__


def test_questions_are_answered_over_them() -> None:
    with PyRAG(retriever=LangChainLike()) as rag:
        trace = rag.ask("Who founded the mill?")
    assert (trace.answer.text, trace.retriever) == ("Ann", "LangChainLike")
    assert trace.passages["m"].metadata["year"] == 1999


def test_other_objects_stay_as_they_are() -> None:
    class Ours:
        name = "ours"

        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            return []

        async def aretrieve(self, query: str) -> list[Passage]:
            raise AssertionError("ours comes first")

    own = Ours()
    assert adapted(own) is own
    assert adapted(3) == 3
    with pytest.raises(ConfigError, match="EmbeddingRetriever takes no text"):
        adapted(EmbeddingRetriever())
    with pytest.raises(ConfigError, match="is not a retriever"):
        PyRAG(retriever=object())  # type: ignore[arg-type]

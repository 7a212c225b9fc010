"""pyrag inside other frameworks and their retrievers inside pyrag, with the real packages: `make test-integrations`."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.trace.model import Trace

pytestmark = pytest.mark.filterwarnings("default")  # the libraries' own deprecations

QUESTION = "In which city was the director of The Seventh Seal born?"
TEXTS = {
    "mill": "The mill was founded by Ann.",
    "zoo": "A zebra lives in the zoo.",
}


def asked(retriever: object) -> Trace:
    with PyRAG(retriever=retriever) as rag:  # type: ignore[arg-type]
        trace = rag.ask("Who founded the mill?")
    assert (trace.error, trace.answer.text) == (None, "Ann")
    return trace


def test_a_langchain_retriever_is_searched() -> None:
    core = pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Notes(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            return [Document(id=key, page_content=text, metadata={"source": key}) for key, text in TEXTS.items()]

    assert core
    trace = asked(Notes())
    assert (trace.retriever, trace.passages["mill"].source) == ("Notes", "mill")


def test_a_llama_index_retriever_is_searched() -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    class Notes(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            nodes = [TextNode(id_=key, text=text, metadata={"title": key}) for key, text in TEXTS.items()]
            return [NodeWithScore(node=node, score=1 / place) for place, node in enumerate(nodes, 1)]

    assert asked(Notes()).passages["mill"].title == "mill"


def test_a_haystack_retriever_is_searched() -> None:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents([Document(id=key, content=text, meta={"source": key}) for key, text in TEXTS.items()])
    trace = asked(InMemoryBM25Retriever(store))
    assert (trace.retriever, trace.passages["mill"].source) == ("InMemoryBM25Retriever", "mill")


async def test_pyrag_is_a_langchain_retriever_and_runnable() -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from pyrag.integrations.langchain import PyRAGRetriever, answering

    async with PyRAG() as rag:
        cited = await PyRAGRetriever(rag=rag).ainvoke(QUESTION)
        assert cited[0].metadata["answer"] == "Uppsala"
        assert [one.metadata["number"] for one in cited] == list(range(1, len(cited) + 1))
        assert PyRAGRetriever(rag=rag).invoke(QUESTION) == cited
        found = await answering(rag).ainvoke(QUESTION)
        assert (found["answer"], found["known"], found["documents"]) == ("Uppsala", True, cited)


def test_pyrag_is_a_dspy_module() -> None:
    dspy = pytest.importorskip("dspy", reason="dspy is not installed")
    from pyrag.integrations.dspy import PyRAGModule

    with PyRAG() as rag:
        module = PyRAGModule(rag)
        assert isinstance(module, dspy.Module)
        found = module(question=QUESTION)
    assert (found.answer, found.known, found.trace.question) == ("Uppsala", True, QUESTION)
    assert any("Uppsala" in text for text in found.context)

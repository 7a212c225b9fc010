"""LangChain: pyrag's cited passages as a retriever, and its answers as a runnable. Needs `langchain-core`.

chain = PyRAGRetriever(rag=PyRAG()) | prompt | model           # the evidence behind an answer of several hops
answers = answering(PyRAG()).batch(["Who wrote Dracula?"])     # the answers themselves
"""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda

from pyrag.api import PyRAG
from pyrag.errors import PyRAGError
from pyrag.trace.model import Trace


class PyRAGRetriever(BaseRetriever):
    """Retriever that answers a question and returns the cited passages, in the order of their numbers.

    Attributes:
        rag: The `PyRAG` that answers.
    """

    rag: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return _documents(self.rag.ask(query))

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return _documents(await self.rag.aask(query))


def answering(rag: PyRAG) -> Runnable[str, dict[str, Any]]:
    """Return a runnable from a question to `{"answer", "known", "weak", "remark", "documents"}`.

    Raises:
        PyRAGError: Answering failed. This is raised when the runnable runs.
    """

    def ask(question: str) -> dict[str, Any]:
        return _answer(rag.ask(question))

    async def aask(question: str) -> dict[str, Any]:
        return _answer(await rag.aask(question))

    return RunnableLambda(ask, afunc=aask, name="pyrag")


def _answer(trace: Trace) -> dict[str, Any]:
    verdict = {"known": trace.answer.known, "weak": trace.weak, "remark": trace.remark}
    return {"answer": trace.answer.text, **verdict, "documents": _documents(trace)}


def _documents(trace: Trace) -> list[Document]:
    if trace.error is not None:
        raise PyRAGError(trace.error.message)
    documents = []
    for citation in trace.citations:
        passage = trace.passages[citation.passage]
        known = {
            "title": passage.title,
            "source": passage.source,
            "number": citation.number,
            "answer": trace.answer.text,
        }
        documents.append(Document(id=passage.id, page_content=passage.text, metadata=dict(passage.metadata) | known))
    return documents

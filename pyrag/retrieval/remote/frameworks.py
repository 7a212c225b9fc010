"""Retrievers for LangChain, LlamaIndex and Haystack, recognised by their methods without importing these packages.

PyRAG(retriever=vector_store.as_retriever())          # LangChain: ainvoke(query) -> documents with page_content
PyRAG(retriever=index.as_retriever())                 # LlamaIndex: aretrieve(query) -> nodes with scores
PyRAG(retriever=InMemoryBM25Retriever(store))         # Haystack: run(query=…, top_k=…) -> {"documents": […]}

LangChain's and LlamaIndex's retrievers have a fixed number of results, which pyrag can reduce but not increase.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pyrag._io.threads import in_thread
from pyrag.errors import ConfigError
from pyrag.retrieval.remote.hits import fields_of_hit, ranked


class FrameworkRetriever:
    """Retriever that wraps an object of another framework. The caller checks the results.

    Args:
        inner: Object of the framework.
        search: Function that searches the object with a query and a number.
        fields: Function that returns a result as a mapping with `text`, `title`, `id`, `source` and `score`.
    """

    def __init__(
        self, inner: Any, search: Callable[[str, int], Any], fields: Callable[[Any], dict[str, Any] | None]
    ) -> None:
        self._inner, self._search, self._fields = inner, search, fields

    @property
    def name(self) -> str:
        return type(self._inner).__name__

    async def retrieve(self, query: str, topk: int) -> list[Any]:
        """Return the results as mappings.

        Args:
            query: Text to search for.
            topk: Maximum number of results.
        """
        results = self._search(query, topk)
        results = await results if inspect.isawaitable(results) else results
        return ranked([self._fields(result) or result for result in list(results)[:topk]])


def adapted(retriever: Any) -> Any:
    """Wrap a retriever of another framework; return any other object unchanged.

    Raises:
        ConfigError: The object is a retriever of Haystack that expects embeddings instead of text.
    """
    if _is_ours(retriever):
        return retriever
    if callable(getattr(retriever, "aretrieve", None)):
        return FrameworkRetriever(retriever, lambda query, _: retriever.aretrieve(query), _of_llama_index)
    if callable(getattr(retriever, "ainvoke", None)):
        return FrameworkRetriever(retriever, lambda query, _: retriever.ainvoke(query), _of_langchain)
    if callable(getattr(retriever, "run", None)) and hasattr(retriever, "__haystack_input__"):
        return _of_haystack(retriever)
    return retriever


def _is_ours(retriever: Any) -> bool:
    """Return True for an object with `retrieve(query, topk)`; LlamaIndex's `retrieve` takes only the query."""
    try:
        parameters = inspect.signature(retriever.retrieve).parameters.values()
    except (AttributeError, TypeError, ValueError):
        return callable(getattr(retriever, "retrieve", None)) and not hasattr(retriever, "aretrieve")
    return len(parameters) > 1 or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)


def _of_haystack(retriever: Any) -> FrameworkRetriever:
    if "query" not in inspect.signature(retriever.run).parameters:
        name = type(retriever).__name__
        raise ConfigError(f"the retriever {name} takes no text: give one that does, such as a BM25 retriever")

    async def search(query: str, topk: int) -> Any:
        warm_up = getattr(retriever, "warm_up", None)
        if callable(warm_up):
            await in_thread(warm_up)
        reply = await in_thread(retriever.run, query=query, top_k=topk)
        return reply["documents"]

    return FrameworkRetriever(retriever, search, _of_haystack_document)


def _of_langchain(document: Any) -> dict[str, Any] | None:
    return _mapped(document, getattr(document, "page_content", None), getattr(document, "metadata", None))


def _of_haystack_document(document: Any) -> dict[str, Any] | None:
    return _mapped(document, getattr(document, "content", None), getattr(document, "meta", None))


def _of_llama_index(result: Any) -> dict[str, Any] | None:
    node = getattr(result, "node", result)
    get_content = getattr(node, "get_content", None)
    fields = _mapped(node, get_content() if callable(get_content) else None, getattr(node, "metadata", None))
    score = getattr(result, "score", None)
    return fields and fields | {"id": getattr(node, "node_id", None), "score": score}


def _mapped(document: Any, text: Any, metadata: Any) -> dict[str, Any] | None:
    """Return a document's fields, filled in from its metadata; None if it has no text."""
    if not isinstance(text, str):
        return None
    known = metadata if isinstance(metadata, dict) else {}
    own = {"text": text, "id": getattr(document, "id", None), "score": getattr(document, "score", None)}
    fields: dict[str, Any] = fields_of_hit(known | {key: value for key, value in own.items() if value is not None})
    return fields | {"metadata": known}

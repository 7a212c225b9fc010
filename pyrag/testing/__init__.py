"""Helpers for tests of code that uses or extends pyrag: a scripted model, a retriever, a small corpus, and checks.

The checks verify that your own retriever, its catalogue, model client, store or tool meets its protocol:

    async def test_catalogue_is_a_retriever() -> None:
        case = RetrieverCase(Catalogue(), query="grain mill", finds="mill-1")
        await assert_all(RETRIEVER_CHECKS, case)

Each check is an asynchronous function that raises `AssertionError` with one sentence. `python -m pyrag.testing` runs
the checks without pytest. No code that answers questions imports this package.
"""

from __future__ import annotations

from pyrag.llm.clients.scripted import ScriptedChat as ScriptedModel
from pyrag.retrieval.bundled import bundled_passages
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.testing.catalogues import CATALOGUE_CHECKS, CatalogueCase
from pyrag.testing.checks import CheckResult, assert_all, findings
from pyrag.testing.models import MODEL_CHECKS, ModelCase
from pyrag.testing.retrievers import RETRIEVER_CHECKS, RetrieverCase
from pyrag.testing.stores import STORE_CHECKS, PassageStore, StoreCase
from pyrag.testing.tools import TOOL_CHECKS, ToolCase

__all__ = [
    "CATALOGUE_CHECKS",
    "MODEL_CHECKS",
    "RETRIEVER_CHECKS",
    "STORE_CHECKS",
    "TOOL_CHECKS",
    "CatalogueCase",
    "CheckResult",
    "InMemoryRetriever",
    "ModelCase",
    "PassageStore",
    "RetrieverCase",
    "ScriptedModel",
    "StoreCase",
    "ToolCase",
    "assert_all",
    "bundled_passages",
    "findings",
]

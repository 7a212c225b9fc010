"""Protocols and base classes for your own parts: methods, engines, retrievers, tools, stores and document readers.

A part is passed to `PyRAG` as an object, or registered by an entry point of its package; `docs/extending.md` has one
example of each kind. Each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrag.agents.engine import Engine
    from pyrag.agents.goals.goal import Goal
    from pyrag.agents.goals.rules import EvidenceReader, QuestionReading, QuestionRules, RuleEngine
    from pyrag.agents.protocol import (
        Agents,
        Answerer,
        Decomposer,
        Decomposition,
        FollowUpAgent,
        Plan,
        Planner,
        Reading,
        Rewriter,
        Rewritten,
        RoleEngines,
        Standalone,
        Writer,
        Written,
    )
    from pyrag.episode.episode import Episode
    from pyrag.episode.flow.policy import DependentCall
    from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
    from pyrag.methods.agent_counts import AgentCounts
    from pyrag.methods.method import Method
    from pyrag.methods.program_result import Result
    from pyrag.methods.step_recorder import StepRecorder
    from pyrag.retrieval.catalogue.protocol import Catalogue, CatalogueDocument
    from pyrag.retrieval.documents.protocol import DocumentReader, DocumentRecord
    from pyrag.retrieval.embedders.embedding import open_embedder
    from pyrag.retrieval.embedders.fingerprint import Fingerprint
    from pyrag.retrieval.embedders.protocol import Embedder
    from pyrag.retrieval.filters.tree import Filter
    from pyrag.retrieval.filters.verdict import FilterVerdict
    from pyrag.retrieval.protocol import FilterJudge, PassageLookup, Retriever
    from pyrag.retrieval.stores.pgvector import PgvectorStore
    from pyrag.retrieval.stores.qdrant import QdrantStore
    from pyrag.retrieval.stores.store import Store, StoreRetriever
    from pyrag.tools.sql import sql_tool
    from pyrag.tools.table import table_tool
    from pyrag.tools.tool import Sourced, Tool, ToolError, tool

__all__ = [
    "AgentCounts",
    "Agents",
    "Answerer",
    "Catalogue",
    "CatalogueDocument",
    "ChatModel",
    "Decomposer",
    "Decomposition",
    "DependentCall",
    "DocumentReader",
    "DocumentRecord",
    "Embedder",
    "Engine",
    "Episode",
    "EvidenceReader",
    "Filter",
    "FilterJudge",
    "FilterVerdict",
    "Fingerprint",
    "FollowUpAgent",
    "Goal",
    "Message",
    "Method",
    "PassageLookup",
    "PgvectorStore",
    "Plan",
    "Planner",
    "QdrantStore",
    "QuestionReading",
    "QuestionRules",
    "Reading",
    "Reply",
    "Result",
    "Retriever",
    "Rewriter",
    "Rewritten",
    "RoleEngines",
    "RuleEngine",
    "Sampling",
    "Sourced",
    "Standalone",
    "StepRecorder",
    "Store",
    "StoreRetriever",
    "Tool",
    "ToolError",
    "Writer",
    "Written",
    "open_embedder",
    "sql_tool",
    "table_tool",
    "tool",
]

_MODULES = {
    "pyrag.agents.engine": ("Engine",),
    "pyrag.agents.goals.goal": ("Goal",),
    "pyrag.agents.goals.rules": (
        "EvidenceReader",
        "QuestionReading",
        "QuestionRules",
        "RuleEngine",
    ),
    "pyrag.agents.protocol": (
        "Agents",
        "Answerer",
        "Decomposer",
        "Decomposition",
        "FollowUpAgent",
        "Plan",
        "Planner",
        "Reading",
        "Rewriter",
        "Rewritten",
        "RoleEngines",
        "Standalone",
        "Writer",
        "Written",
    ),
    "pyrag.episode.episode": ("Episode",),
    "pyrag.episode.flow.policy": ("DependentCall",),
    "pyrag.llm.protocol": (
        "ChatModel",
        "Message",
        "Reply",
        "Sampling",
    ),
    "pyrag.methods.agent_counts": ("AgentCounts",),
    "pyrag.methods.method": ("Method",),
    "pyrag.methods.program_result": ("Result",),
    "pyrag.methods.step_recorder": ("StepRecorder",),
    "pyrag.retrieval.catalogue.protocol": ("Catalogue", "CatalogueDocument"),
    "pyrag.retrieval.documents.protocol": (
        "DocumentReader",
        "DocumentRecord",
    ),
    "pyrag.retrieval.embedders.embedding": ("open_embedder",),
    "pyrag.retrieval.embedders.fingerprint": ("Fingerprint",),
    "pyrag.retrieval.embedders.protocol": ("Embedder",),
    "pyrag.retrieval.filters.tree": ("Filter",),
    "pyrag.retrieval.filters.verdict": ("FilterVerdict",),
    "pyrag.retrieval.protocol": (
        "FilterJudge",
        "PassageLookup",
        "Retriever",
    ),
    "pyrag.retrieval.stores.pgvector": ("PgvectorStore",),
    "pyrag.retrieval.stores.qdrant": ("QdrantStore",),
    "pyrag.retrieval.stores.store": (
        "Store",
        "StoreRetriever",
    ),
    "pyrag.tools.sql": ("sql_tool",),
    "pyrag.tools.table": ("table_tool",),
    "pyrag.tools.tool": (
        "Sourced",
        "Tool",
        "ToolError",
        "tool",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Protocols and base classes for parts of your own: methods, engines, retrievers, tools, stores and document readers.

A part is passed to `PyRAG` as an object, or registered by an entry point of its package; `docs/extending.md` has one
example of each kind. Importing this module imports none of them; each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrag.agents.engine import Engine
    from pyrag.agents.protocol import Agents, Answerer, Decomposer, Planner, Reading, Rewriter, Writer
    from pyrag.episode.episode import Episode
    from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
    from pyrag.methods.method import Method
    from pyrag.methods.program_result import Result
    from pyrag.methods.step_recorder import StepRecorder
    from pyrag.retrieval.filters.tree import Filter
    from pyrag.retrieval.protocol import Retriever
    from pyrag.tools.tool import Sourced, Tool, ToolError, tool

__all__ = [
    "Agents",
    "Answerer",
    "ChatModel",
    "Decomposer",
    "Engine",
    "Episode",
    "Filter",
    "Message",
    "Method",
    "Planner",
    "Reading",
    "Reply",
    "Result",
    "Retriever",
    "Rewriter",
    "Sampling",
    "Sourced",
    "StepRecorder",
    "Tool",
    "ToolError",
    "Writer",
    "tool",
]

_MODULES = {
    "pyrag.agents.engine": ("Engine",),
    "pyrag.agents.protocol": ("Agents", "Answerer", "Decomposer", "Planner", "Reading", "Rewriter", "Writer"),
    "pyrag.episode.episode": ("Episode",),
    "pyrag.llm.protocol": ("ChatModel", "Message", "Reply", "Sampling"),
    "pyrag.methods.method": ("Method",),
    "pyrag.methods.program_result": ("Result",),
    "pyrag.methods.step_recorder": ("StepRecorder",),
    "pyrag.retrieval.filters.tree": ("Filter",),
    "pyrag.retrieval.protocol": ("Retriever",),
    "pyrag.tools.tool": ("Sourced", "Tool", "ToolError", "tool"),
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

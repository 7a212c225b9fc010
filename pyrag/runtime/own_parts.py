"""Objects that callers of the Python interface pass in place of settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrag.errors import UsageError
from pyrag.retrieval.protocol import Retriever

if TYPE_CHECKING:
    from pyrag.agents.protocol import Answerer
    from pyrag.llm.protocol import ChatModel


@dataclass(frozen=True, slots=True)
class OwnParts:
    """Objects of the caller that replace, or add to, the parts that settings name."""

    retriever: Retriever | None = None
    tools: tuple[Callable[..., Any], ...] = ()
    llm: ChatModel | None = None
    answerer: Answerer | None = None


def functions_and_specs(
    tools: Sequence[Callable[..., Any] | str],
) -> tuple[tuple[Callable[..., Any], ...], tuple[str, ...]]:
    """Return the caller's tools as functions and as specs in the form of the command line."""
    if isinstance(tools, str) or callable(tools):
        raise UsageError(f"tools is a list, not {tools!r}: write tools=[…]")
    functions = tuple(tool for tool in tools if not isinstance(tool, str))
    return functions, tuple(tool for tool in tools if isinstance(tool, str))

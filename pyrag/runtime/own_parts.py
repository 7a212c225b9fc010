"""Objects of the caller that replace parts named by settings, and settings made from the arguments of `PyRAG`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyrag.errors import ConfigError, UsageError
from pyrag.retrieval.open import is_remote
from pyrag.retrieval.protocol import Retriever
from pyrag.settings import Settings, make_settings

if TYPE_CHECKING:
    from pyrag.agents.protocol import Answerer
    from pyrag.episode.flow.policy import Confirm
    from pyrag.llm.protocol import ChatModel


@dataclass(frozen=True, slots=True)
class OwnParts:
    """Objects of the caller that replace, or add to, the parts that settings name."""

    retriever: Retriever | None = None
    tools: tuple[Callable[..., Any], ...] = ()
    llm: ChatModel | None = None
    answerer: Answerer | None = None
    confirm: Confirm | None = None


def functions_and_specs(
    tools: Sequence[Callable[..., Any] | str],
) -> tuple[tuple[Callable[..., Any], ...], tuple[str, ...]]:
    """Split the caller's tools into functions and command-line specs."""
    if isinstance(tools, str) or callable(tools):
        raise UsageError(f"tools is a list, not {tools!r}: write tools=[…]")
    functions = tuple(tool for tool in tools if not isinstance(tool, str))
    return functions, tuple(tool for tool in tools if isinstance(tool, str))


def parts_of(llm: str | ChatModel, own: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[Settings, OwnParts]:
    """Return the settings and the caller's objects from the arguments of `PyRAG`.

    Args:
        llm: Spec of an engine, or a chat model.
        own: The arguments `retriever`, `answerer`, `tools`, `where` and `confirm`.
        values: Settings.

    Raises:
        ConfigError: A setting is unknown or invalid, or `confirm` cannot be called.
        UsageError: `tools` is not a list, or passages come from both `retriever` and `index` or `sources`.
    """
    functions, specs = functions_and_specs(own["tools"])
    model = None
    if not isinstance(llm, str):
        from pyrag.runtime.role_agents import OWN_MODEL

        model, llm = llm, OWN_MODEL
    chosen = {"llm": llm, "tools": specs, **values}
    if own["where"] is not None:
        from pyrag.retrieval.filters.language import filter_of

        chosen["where"] = str(filter_of(own["where"]))
    retriever, searched = own["retriever"], None
    if retriever is not None and (other := next((name for name in ("index", "sources") if values.get(name)), "")):
        raise UsageError(f"PyRAG takes {other} or retriever, not both: name all sources in one list, retriever=[…, …]")
    if isinstance(retriever, str | Path):
        chosen |= {"retriever" if is_remote(str(retriever)) else "index": str(retriever)}
    elif isinstance(retriever, list | tuple):
        chosen["sources"] = tuple(map(str, retriever))
    else:
        searched = cast("Retriever | None", retriever)
    parts = OwnParts(searched, functions, model, own["answerer"], checked_confirm(own["confirm"]))
    return make_settings(chosen), parts


def checked_confirm(confirm: Confirm | None) -> Confirm | None:
    """Return a callback unchanged. Raises `ConfigError` if it cannot be called."""
    if confirm is not None and not callable(confirm):
        raise ConfigError(f"confirm is a function of a call that returns True to allow it, not {confirm!r}")
    return confirm

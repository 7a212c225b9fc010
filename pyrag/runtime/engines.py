"""From settings to running parts: agents for each role, the retriever and the sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag._io.specs import expanded
from pyrag.agents.prompts import Prompts
from pyrag.agents.protocol import Agents, Answerer
from pyrag.episode.speculation import PrefetchStats
from pyrag.errors import PyRAGError
from pyrag.llm.pace import CallSample, PacedChat
from pyrag.llm.protocol import ChatModel
from pyrag.llm.spec import checked_model
from pyrag.llm.wrappers import Meter
from pyrag.methods.registry import open_shared
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.protocol import Retriever
from pyrag.runtime.explain.history import History
from pyrag.runtime.role_agents import REPLAY, Models, agents_of, transport_of, with_own_parts
from pyrag.settings import Settings
from pyrag_sandbox import Sandbox

if TYPE_CHECKING:
    from pyrag.episode.flow.policy import Confirm
    from pyrag.tools.tool import Tool


@dataclass(slots=True)
class Engines:
    """Parts that are kept between questions. `recording` is set if a file answers instead of an engine."""

    agents: Agents
    retriever: Retriever
    sandbox: Sandbox
    recording: Path | None = None
    prefetch_stats: PrefetchStats = field(default_factory=PrefetchStats)
    _closers: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)
    _prompted: Callable[[Prompts], Agents] | None = None
    _starters: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)
    _paced: list[PacedChat] = field(default_factory=list)
    _shared: dict[str, Any] = field(default_factory=dict)
    tools: tuple[Tool[..., Any], ...] = ()
    confirm: Confirm | None = None
    caller_reads: bool = False  # whether the caller is a model that may have read passages
    history: History = field(default_factory=History)

    def samples(self, model: str) -> list[CallSample]:
        """Return the last calls of a model by name, or of all models if this one has answered none."""
        own = [sample for paced in self._paced if paced.name == model for sample in paced.samples]
        return own or [sample for paced in self._paced for sample in paced.samples]

    def pace(self) -> str:
        """Return the measured speed of each model as a clause; empty if no speed is known."""
        return "; ".join(filter(None, (model.describe_pace() for model in self._paced)))

    async def start(self) -> None:
        """Wait until local models are loaded. This may take minutes, and does not count towards a question's deadline.

        A failure is reported by the first call of the model.
        """
        for start in self._starters:
            with contextlib.suppress(PyRAGError):
                await start()

    def prompted(self, prompts: Prompts) -> Engines:
        """Return these engines with agents that use other prompts with the same models. Close only one of the two."""
        return self if self._prompted is None else replace(self, agents=self._prompted(prompts))

    def shared(self, settings: Settings) -> Any:
        """Return the state that the settings' method keeps between questions. Raises any error of opening it."""
        method = settings.method.partition(":")[0]
        if method not in self._shared:
            self._shared[method] = open_shared(settings)
        return self._shared[method]

    async def aclose(self) -> None:
        """Close all parts, even if closing one of them fails; then raise the first error."""
        errors: list[Exception] = []
        for close in (*self._closers, self.retriever.aclose, self.sandbox.aclose):
            try:
                await close()
            except Exception as error:
                errors.append(error)
        while self._shared:  # the next question opens it again
            _, shared = self._shared.popitem()
            if shared is not None:
                shared.close()
        if errors:
            raise errors[0]


def open_engines(
    settings: Settings,
    retriever: Retriever | None = None,
    *,
    meter: Meter | None = None,
    tools: Sequence[Callable[..., Any]] = (),
    llm: ChatModel | None = None,
    answerer: Answerer | None = None,
) -> Engines:
    """Open the parts that the settings name, without contacting any service.

    Args:
        settings: The settings.
        retriever: The caller's own retriever, which replaces the settings' retriever.
        meter: Limit on what all questions may spend together.
        tools: The caller's own functions for programs, in addition to the settings' tools.
        llm: The caller's own model, which the settings name `OWN_MODEL`.
        answerer: The caller's own Answer agent, which replaces the engine's.

    Raises:
        ConfigError: A setting is invalid, or an object of the caller lacks a method.
        DataError: A file that the settings name cannot be read.
    """
    opened, tool_description = _open_tools(settings, tools)
    models = Models(settings, meter, None if llm is None else checked_model(llm, "the object given as llm"))

    def agents(prompts: Prompts | None) -> Agents:
        return with_own_parts(agents_of(settings, models, prompts), settings, answerer, tool_description)

    recording = Path(settings.llm.removeprefix(REPLAY)) if settings.llm.startswith(REPLAY) else None
    engines = Engines(
        agents=agents(None),
        retriever=_following(settings) if retriever is None else retriever_of(settings, retriever, own_where=True),
        sandbox=Sandbox(require="kernel" if settings.sandbox == "kernel" else "policy"),
        recording=recording,
        _closers=models.closers,
        _prompted=agents,
        _starters=models.starters,
        _paced=models.paced,
        tools=opened,
    )
    engines.shared(settings)
    return engines


def _open_tools(settings: Settings, functions: Sequence[Callable[..., Any]]) -> tuple[tuple[Tool[..., Any], ...], str]:
    """Return the tools of the settings and of the caller, and their description for the Plan agent."""
    if not settings.tools and not functions:
        return (), ""
    from pyrag.tools.open import open_tools
    from pyrag.tools.tool import as_tools, describe

    tools = as_tools([*open_tools(settings.tools), *as_tools(functions)])
    return tools, describe(tools)


def _following(settings: Settings) -> Retriever:
    """Return the settings' retriever, which follows updates of an index folder."""
    from pyrag.retrieval.following import FollowingRetriever
    from pyrag.retrieval.open import is_remote

    place = settings.retriever or settings.index
    if settings.sources or place is None or (settings.retriever and is_remote(settings.retriever)):
        return retriever_of(settings, own_where=True)
    return FollowingRetriever(lambda: retriever_of(settings, own_where=True), expanded(place))


def retriever_of(settings: Settings, own: Retriever | None = None, *, own_where: bool = False) -> Retriever:
    """Return the settings' retriever.

    Args:
        settings: Settings that name a retriever or an index; if they name neither, the bundled corpus is searched.
        own: The caller's own retriever, which replaces the settings' retriever.
        own_where: Whether the settings' filter is the caller's own, so that errors may quote it.

    Raises:
        ConfigError: The settings name no retriever.
        DataError: The index cannot be opened.
    """
    from pyrag._io.http.options import RETRIEVER_LIMIT
    from pyrag.retrieval import Options, open_retriever
    from pyrag.retrieval.bundled import BundledRetriever
    from pyrag.retrieval.protocol import OwnRetriever
    from pyrag.retrieval.remote.frameworks import adapted

    named = settings.retriever or (Path(settings.index) if settings.index is not None else None)

    options = Options(
        timeout=settings.retrieve_timeout,
        embedder=settings.embedder,
        dense_weight=settings.dense_weight,
        rerank=settings.rerank,
        where=None if settings.where is None else parsed(settings.where),
        own_where=own_where,
        limit=replace(RETRIEVER_LIMIT, megabytes=settings.retriever_body_mb),
        transport=transport_of(settings),
    )
    if own is not None:
        return open_retriever(OwnRetriever(adapted(own)), options=options)
    return open_retriever(settings.sources or named or BundledRetriever(), options=options)

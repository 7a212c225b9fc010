"""From settings to running parts: agents for each role, the retriever and the sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag.agents.engine import DEFAULT_ENGINE, default_engine, engine_of, open_agents
from pyrag.agents.prompts import Prompts, load_prompts
from pyrag.agents.protocol import Agents, Answerer, Reading, RoleEngines
from pyrag.episode.speculation import PrefetchStats
from pyrag.errors import ConfigError, PyRAGError
from pyrag.llm.pace import CallSample, PacedChat
from pyrag.llm.protocol import CHAT_TEMPLATE, ChatModel, Sampling
from pyrag.llm.request_options import RequestOptions, options_of
from pyrag.llm.spec import checked_model
from pyrag.llm.spending import counted
from pyrag.llm.wrappers import ForeignChat, Meter, MeteredChat, UnconstrainedChat, guarded
from pyrag.methods.registry import open_shared
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.protocol import Retriever
from pyrag.runtime.explain.history import History
from pyrag.settings import Settings
from pyrag.trace.model import Passage
from pyrag_sandbox import Sandbox

if TYPE_CHECKING:
    from pyrag._io.http.options import Transport
    from pyrag.episode.flow.policy import Confirm
    from pyrag.llm.spec import ModelOptions
    from pyrag.tools.tool import Tool

REPLAY = "replay:"
LOCAL_ENGINES = ("vllm", "transformers")
OWN_MODEL = "object:"  # spec of a model that the caller passed as an object


@dataclass(slots=True)
class Engines:
    """Parts that outlive a question. `recording` is set if a file answers in place of an engine."""

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
        """Return the last calls of the model of a name, or of all models if it has answered none."""
        own = [sample for paced in self._paced if paced.name == model for sample in paced.samples]
        return own or [sample for paced in self._paced for sample in paced.samples]

    def pace(self) -> str:
        """Return the measured speed of each model as a clause; empty if nothing is known."""
        return "; ".join(filter(None, (model.describe_pace() for model in self._paced)))

    async def start(self) -> None:
        """Wait until local models are loaded, which may take minutes and does not count against a question's deadline.

        A failure is reported by the first call of the model.
        """
        for start in self._starters:
            with contextlib.suppress(PyRAGError):
                await start()

    def prompted(self, prompts: Prompts) -> Engines:
        """Return these engines with agents that use other prompts, over the same models. Close only one of both."""
        return self if self._prompted is None else replace(self, agents=self._prompted(prompts))

    def shared(self, settings: Settings) -> Any:
        """Return the state that the settings' method keeps open between questions. Raises any error of opening it."""
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
    models = _Models(settings, meter, None if llm is None else checked_model(llm, "the object given as llm"))
    recording = Path(settings.llm.removeprefix(REPLAY)) if settings.llm.startswith(REPLAY) else None
    engines = Engines(
        agents=_with_own(_open_agents(settings, models, None), answerer, tool_description),
        retriever=_following(settings) if retriever is None else retriever_of(settings, retriever, own_where=True),
        sandbox=Sandbox(require="kernel" if settings.sandbox == "kernel" else "policy"),
        recording=recording,
        _closers=models.closers,
        _prompted=lambda prompts: _with_own(_open_agents(settings, models, prompts), answerer, tool_description),
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


def _with_own(agents: Agents, answerer: Answerer | None, description: str) -> Agents:
    """Return agents with the caller's Answer agent, if any, and a planner that knows the tools, if it can call any."""
    if answerer is not None:
        if not callable(getattr(answerer, "answer", None)):
            raise ConfigError(
                f"a {type(answerer).__name__} is no answerer: give an object with async answer(query, passages)"
            )
        name = type(answerer).__name__
        agents = replace(agents, name=f"{agents.name} (answer: {name})", answerer=_OwnAnswerer(answerer, name))
        agents = replace(agents, calls_model=True)  # for all that is known
    with_tools = getattr(agents.planner, "with_tools", None) if description else None
    return agents if with_tools is None else replace(agents, planner=with_tools(description))


@dataclass(frozen=True, slots=True)
class _OwnAnswerer:
    """Answer agent of the caller, whose errors of any kind become service errors."""

    answerer: Answerer
    name: str

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return its reading.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        return await guarded(self.answerer.answer(query, passages), f"the answerer {self.name}")


def model_options(settings: Settings) -> ModelOptions:
    """Return the options of model calls that the settings give."""
    from pyrag._io.http.options import MODEL_LIMIT
    from pyrag.llm.spec import ModelOptions

    return ModelOptions(
        timeout=settings.call_seconds,
        max_in_flight=settings.max_in_flight,
        limit=replace(MODEL_LIMIT, megabytes=settings.llm_body_mb),
        transport=_transport(settings),
    )


def _transport(settings: Settings) -> Transport:
    from pyrag._io.http.options import Transport

    return Transport(proxy=settings.proxy, ca_bundle=settings.ca_bundle)


class _Models:
    """Chat models that settings name, each opened once."""

    def __init__(self, settings: Settings, meter: Meter | None, own: ChatModel | None = None) -> None:
        self._settings, self._meter, self._own = settings, meter, own
        self._opened: dict[str, ChatModel] = {}
        self.paced: list[PacedChat] = []
        self.closers: list[Callable[[], Awaitable[Any]]] = []
        self.starters: list[Callable[[], Awaitable[Any]]] = []

    def get(self, spec: str) -> ChatModel:
        """Return the model of a spec, opened at the first call."""
        if spec not in self._opened:
            model = self._opened[spec] = self._open(spec)
            self.closers.append(model.aclose)
            self.starters += [model.start] if hasattr(model, "start") else []
        return self._opened[spec]

    def _open(self, spec: str) -> ChatModel:
        from pyrag.llm.spec import open_chat_model

        settings = self._settings
        own = self._own if spec == OWN_MODEL else None
        paced = PacedChat(open_chat_model(spec, model_options(settings)) if own is None else ForeignChat(own))
        self.paced.append(paced)
        model: ChatModel = counted(paced)
        if self._meter:
            model = MeteredChat(model, self._meter)
        if settings.cache and not spec.startswith("scripted:"):
            model = _cached(model, settings)
        # Outside the cache, whose keys are built from requests as they are sent.
        return model if settings.structured else UnconstrainedChat(model)


def _open_agents(settings: Settings, models: _Models, prompts: Prompts | None) -> Agents:
    """Return agents by role.

    Roles with the same model share its client; with equal request options, also the agents.
    """
    opened: dict[tuple[str, str], Agents] = {}

    def agents(spec: str | None, role: str) -> Agents:
        spec = spec or settings.llm
        options = options_of(settings.request, role) if _is_prompted(spec) else RequestOptions()
        key = (spec, repr(options))
        if key not in opened:
            opened[key] = _agents_of(spec, settings, models, prompts, options)
        return opened[key]

    base, planner = agents(None, "answer"), agents(settings.plan_llm, "plan")
    decomposer, answerer = agents(settings.decompose_llm, "decompose"), agents(settings.answer_llm, "answer")
    rewriter = agents(settings.rewrite_llm, "rewrite")
    roles = {"plan": planner, "decompose": decomposer, "answer": answerer, "rewrite": rewriter}
    others = [
        f"{role}: {agents_of_role.name}" for role, agents_of_role in roles.items() if agents_of_role.name != base.name
    ]
    return Agents(
        base.name + (f" ({', '.join(others)})" if others else ""),
        decomposer.decomposer,
        planner.planner,
        _checked(answerer.answerer, settings),
        answerer.writer or base.writer,
        rewriter.rewriter,
        _role_engines(answerer, planner, decomposer, rewriter),
        base.follow_up,
        calls_model=any(part.calls_model for part in (base, *roles.values())),
    )


def _role_engines(answerer: Agents, planner: Agents, decomposer: Agents, rewriter: Agents) -> RoleEngines | None:
    """Return the engines that the agents of each role were built from."""
    if not (answerer.engines and planner.engines and decomposer.engines and rewriter.engines):
        return None
    return RoleEngines(
        answerer.engines.answer, planner.engines.plan, decomposer.engines.decompose, rewriter.engines.rewrite
    )


def _checked(answerer: Answerer, settings: Settings) -> Answerer:
    if not settings.least_evidence:
        return answerer
    check = default_engine().check_answers
    assert check is not None
    return check(answerer, settings.least_evidence)


def _is_prompted(spec: str) -> bool:
    return not spec.startswith(REPLAY) and engine_of(spec) is None


def _agents_of(
    spec: str, settings: Settings, models: _Models, prompts: Prompts | None, options: RequestOptions
) -> Agents:
    if not _is_prompted(spec):
        if settings.prompts:
            load_prompts(settings.prompts)  # these agents use no prompts, but a wrong folder is still an error
        engine = engine_of(spec)
        if engine is not None:
            return open_agents(engine, spec, settings)
        # A replayed question never reaches its agents, since the ledger answers.
        return replace(open_agents(default_engine(), DEFAULT_ENGINE, settings), name=spec, calls_model=True)
    from pyrag.agents.llm import make_llm_agents
    from pyrag.llm.context import token_counter

    _check_extra(spec, options)
    model = models.get(spec)
    # A local model knows its window; a server is asked for it when needed.
    known = settings.context_tokens if spec == (settings.answer_llm or settings.llm) else None
    window: int | None = known or getattr(model, "window", None)
    return make_llm_agents(
        model,
        prompts=prompts,
        prompts_dir=settings.prompts,
        sampling=_sampling(options, window),
        context_tokens=window,
        count_tokens=token_counter(settings.tokenizer or getattr(model, "tokenizer", None)),
        retries=settings.reply_retries,
    )


def _check_extra(spec: str, options: RequestOptions) -> None:
    """Raise `ConfigError` for request fields that only servers know, if a local engine is used."""
    engine = spec.partition(":")[0]
    if engine in LOCAL_ENGINES and (unknown := options.extra_body.keys() - {CHAT_TEMPLATE}):
        raise ConfigError(
            f"the engine {engine} knows no request field {min(unknown)!r}: of extra_body it takes {CHAT_TEMPLATE} alone"
        )


def _sampling(options: RequestOptions, window: int | None) -> Sampling:
    """Return the sampling of a role: its options, and replies limited to a quarter of the window if that is known."""
    default = Sampling()
    known_window = window or default.max_tokens * 4
    return Sampling(
        temperature=default.temperature if options.temperature is None else options.temperature,
        max_tokens=min(default.max_tokens, known_window // 4) if options.max_tokens is None else options.max_tokens,
        seed=options.seed,
        extra=options.extra_body or None,
    )


def _cached(model: ChatModel, settings: Settings) -> ChatModel:
    from pyrag.llm.cache import CachedChat, ReplyStore, default_path

    path = default_path() if settings.cache is True else str(settings.cache)
    store = ReplyStore(path, settings.cache_mb << 20)
    store.check()
    return CachedChat(model, store)


def _following(settings: Settings) -> Retriever:
    """Return the retriever of settings, which follows the updates of an index folder."""
    from pyrag.retrieval.following import FollowingRetriever
    from pyrag.retrieval.open import is_remote

    place = settings.retriever or settings.index
    if settings.sources or place is None or (settings.retriever and is_remote(settings.retriever)):
        return retriever_of(settings, own_where=True)
    return FollowingRetriever(lambda: retriever_of(settings, own_where=True), Path(place).expanduser())


def retriever_of(settings: Settings, own: Retriever | None = None, *, own_where: bool = False) -> Retriever:
    """Return the retriever of settings.

    Args:
        settings: Settings that name a retriever or an index; without either, the bundled corpus is searched.
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
        transport=_transport(settings),
    )
    if own is not None:
        return open_retriever(OwnRetriever(adapted(own)), options=options)
    return open_retriever(settings.sources or named or BundledRetriever(), options=options)

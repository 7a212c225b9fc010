"""Chat models that settings name, and the agents of each role over them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyrag.agents.engine import DEFAULT_ENGINE, default_engine, engine_of, open_agents
from pyrag.agents.prompts import Prompts, load_prompts
from pyrag.agents.protocol import Agents, Answerer, Reading, RoleEngines
from pyrag.errors import ConfigError
from pyrag.llm.limiter import BoundedChat, Limiter, ModelGate
from pyrag.llm.pace import PacedChat
from pyrag.llm.protocol import CHAT_TEMPLATE, ChatModel, Sampling
from pyrag.llm.request_options import RequestOptions, options_of
from pyrag.llm.spending import counted
from pyrag.llm.wrappers import ForeignChat, Meter, MeteredChat, UnconstrainedChat, guarded
from pyrag.settings import Settings
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag._io.http.options import Transport
    from pyrag.llm.spec import ModelOptions

REPLAY = "replay:"
LOCAL_ENGINES = ("vllm", "transformers")
OWN_MODEL = "object:"  # spec of a model that the caller passed as an object
ENDPOINT = "openai:"  # scheme of models whose clients share the limiter of their endpoint


class Models:
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
        model: ChatModel = open_chat_model(spec, model_options(settings)) if own is None else ForeignChat(own)
        if not spec.startswith(ENDPOINT):
            model = BoundedChat(model, settings.max_in_flight)
        paced = PacedChat(model)
        self.paced.append(paced)
        model = counted(paced)
        if self._meter:
            model = MeteredChat(model, self._meter)
        if settings.cache and not spec.startswith("scripted:"):
            model = _cached(model, settings)
        # Outside the cache, whose keys are built from requests as they are sent.
        return model if settings.structured else UnconstrainedChat(model)


def agents_of(settings: Settings, models: Models, prompts: Prompts | None) -> Agents:
    """Return the agents of each role.

    Roles with the same model share its client; with equal request options, also the agents.

    Args:
        settings: Settings that name the models.
        models: The chat models.
        prompts: Prompts of the agents; None for the settings' own.

    Raises:
        ConfigError: A model, its options or the prompts are wrong.
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
    spec: str, settings: Settings, models: Models, prompts: Prompts | None, options: RequestOptions
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
            f"the engine {engine} does not support the request field {min(unknown)!r}: of extra_body it takes only "
            f"{CHAT_TEMPLATE}"
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


def with_own_parts(agents: Agents, settings: Settings, answerer: Answerer | None, description: str) -> Agents:
    """Return agents with the caller's Answer agent, and with a planner that knows the tools, if it can call any.

    Args:
        agents: The agents.
        settings: The settings, whose limit on calls in flight holds for the caller's agent too.
        answerer: The caller's Answer agent; None to keep the engine's.
        description: Description of the tools; empty if there are none.

    Raises:
        ConfigError: The object cannot answer.
    """
    if answerer is not None:
        if not callable(getattr(answerer, "answer", None)):
            raise ConfigError(
                f"a {type(answerer).__name__} is not an answerer: give an object with async answer(query, passages)"
            )
        name = type(answerer).__name__
        bounded = _OwnAnswerer(answerer, name, ModelGate(lambda: Limiter(settings.max_in_flight)))
        agents = replace(agents, name=f"{agents.name} (answer: {name})", answerer=bounded)
        agents = replace(agents, calls_model=True)  # for all that is known
    with_tools = getattr(agents.planner, "with_tools", None) if description else None
    return agents if with_tools is None else replace(agents, planner=with_tools(description))


@dataclass(frozen=True, slots=True)
class _OwnAnswerer:
    """Answer agent of the caller, as many calls at once as the limiter allows. Its errors become service errors."""

    answerer: Answerer
    name: str
    gate: ModelGate

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return its reading.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        async with self.gate.place():
            return await guarded(self.answerer.answer(query, passages), f"the answerer {self.name}")


def model_options(settings: Settings) -> ModelOptions:
    """Return the options of model calls that the settings give."""
    from pyrag._io.http.options import MODEL_LIMIT
    from pyrag.llm.spec import ModelOptions

    return ModelOptions(
        timeout=settings.call_seconds,
        max_in_flight=settings.max_in_flight,
        limit=replace(MODEL_LIMIT, megabytes=settings.llm_body_mb),
        transport=transport_of(settings),
    )


def transport_of(settings: Settings) -> Transport:
    """Return the proxy and certificates that the settings name."""
    from pyrag._io.http.options import Transport

    return Transport(proxy=settings.proxy, ca_bundle=settings.ca_bundle)

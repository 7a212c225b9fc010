"""Question service: admits questions, limits their time and cost, answers them, and stores and counts them."""

from __future__ import annotations

import asyncio
import contextlib
import math
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyrag._io.excerpts import has_excerpt
from pyrag._io.specs import expanded
from pyrag.agents.typed.contract import Contract
from pyrag.errors import PyRAGError, StorageError
from pyrag.llm.protocol import Message
from pyrag.methods.own_program import OwnProgram
from pyrag.retrieval.filters.bound import BoundRetriever
from pyrag.retrieval.filters.language import filter_of
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.open import is_remote, source_folders
from pyrag.retrieval.protocol import Retriever, check_filters
from pyrag.runtime.engine_owner import EngineOwner
from pyrag.runtime.engines import Engines, retriever_of
from pyrag.runtime.question_request import QuestionRequest, request_of, with_filter
from pyrag.server.config import DEFAULT_INDEX, Access, ServerConfig
from pyrag.server.errors import ApiError, log_failure, public_text
from pyrag.server.search import RETRY_AFTER, SearchService, following
from pyrag.server.trace_store import TraceStore
from pyrag.server.wire import public_event, public_trace
from pyrag.settings import Settings
from pyrag.trace.events import Observer, ignore
from pyrag.trace.model import Trace
from pyrag_helpers import MODULE
from pyrag_sandbox import SandboxError

Where = str | dict[str, Any]
_SANDBOX_CHECK = 5.0  # seconds between two checks of the sandbox
_SANDBOX_PATIENCE = 30.0  # seconds that a check may take
_LOGGED = ("service", "sandbox", "deadline")  # kinds of errors that the server's operator has to look at


@dataclass(frozen=True, slots=True)
class ServedIndex:
    """Index with the engines that answer questions about it."""

    name: str
    engines: Engines
    settings: Settings
    scope: str = ""  # name under which its traces are kept

    @property
    def retriever(self) -> Retriever:
        return self.engines.retriever

    @property
    def is_bundled(self) -> bool:
        """True for pyrag's bundled corpus."""
        return not (self.settings.index or self.settings.retriever or self.settings.sources)

    def narrowed(self, scope: str, permission: Where | None, where: Where | None) -> ServedIndex:
        """Return the index, restricted to passages that pass the filters.

        Args:
            scope: Name under which traces are stored.
            permission: Filter of the caller's key.
            where: Filter of the request.

        Raises:
            FilterError: A filter cannot be read, or the retriever does not support filters.
        """
        allowed, retriever = filter_of(permission), self.retriever
        if allowed is not None:  # binds every search; the request's own filter is passed with its questions
            retriever = BoundRetriever(retriever, allowed)
        if where is not None:
            check_filters(retriever)
        engines = replace(self.engines, retriever=retriever)
        return ServedIndex(self.name, engines, with_filter(self.settings, where), scope)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Conversation that a question belongs to.

    Attributes:
        earlier: Messages before the question, oldest first.
        owner: Caller that may continue the conversation.
        keep: Whether to keep the trace and the conversation.
    """

    earlier: tuple[Message, ...] = ()
    owner: str = ""
    keep: bool = True


_ALONE = Dialogue()


@dataclass(frozen=True, slots=True)
class FinishedQuestion:
    """Finished question: its trace, and the id under which the trace is stored."""

    id: str
    index: str
    trace: Trace


@dataclass(frozen=True, slots=True)
class AcceptedQuestion:
    """Question in progress. `events` receives its events as objects, and None after the last one."""

    id: str
    task: asyncio.Task[FinishedQuestion]
    events: asyncio.Queue[dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class _OpenQuestion:
    """A question of a caller, from its acceptance to its trace. `events` is None if nobody watches it."""

    id: str
    request: QuestionRequest
    index: ServedIndex
    dialogue: Dialogue
    events: asyncio.Queue[dict[str, Any] | None] | None

    @property
    def observer(self) -> Observer:
        if self.events is None:
            return ignore
        put, name = self.events.put_nowait, self.index.name
        return lambda event: put(public_event(event, name))


class QuestionService(SearchService):
    """Question answering over named indexes with one set of engines. It belongs to one event loop.

    Args:
        settings: Settings of all questions. Their limits are upper bounds for the limits of requests.
        config: Indexes, limits and keys.

    Raises:
        ConfigError: A setting is wrong.
        DataError: An index cannot be opened.
        StorageError: The file of traces cannot be opened.
    """

    def __init__(self, settings: Settings, config: ServerConfig) -> None:
        self.store = TraceStore(config.traces, config.max_traces, config.trace_days, config.max_trace_mb)
        self._owner = EngineOwner(replace(settings, index=None, retriever=None, sources=()))
        self.indexes: dict[str, ServedIndex] = {}
        named: dict[str, str | tuple[str, ...] | None] = {**config.indexes} or {DEFAULT_INDEX: None}
        retrievers: dict[str, FollowingRetriever] = {}
        for name, place in named.items():
            own = _over(settings, place)
            folder = None if own.index is None else expanded(own.index)
            retrievers[name] = following(partial(retriever_of, own), folder, name, source_folders(own.sources))
            # All indexes share the engines, so that models are loaded only once.
            self.indexes[name] = ServedIndex(name, replace(self._owner.engines, retriever=retrievers[name]), own)
        super().__init__(config, retrievers)
        self.otel = settings.otel
        self._places = asyncio.Semaphore(config.max_running)
        self._pending = self._running = 0
        self._sandbox_problem, self._sandbox_checked = "", -math.inf

    @property
    def gauges(self) -> dict[str, float]:
        """Current values, for the metrics."""
        counts = {"pyrag_questions_running": self._running, "pyrag_questions_waiting": self._pending - self._running}
        return {**super().gauges, **counts, "pyrag_sandbox_restarts": self._owner.engines.sandbox.restarts}

    def index(self, name: str | None, access: Access, where: Where | None = None) -> ServedIndex:
        """Return an index, restricted by the caller's filter and the request's filter.

        Args:
            name: Name of the index. None for the index named `default`, or else the first one that the caller may use.
            access: Rights of the caller.
            where: Filter of the request.

        Raises:
            ApiError: The index does not exist, or the caller may not use it.
            FilterError: The filter cannot be read, or the retriever does not support filters.
        """
        name = self.named(name, access)
        index = self.indexes[name].narrowed(access.scope(name), access.where or None, where)
        return replace(index, settings=replace(index.settings, flow="allow")) if access.effects else index

    def admit(self, count: int) -> None:
        """Refuse questions if the queue has no room for them.

        Args:
            count: Number of questions to accept together.

        Raises:
            ApiError: 429 if the client should try again later; 400 if `count` exceeds the queue; 503 at shutdown.
        """
        self.check_open()
        places = self.config.max_running + self.config.max_waiting
        if count > places:
            raise ApiError(400, "too_many_questions", f"{count} questions at once: send at most {places}")
        if self._pending + count > places:
            message = f"{self._pending} questions are running or waiting already: ask again in a moment"
            raise ApiError(429, "queue_full", message, retry_after=RETRY_AFTER)

    def accept(
        self,
        subject: str | OwnProgram,
        index: ServedIndex,
        limits: dict[str, Any],
        method: str | None = None,
        dialogue: Dialogue = _ALONE,
        *,
        watched: bool = True,
        returns: Contract | None = None,
    ) -> AcceptedQuestion:
        """Start answering a question, or running a program.

        Args:
            subject: The question, in English for the embedded engine, or a program of the caller.
            index: Index to search.
            limits: Settings by name (`deadline`, `max_calls`, `max_tokens`, `max_cost`, `topk`). A value above the
                server's limit is lowered to it.
            method: Name of a method; None for the server's own.
            dialogue: Conversation that the question belongs to.
            watched: Whether to put events into `events`; if not, it only receives the None at the end.
            returns: Type of the value; None for a text.

        Raises:
            ApiError: The queue is full.
            UsageError: The question is empty or too long, a limit is not valid, or the method is unknown.
        """
        self.admit(1)
        settings = replace(index.settings, method=method) if method else index.settings
        request = request_of(subject, settings, limits=limits, lowers=True, earlier=dialogue.earlier, returns=returns)
        events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        question = _OpenQuestion(uuid.uuid4().hex, request, index, dialogue, events if watched else None)
        self._pending += 1
        task = self.begin(self._answer(question))
        task.add_done_callback(partial(self._finished, events))
        return AcceptedQuestion(question.id, task, events)

    def _finished(self, events: asyncio.Queue[dict[str, Any] | None], _: asyncio.Task[FinishedQuestion]) -> None:
        self._pending -= 1
        events.put_nowait(None)

    async def _answer(self, question: _OpenQuestion) -> FinishedQuestion:
        began, index = asyncio.get_running_loop().time(), question.index
        async with self.place(question.request.settings.deadline):
            request = question.request.after(asyncio.get_running_loop().time() - began)
            trace = await self._owner.answer(request, engines=index.engines, observer=question.observer)
        if trace.error and trace.error.kind in _LOGGED:
            log_failure(trace.error.message)
        for warning in filter(has_excerpt, trace.warnings):
            log_failure(warning)
        trace = public_trace(trace, index.name, index.settings.topk, bundled=index.is_bundled)
        self.metrics.answered(index.name, trace)
        return FinishedQuestion(question.id, index.name, await self._keep(question, trace))

    @contextlib.asynccontextmanager
    async def place(self, deadline: float | None) -> AsyncIterator[None]:
        """Wait for a free slot for running questions, and hold it inside the block."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(deadline):
                await self._places.acquire()
        except TimeoutError:
            message = "the deadline passed while the question waited for a place: ask again later"
            raise ApiError(503, "busy", message, retry_after=RETRY_AFTER) from None
        self.metrics.waited(asyncio.get_running_loop().time() - began)
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._places.release()

    async def _keep(self, question: _OpenQuestion, trace: Trace) -> Trace:
        """Store a trace and return it. If the store fails, the reply still has the answer, with a warning."""
        dialogue = question.dialogue
        if not dialogue.keep:
            return trace
        own_turns = Message("user", question.request.text), Message("assistant", trace.answer.text)
        turns = (*dialogue.earlier, *own_turns)
        try:
            await self.store.add(question.id, question.index.scope, trace, owner=dialogue.owner, turns=turns)
        except StorageError as error:
            self.metrics.count("store_errors")
            return replace(trace, warnings=(*trace.warnings, public_text(f"the trace was not kept: {error}")))
        return trace

    async def keep_response(self, key: str, reply: bytes) -> None:
        """Store the reply to a question with its trace. If this fails, the answer is not affected.

        Args:
            key: Id of the question.
            reply: The reply, as JSON.
        """
        try:
            await self.store.add_response(key, reply)
        except StorageError:
            self.metrics.count("store_errors")

    async def problems(self, access: Access) -> list[str]:
        """Return sentences about problems that prevent the service from answering; empty if it is ready.

        Args:
            access: Rights of the caller. Indexes that it may not use are not named.
        """
        problems = await super().problems(access)
        if problems or (problem := await self._sandbox_state()) == "":
            return problems
        return [f"the sandbox does not run programs: {problem}"]

    async def _sandbox_state(self) -> str:
        """Return the sandbox's problem; empty if it works. The check is repeated every `_SANDBOX_CHECK` seconds."""
        now = asyncio.get_running_loop().time()
        if now - self._sandbox_checked > _SANDBOX_CHECK:
            self._sandbox_checked = now
            try:
                async with asyncio.timeout(_SANDBOX_PATIENCE):
                    outcome = await self._owner.engines.sandbox.run("final_answer = 1", {}, helpers=MODULE)
                self._sandbox_problem = "" if outcome.value == 1 else public_text(str(outcome.error or outcome.status))
            except (SandboxError, TimeoutError) as error:
                self._sandbox_problem = public_text(str(error)) or "it gave no answer in time"
        return self._sandbox_problem

    async def start(self) -> None:
        """Load models, search each index and run a program, so that the first question does not wait for this.

        Raises:
            PyRAGError: An index, a model that searching needs, or the sandbox cannot be used.
        """
        if self.started:
            return
        await self._owner.engines.start()
        if problem := await self._sandbox_state():
            raise PyRAGError(f"the sandbox does not run programs: {problem}")
        await super().start()

    async def aclose(self) -> None:
        """Close retrievers, engines and the store, even if closing one of them fails."""
        await super().aclose()
        with contextlib.suppress(PyRAGError, OSError):
            await self._owner.aclose()
        self.store.close()


async def cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _over(settings: Settings, place: str | tuple[str, ...] | None) -> Settings:
    if place is None:
        return settings
    if isinstance(place, tuple):
        return replace(settings, index=None, retriever=None, sources=place)
    remote = is_remote(place)
    return replace(settings, index=None if remote else place, retriever=place if remote else None, sources=())

"""Questions as the service takes them: admitted or refused, bounded in time and money, answered, kept and counted."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyrag.episode.ledger import Recording
from pyrag.episode.recovery import calls_for, ladder_of
from pyrag.errors import PyRAGError, ServiceError
from pyrag.llm.protocol import Message as ChatTurn
from pyrag.methods.registry import recovery_of
from pyrag.retrieval.lookup import fetch_passages
from pyrag.retrieval.open import is_remote
from pyrag.retrieval.protocol import Retriever, searched_index
from pyrag.retrieval.server import AT_ONCE, Current
from pyrag.runtime.engines import Engines, open_engines
from pyrag.runtime.run import MAX_QUESTION_BYTES, answer_question
from pyrag.server.config import DEFAULT_INDEX, Access, ServerConfig
from pyrag.server.errors import ApiError
from pyrag.server.follow_up import FollowUpAgent, Standalone
from pyrag.server.metrics import Metrics
from pyrag.server.trace_store import TraceStore
from pyrag.server.wire import public_event, public_trace
from pyrag.settings import Settings
from pyrag.trace.events import Event, of_question
from pyrag.trace.model import Passage, SearchedIndex, Trace

RETRY_AFTER = 2  # seconds
_WITHOUT_MODELS: dict[str, Any] = {
    "llm": "embedded",
    **dict.fromkeys(("plan_llm", "decompose_llm", "answer_llm", "rewrite_llm", "experience")),
}
_LOWERED = ("deadline", "max_calls", "max_tokens", "max_cost", "topk")


class FollowingRetriever:
    """A retriever over an index folder that opens each new generation; searches that have begun keep the old one."""

    def __init__(self, current: Current) -> None:
        self.current = current

    @property
    def name(self) -> str:
        return self.current.retriever.name

    @property
    def searched(self) -> SearchedIndex:
        return searched_index(self.current.retriever)

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        """Search the newest generation of the index.

        Args:
            query: Words to search for.
            topk: Number of passages, at most.

        Returns:
            Passages, best first.
        """
        async with self.current.use() as retriever:
            found: list[Passage] = await retriever.retrieve(query, topk)
        return found

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages of those ids that exist in the newest generation."""
        async with self.current.use() as retriever:
            return await fetch_passages(retriever, ids)

    async def aclose(self) -> None:
        await self.current.aclose()


@dataclass(frozen=True, slots=True)
class ServedIndex:
    """An index with the engines that answer over it."""

    name: str
    engines: Engines
    settings: Settings
    retriever: Retriever


@dataclass(frozen=True, slots=True)
class Answered:
    """A finished question: its trace, and the id under which it is kept."""

    id: str
    index: str
    trace: Trace


@dataclass(frozen=True, slots=True)
class Accepted:
    """A question on its way. `events` holds its events as objects, and None after the last one."""

    id: str
    task: asyncio.Task[Answered]
    events: asyncio.Queue[dict[str, Any] | None]


class QuestionService:
    """Answers questions over named indexes with one set of engines. Belongs to one event loop.

    Args:
        settings: of all questions; their limits are upper bounds of what a request may ask for.
        config: indexes, limits and keys.

    Raises:
        ConfigError: a setting is wrong.
        DataError: an index cannot be opened.
        StorageError: the file of traces cannot be opened.
    """

    def __init__(self, settings: Settings, config: ServerConfig) -> None:
        self.config, self.metrics = config, Metrics()
        self.store = TraceStore(config.traces, config.max_traces)
        self._slots = asyncio.Semaphore(config.max_running)
        self.search_slots = asyncio.Semaphore(AT_ONCE)
        self._pending = self._running = 0
        self._opened: list[Engines] = []
        self.indexes: dict[str, ServedIndex] = {}
        named: dict[str, str | None] = {**config.indexes} or {DEFAULT_INDEX: None}
        for name, place in named.items():
            self.indexes[name] = self._open(name, _over(settings, place))
        self._follow_up = FollowUpAgent(settings)
        self.ready = False

    def _open(self, name: str, settings: Settings) -> ServedIndex:
        retrieving = replace(settings, **_WITHOUT_MODELS)
        opened = open_engines(retrieving if self._opened else settings)
        self._opened.append(opened)
        if settings.index is not None:
            follow = Current(lambda: open_engines(retrieving).retriever, Path(settings.index).expanduser())
            opened.retriever = FollowingRetriever(follow)
        shared = replace(self._opened[0], retriever=opened.retriever)  # models are opened, and loaded, once
        return ServedIndex(name, shared, settings, opened.retriever)

    @property
    def gauges(self) -> dict[str, float]:
        """Questions that are being answered and that wait."""
        return {"pyrag_questions_running": self._running, "pyrag_questions_waiting": self._pending - self._running}

    def index(self, name: str | None, access: Access) -> ServedIndex:
        """Return an index.

        Args:
            name: None stands for the only one, or the one named `default`, or the first that the caller may use.
            access: what the caller may use.

        Raises:
            ApiError: the index is unknown, or not the caller's.
        """
        allowed = [one for one in self.indexes if access.allows(one)]
        if name is None:
            name = DEFAULT_INDEX if DEFAULT_INDEX in allowed or not allowed else allowed[0]
        if name not in allowed:
            raise ApiError(404, "unknown_index", f"there is no index {name!r}: choose from {', '.join(allowed)}")
        return self.indexes[name]

    def admit(self, count: int) -> None:
        """Refuse questions for which there is no place in the queue.

        Raises:
            ApiError: 429, with the seconds after which to try again; 400 where the queue is shorter than `count`.
        """
        places = self.config.max_running + self.config.max_waiting
        if count > places:
            raise ApiError(400, "too_many_questions", f"{count} questions at once: send at most {places}")
        if self._pending + count > places:
            message = f"{self._pending} questions wait already: ask again in a moment"
            raise ApiError(429, "queue_full", message, retry_after=RETRY_AFTER)

    def accept(
        self,
        question: str,
        index: ServedIndex,
        limits: dict[str, Any],
        method: str | None = None,
        earlier: Sequence[ChatTurn] = (),
    ) -> Accepted:
        """Begin to answer a question.

        Args:
            question: in English for the embedded engine.
            index: where to search.
            limits: settings by name (`deadline`, `max_calls`, `max_tokens`, `max_cost`, `topk`); a value above the
                server's own is lowered to it.
            method: name of a method; None stands for the server's own.
            earlier: messages of the conversation that the question belongs to, the oldest first.

        Raises:
            ApiError: the queue is full, or the question is empty or too long.
            ConfigError: a limit makes no sense, or the method is unknown.
        """
        self.admit(1)
        _check_question(question)
        settings = _limited(replace(index.settings, method=method) if method else index.settings, limits)
        events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        key = uuid.uuid4().hex
        self._pending += 1
        task = asyncio.create_task(self._answer(key, question, index, settings, events, earlier))
        task.add_done_callback(partial(self._finished, events))
        return Accepted(key, task, events)

    def _finished(self, events: asyncio.Queue[dict[str, Any] | None], _: asyncio.Task[Answered]) -> None:
        self._pending -= 1
        events.put_nowait(None)

    async def _answer(
        self,
        key: str,
        question: str,
        index: ServedIndex,
        settings: Settings,
        events: asyncio.Queue[Any],
        earlier: Sequence[ChatTurn],
    ) -> Answered:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def observe(event: Event) -> None:
            events.put_nowait(public_event(event, index.name))

        try:
            async with asyncio.timeout(settings.deadline):
                await self._slots.acquire()
        except TimeoutError:
            message = "the deadline passed while the question waited for a place: ask again later"
            raise ApiError(503, "busy", message, retry_after=RETRY_AFTER) from None
        self._running += 1
        try:
            follow_up = await self._standalone(earlier, question, settings, events)
            if settings.deadline is not None:
                settings = replace(settings, deadline=max(0.001, settings.deadline - (loop.time() - began)))
            recording = Recording.load(index.engines.recording) if index.engines.recording else None
            observer = of_question(observe, question)
            asked = follow_up.question
            trace = await answer_question(asked, index.engines, settings, observer=observer, recording=recording)
        finally:
            self._running -= 1
            self._slots.release()
        if follow_up.note:
            warnings = (follow_up.note, *trace.warnings)
            trace = replace(trace, warnings=warnings, usage=trace.usage + follow_up.usage)
        shown = public_trace(trace, index.name)
        self.metrics.answered(index.name, shown)
        await asyncio.to_thread(self.store.add, key, index.name, shown)
        return Answered(key, index.name, shown)

    async def _standalone(
        self, earlier: Sequence[ChatTurn], question: str, settings: Settings, events: asyncio.Queue[Any]
    ) -> Standalone:
        if not earlier:
            return Standalone(question, "")
        try:
            async with asyncio.timeout(settings.deadline):
                found = await self._follow_up.rewrite(earlier, question)
        except TimeoutError:
            raise ApiError(504, "deadline", "the deadline passed while the follow-up was rewritten") from None
        except ServiceError as error:
            raise ApiError(502, error.kind, str(error)) from error
        if len(found.question.encode("utf-8", "replace")) > MAX_QUESTION_BYTES:
            found = replace(found, question=question, note="the follow-up was asked as it is: it became too long")
        events.put_nowait({"event": "follow_up", "question": found.question, "note": found.note, "at": 0.0})
        return found

    async def start(self) -> None:
        """Load models and search every index once, so that the first question finds them ready.

        Raises:
            PyRAGError: an index or a model that searching needs cannot be used.
        """
        for index in self.indexes.values():
            await index.engines.start()
            await index.retriever.retrieve("who wrote this", 1)
        self.ready = True

    async def aclose(self) -> None:
        """Close engines and the store; a failure of one part does not keep the others open."""
        self.ready = False
        for engines in self._opened:
            with contextlib.suppress(PyRAGError, OSError):
                await engines.aclose()
        with contextlib.suppress(PyRAGError, OSError):
            await self._follow_up.aclose()
        self.store.close()


async def cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _over(settings: Settings, place: str | None) -> Settings:
    if place is None:
        return settings
    remote = is_remote(place)
    return replace(settings, index=None if remote else place, retriever=place if remote else None)


def _check_question(question: str) -> None:
    if not question.strip():
        raise ApiError(400, "empty_question", "the question is empty: ask something")
    try:
        size = len(question.encode())
    except UnicodeEncodeError:
        raise ApiError(400, "not_text", "the question holds characters that are no text: send UTF-8") from None
    if size > MAX_QUESTION_BYTES:
        message = f"the question has {size:,} bytes: at most {MAX_QUESTION_BYTES:,} are possible"
        raise ApiError(400, "question_too_long", message)


def _limited(settings: Settings, limits: dict[str, Any]) -> Settings:
    """Return settings with a request's limits, as far as they are lower than the server's."""
    given = {name: value for name, value in limits.items() if value is not None}
    assert given.keys() <= set(_LOWERED)
    return replace(settings, **{name: _lower(_bound(settings, name), value) for name, value in given.items()})


def _lower(bound: Any, value: Any) -> Any:
    return value if bound is None else min(bound, value)


def _bound(settings: Settings, name: str) -> Any:
    if name == "max_calls" and settings.max_calls is None:
        recovery = recovery_of(settings.method) if settings.recovery == "auto" else settings.recovery
        return calls_for(ladder_of(recovery, settings.boost_topk))
    return max(settings.topk, settings.boost_topk) if name == "topk" else getattr(settings, name)

"""Frozen services behind rewards: replies that completions share, and the time that each waits for them.

Equal calls of the frozen Answer agent and equal searches are paid for once, and the result of a call that outlives its
question is available to the next try. `Waits` adds up the time during which a question has an unfinished request;
`Deadline` is a time limit that is paused while the trained policy writes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

from pyrag.agents.protocol import Answerer, Reading
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import Retriever, search
from pyrag.trace.events import AgentFinished, AgentStarted, Event, Searched
from pyrag.trace.model import Passage

T = TypeVar("T")
_REMEMBERED = 8192  # results that a memo holds


class Memo:
    """Results by key; the least recently used are forgotten first. Failures are not remembered."""

    def __init__(self, limit: int = _REMEMBERED) -> None:
        self._limit = limit
        self._tasks: OrderedDict[Hashable, asyncio.Future[Any]] = OrderedDict()

    async def get(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work` for a key. A caller that stops waiting does not end the work.

        Args:
            key: Key of the result; equal keys share it.
            work: Function that is called if there is no result yet and none is being computed.
        """
        task = self._tasks.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._tasks[key] = asyncio.ensure_future(work())
            if len(self._tasks) > self._limit:
                self._tasks.popitem(last=False)
        self._tasks.move_to_end(key)
        result: T = await asyncio.shield(task)
        return result

    def forget(self, key: Hashable) -> None:
        """Forget the result of a key."""
        self._tasks.pop(key, None)


@dataclass(frozen=True, slots=True)
class SharedAnswerer:
    """Answerer that answers equal calls once."""

    inner: Answerer
    memo: Memo

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the reading, which equal calls share.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        ids = None if passages is None else tuple(passage.id for passage in passages)
        return await self.memo.get(("answer", query, ids), lambda: self.inner.answer(query, passages))


class SharedRetriever:
    """Retriever that makes equal searches once."""

    def __init__(self, inner: Retriever, memo: Memo) -> None:
        self.name = inner.name
        self._inner, self._memo = inner, memo

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the passages, which equal searches share.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: Filter of the search.
        """
        key = ("retrieve", query, topk, None if where is None else str(where))
        return await self._memo.get(key, lambda: search(self._inner, query, topk, where))

    async def aclose(self) -> None:
        """Close the retriever."""
        await self._inner.aclose()


class Waits:
    """Seconds with unfinished requests to frozen agents or the retriever, counting parallel requests once.

    Args:
        own: Roles of the trained agent, whose replies do not count.
    """

    def __init__(self, own: Collection[str] = ()) -> None:
        self._own = own
        self._open: dict[int, float] = {}
        self._spans: list[tuple[float, float]] = []

    def __call__(self, event: Event) -> None:
        """Observe a question."""
        now = perf_counter()
        if isinstance(event, AgentStarted) and event.role not in self._own:
            self._open[event.call] = now
        elif isinstance(event, AgentFinished) and event.call in self._open:
            self._spans.append((self._open.pop(event.call), now))
        elif isinstance(event, Searched):
            self._spans.append((now - event.seconds, now))

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count the time inside the block as a request that does not belong to a question."""
        began = perf_counter()
        try:
            yield
        finally:
            self._spans.append((began, perf_counter()))

    def add(self, other: Waits) -> None:
        """Add the time of a question."""
        self._spans += other._spans

    @property
    def seconds(self) -> float:
        """Total seconds so far."""
        total = end = 0.0
        for first, last in sorted(self._spans):
            total += max(0.0, last - max(first, end))
            end = max(end, last)
        return total


class Deadline:
    """Time limit for work, which is paused inside `paused` blocks.

    Args:
        seconds: The limit; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._timer: asyncio.Timeout | None = None

    async def bound(self, work: Awaitable[T]) -> T:
        """Return the result of `work`. Raises `TimeoutError` at the deadline."""
        async with asyncio.timeout(self._seconds) as self._timer:
            return await work

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time inside this block from the limit."""
        timer, loop = self._timer, asyncio.get_running_loop()
        when = timer.when() if timer and not timer.expired() else None
        if timer is None or when is None:
            yield
            return
        remaining = when - loop.time()
        timer.reschedule(None)
        try:
            yield
        finally:
            timer.reschedule(loop.time() + remaining)

"""Micro-batches: keys requested at about the same time are computed together, and recent results are kept.

If nothing is being computed, the first key to arrive waits `window` seconds for others. While the maximum number of
batches is being computed, new keys are collected. A key that is being computed is not computed again. Several event
loops may share a batcher: each has its own batches, and all share the kept results. A failure is passed to all callers
that wait for the batch, and is not kept.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from pyrag._io.threads import PerLoop

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")

Compute = Callable[[Sequence[Key]], Awaitable[Iterable[Row]]]


class Batcher(Generic[Key, Row]):
    """Batcher over `compute`, which takes at most `max_batch` distinct keys and returns a row for each.

    The `cached` most recent rows are kept. Up to `width` batches are computed at once, with the keys divided among
    them.
    """

    def __init__(
        self, compute: Compute[Key, Row], *, window: float, max_batch: int, cached: int, width: int = 1
    ) -> None:
        self._cached = cached
        self._rows: OrderedDict[Key, Row] = OrderedDict()
        make: Callable[[], _Queue[Key, Row]] = partial(_Queue, compute, self.remember, window, max_batch, width)
        self._queues = PerLoop(make)

    def get(self, key: Key) -> asyncio.Future[Row]:
        """Return the row of a key, as a future of the running loop."""
        loop = asyncio.get_running_loop()
        row = self._rows.pop(key, None) if self._rows else None
        if row is not None:
            self._rows[key] = row  # now the most recent
            known: asyncio.Future[Row] = loop.create_future()
            known.set_result(row)
            return known
        return self._queues.get().ask(key, loop)

    async def get_all(self, keys: Sequence[Key]) -> list[Row]:
        waiting = [self.get(key) for key in keys]
        return [await future for future in waiting]

    def remember(self, rows: Iterable[tuple[Key, Row]]) -> None:
        if self._cached:
            self._rows.update(rows)
        while len(self._rows) > self._cached:
            self._rows.popitem(last=False)


class _Queue(Generic[Key, Row]):
    """Batches of one event loop."""

    def __init__(
        self, compute: Compute[Key, Row], remember: Callable[[Iterable[tuple[Key, Row]]], None],
        window: float, max_batch: int, width: int,
    ) -> None:  # fmt: skip
        self._compute = compute
        self._remember = remember
        self._window = window
        self._max_batch, self._width = max_batch, width
        self._open: list[Key] = []  # asked for, not begun
        # Each caller has its own future, so that cancelling it does not cancel the batch of the others.
        self._waiting: dict[Key, list[asyncio.Future[Row]]] = {}
        self._batches: set[asyncio.Future[Iterable[Row]]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, key: Key, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Row]:
        future: asyncio.Future[Row] = loop.create_future()
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(future)
            return future
        self._waiting[key] = [future]
        self._open.append(key)
        if len(self._open) >= self._max_batch * self._width:
            self._begin()
        elif self._timer is None and len(self._batches) < self._width:
            self._timer = loop.call_later(self._window, self._begin)
        return future

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._open and (free := self._width - len(self._batches)):
            size = min(-(-len(self._open) // free), self._max_batch)
            keys, self._open = self._open[:size], self._open[size:]
            batch = asyncio.ensure_future(self._compute(keys))
            self._batches.add(batch)
            batch.add_done_callback(partial(self._ended, keys))

    def _ended(self, keys: list[Key], batch: asyncio.Future[Iterable[Row]]) -> None:
        self._batches.remove(batch)
        try:
            rows = list(zip(keys, batch.result(), strict=True))
        except BaseException as error:
            self._fail(keys, error)
            if isinstance(error, Exception):
                self._begin()
            else:  # the loop is shutting down
                self._fail(self._open, error)
                self._open = []
            return
        self._remember(rows)
        for key, row in rows:
            for future in _undone(self._waiting.pop(key)):
                future.set_result(row)
        self._begin()

    def _fail(self, keys: Iterable[Key], error: BaseException) -> None:
        for key in keys:
            for future in _undone(self._waiting.pop(key)):
                if isinstance(error, Exception):
                    future.set_exception(error)
                    future.exception()  # mark it as retrieved: if nobody waits any more, nothing is to be logged
                else:
                    future.cancel()


def _undone(futures: Iterable[asyncio.Future[Row]]) -> Iterator[asyncio.Future[Row]]:
    return (future for future in futures if not future.done())

"""Micro-batches: what is asked for at about the same time is computed together, recent results are remembered.

The first key that comes while nothing is computed waits `window` seconds for company; while a batch is computed the
next one gathers. A key that is being computed is not computed again. Several event loops may share one object: each
has batches of its own, the memory of finished keys is common. A failure reaches all that wait for the batch, and is
not remembered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")

Compute = Callable[[Sequence[Key]], Awaitable[Iterable[Row]]]


class Batcher(Generic[Key, Row]):
    """`compute` gets at most `max_batch` different keys and gives one row for each; `cached` rows are remembered."""

    def __init__(self, compute: Compute[Key, Row], *, window: float, max_batch: int, cached: int) -> None:
        self._compute = compute
        self._window = window
        self._max_batch = max_batch
        self._cached = cached
        self._rows: OrderedDict[Key, Row] = OrderedDict()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue[Key, Row]] = WeakKeyDictionary()

    async def get_all(self, keys: Sequence[Key]) -> list[Row]:
        queue = self._queue()
        # Shielded: a question that is cancelled must not take the batch of the others with it.
        waiting = [self._known(key) or asyncio.shield(queue.ask(key)) for key in keys]
        return [one.row if isinstance(one, _Known) else await one for one in waiting]

    def _known(self, key: Key) -> _Known[Row] | None:
        row = self._rows.pop(key, None)
        if row is None:
            return None
        self._rows[key] = row  # now the most recent
        return _Known(row)

    def remember(self, key: Key, row: Row) -> None:
        self._rows[key] = row
        while len(self._rows) > self._cached:
            self._rows.popitem(last=False)

    def _queue(self) -> _Queue[Key, Row]:
        loop = asyncio.get_running_loop()
        queue = self._loops.get(loop)
        if queue is None:
            queue = self._loops[loop] = _Queue(self._compute, self.remember, self._window, self._max_batch)
        return queue


class _Known(Generic[Row]):
    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row


class _Queue(Generic[Key, Row]):
    """The batches of one event loop."""

    def __init__(
        self, compute: Compute[Key, Row], remember: Callable[[Key, Row], None], window: float, max_batch: int
    ) -> None:
        self._compute = compute
        self._remember = remember
        self._window = window
        self._max_batch = max_batch
        self._open: dict[Key, asyncio.Future[Row]] = {}  # asked for, not begun
        self._running: dict[Key, asyncio.Future[Row]] = {}
        self._worker: asyncio.Task[None] | None = None
        self._full = asyncio.Event()

    def ask(self, key: Key) -> asyncio.Future[Row]:
        future = self._open.get(key) or self._running.get(key)
        if future is None:
            future = self._open[key] = asyncio.get_running_loop().create_future()
            # Nobody may be left to hear of a failure; that is no reason to complain in the log.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            if len(self._open) >= self._max_batch:
                self._full.set()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return future

    async def _work(self) -> None:
        try:
            await self._gather()
            while self._open:
                keys = list(self._open)[: self._max_batch]
                self._running = {key: self._open.pop(key) for key in keys}
                await self._run(self._running)
        finally:
            self._worker, self._running = None, {}
            for future in self._open.values():  # only where the loop is shutting down
                future.cancel()
            self._open = {}

    async def _gather(self) -> None:
        self._full.clear()
        if len(self._open) < self._max_batch:
            try:
                await asyncio.wait_for(self._full.wait(), self._window)
            except TimeoutError:
                return

    async def _run(self, batch: dict[Key, asyncio.Future[Row]]) -> None:
        try:
            rows = await self._compute(list(batch))
        except BaseException as error:
            for future in batch.values():
                if not future.done():
                    future.cancel() if isinstance(error, asyncio.CancelledError) else future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for (key, future), row in zip(batch.items(), rows, strict=True):
            self._remember(key, row)
            if not future.done():
                future.set_result(row)

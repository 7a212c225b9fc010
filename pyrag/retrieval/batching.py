"""Micro-batches: what is asked for at about the same time is computed together, recent results are remembered.

The first key that comes while nothing is computed waits `window` seconds for company; while a batch is computed the
next one gathers. A key that is being computed is not computed again. Several event loops may share one object: each
has batches of its own, the memory of finished keys is common. A failure reaches all that wait for the batch, and is
not remembered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
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
        waiting = [self._known(key) or queue.ask(key) for key in keys]
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
        # Who waits has a future of his own: one that is cancelled must not take the batch of the others with it.
        self._open: dict[Key, list[asyncio.Future[Row]]] = {}  # asked for, not begun
        self._running: dict[Key, list[asyncio.Future[Row]]] = {}
        self._worker: asyncio.Task[None] | None = None
        self._full = asyncio.Event()

    def ask(self, key: Key) -> asyncio.Future[Row]:
        future: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
        waiting = self._open.get(key) or self._running.get(key)
        if waiting is None:
            waiting = self._open[key] = []
            if len(self._open) >= self._max_batch:
                self._full.set()
        waiting.append(future)
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
            for future in chain.from_iterable(self._open.values()):  # only where the loop is shutting down
                future.cancel()
            self._open = {}

    async def _gather(self) -> None:
        self._full.clear()
        if len(self._open) < self._max_batch:
            try:
                await asyncio.wait_for(self._full.wait(), self._window)
            except TimeoutError:
                return

    async def _run(self, batch: dict[Key, list[asyncio.Future[Row]]]) -> None:
        try:
            rows = await self._compute(list(batch))
        except BaseException as error:
            for future in _undone(chain.from_iterable(batch.values())):
                _fail(future, error)
            if not isinstance(error, Exception):
                raise
            return
        for (key, waiting), row in zip(batch.items(), rows, strict=True):
            self._remember(key, row)
            for future in _undone(waiting):
                future.set_result(row)


def _fail(future: asyncio.Future[Row], error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        future.cancel()
        return
    future.set_exception(error)
    future.exception()  # nobody may be left to hear of it, which is no reason to complain in the log


def _undone(futures: Iterable[asyncio.Future[Row]]) -> Iterator[asyncio.Future[Row]]:
    return (future for future in futures if not future.done())

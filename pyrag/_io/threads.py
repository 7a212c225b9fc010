"""Thread pool of a process for encoders and vector searches, and values that belong to an event loop.

Each search runs on a single thread, and several run at the same time: if a library started its own threads for every
query, the questions of a batch would compete for the cores. Index builds do not use the pool; they use all cores.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import Event, Thread
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")


def cores() -> int:
    """Return the number of cores that this process may use, which a container may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LastingPool(ThreadPoolExecutor):
    """Thread pool that still works after the main thread has ended, when Python closes all pools."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a function in the pool, or in its own thread once Python has closed all pools.

        Args:
            fn: Function to run.
            *args: Positional arguments of the function.
            **kwargs: Keyword arguments of the function.
        """
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            return in_own_thread(lambda: fn(*args, **kwargs))


def _work(future: Future[T], function: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)


@cache
def _pool() -> ThreadPoolExecutor:
    return LastingPool(max_workers=cores(), thread_name_prefix="pyrag-vectors")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has no threads of its parent


def in_own_thread(function: Callable[[], T]) -> Future[T]:
    """Run a function in its own thread, for work of seconds that belongs to no event loop."""
    future: Future[T] = Future()
    Thread(target=_work, args=[future, function], name="pyrag-work").start()
    return future


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in the pool.

    Args:
        function: Function to run.
        *args: Positional arguments of the function.
        **kwargs: Keyword arguments of the function.
    """
    return await asyncio.get_running_loop().run_in_executor(_pool(), lambda: function(*args, **kwargs))


class StoppedError(Exception):
    """End of work in a thread whose result nobody waits for any more."""


class Stop:
    """Signal to work in a thread that nobody waits for its result any more."""

    def __init__(self) -> None:
        self._event = Event()

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise `StoppedError` if the signal is set."""
        if self._event.is_set():
            raise StoppedError


never = Stop()
"""Signal that is never set, for work that cannot be stopped."""


async def in_stoppable_thread(function: Callable[[Stop], T]) -> T:
    """Run a function in the pool, with a signal that is set if the caller is cancelled."""
    stop = Stop()
    try:
        return await in_thread(function, stop)
    except asyncio.CancelledError:
        stop.set()
        raise


class PerLoop(Generic[T]):
    """Values by event loop, each created on first use and dropped with its loop."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Return the running loop's value."""
        loop = asyncio.get_running_loop()
        try:
            return self._values[loop]
        except KeyError:
            return self._values.setdefault(loop, self._make())

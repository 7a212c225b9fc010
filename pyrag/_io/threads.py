"""The one thread pool of a process for encoders and vector searches, and values that belong to one event loop.

Each search runs on one thread, and several run side by side: a library that starts a team of its own for every query
would have the questions of a batch fight for the same cores. Building an index is not done here, and uses all cores.
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
    """Return the number of cores this process may use; in a container fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LastingPool(ThreadPoolExecutor):
    """A pool that goes on working when the main thread has ended and others have not, where Python closes all pools."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a function in the pool, or in a thread of its own once Python has closed all pools.

        Args:
            fn: Function to run.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
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
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork takes no threads along


def in_own_thread(function: Callable[[], T]) -> Future[T]:
    """Run a function in a thread of its own, for work of seconds that no event loop owns."""
    future: Future[T] = Future()
    Thread(target=_work, args=[future, function], name="pyrag-work").start()
    return future


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in the pool.

    Args:
        function: Function to run.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    return await asyncio.get_running_loop().run_in_executor(_pool(), lambda: function(*args, **kwargs))


class StoppedError(Exception):
    """Work in a thread ended because nobody waits for it any more."""


class Stop:
    """A sign for work in a thread that nobody waits for it any more."""

    def __init__(self) -> None:
        self._event = Event()

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise `StoppedError` once the sign is set."""
        if self._event.is_set():
            raise StoppedError


never = Stop()
"""The sign for work that is always finished."""


async def in_stoppable_thread(function: Callable[[Stop], T]) -> T:
    """Run a function in the pool, which gets a sign that is set once its caller is cancelled."""
    stop = Stop()
    try:
        return await in_thread(function, stop)
    except asyncio.CancelledError:
        stop.set()
        raise


class PerLoop(Generic[T]):
    """One value for each event loop, made at its first use there and forgotten with the loop."""

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

"""Event loop in its own thread, for synchronous callers: any thread can give it work and wait for the result.

Events of the work are delivered in the waiting thread, so that an observer never runs at the same time as its caller.
Ctrl-C there cancels the work. The thread is a daemon, which the interpreter ends cleanly at exit.

A fork copies the loop's memory without its thread. `disown` makes the copy harmless: parent and child share the
descriptors that the loop watches, and the parent must not be affected if the child closes them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import queue
import selectors
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from pyrag._io.threads import LastingPool
from pyrag.errors import UsageError

T = TypeVar("T")
Close = Callable[[], Awaitable[None]]
Report = Callable[[Any], None]

CANCEL_SECONDS = 10.0  # limit for a cancelled call to end its requests, after which its caller continues
EXIT_SECONDS = 5.0  # limit for closing when the interpreter ends
_CLOSED = "this PyRAG was closed while it answered: close it after the last question"
_INSIDE = "a synchronous call from inside pyrag's own event loop would wait for itself: use `await rag.aask(…)` there"


class _LoopCall(Generic[T]):
    """Coroutine, and the thread that waits for it."""

    def __init__(self, start: Callable[[Report], Coroutine[Any, Any, T]]) -> None:
        self._start = start
        self._reports: queue.SimpleQueue[tuple[Any] | None] = queue.SimpleQueue()
        self._task: asyncio.Task[None] | None = None
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.forsaken = False  # True if its caller, a daemon, ends with the interpreter

    def begin(self) -> None:
        """Start the coroutine. Called in the loop's thread."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            self._result.append(await self._start(lambda event: self._reports.put((event,))))
        except BaseException as error:
            self.fail(error)
        else:
            self._end()

    def fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end()

    def _end(self) -> None:
        if not self.forsaken:
            self._reports.put(None)

    def cancel(self) -> None:
        """Cancel the coroutine. Called in the loop's thread."""
        if self._task is None:
            self.fail(asyncio.CancelledError())
        else:
            self._task.cancel()

    def wait(self, observer: Report) -> None:
        """Wait for the result, and meanwhile pass events to the observer. Called in the caller's thread."""
        while (report := self._reports.get()) is not None:
            observer(report[0])

    def result(self) -> T:
        if isinstance(self._error, asyncio.CancelledError):
            raise UsageError(_CLOSED) from None
        if self._error is not None:
            raise self._error
        return self._result[0]

    def wait_for_end(self) -> None:
        with contextlib.suppress(queue.Empty):
            while self._reports.get(timeout=CANCEL_SECONDS) is not None:
                pass


class LoopThread:
    """Running event loop. It starts with the object and runs until `stop`, or until the interpreter ends.

    `close` is awaited at the end of the loop. If it fails, `close_error` holds the error after `join`.
    """

    def __init__(self, close: Close) -> None:
        self.close_error: Exception | None = None
        self._lock = threading.RLock()  # a garbage collection may call `stop` in the middle of `run`
        self._calls: set[_LoopCall[Any]] = set()
        self._stopping = False
        self._close = close
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._loop.set_default_executor(LastingPool(thread_name_prefix="pyrag"))
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="pyrag-loop", daemon=True)
        _running.add(self)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return not self._stopping and self._thread.is_alive()

    def run(self, start: Callable[[Report], Coroutine[Any, Any, T]], observer: Report) -> T:
        """Run a coroutine until it finishes.

        Args:
            start: Function that makes the coroutine. Its argument is the function that reports events.
            observer: Called with each event, in this thread.

        Raises:
            UsageError: It was called from the loop's own thread, or the loop was stopped meanwhile.
        """
        if threading.current_thread() is self._thread:
            raise UsageError(_INSIDE)
        call = _LoopCall(start)
        try:
            self._begin(call)
            call.wait(observer)
        except BaseException:  # Ctrl-C, or the observer failed
            self._cancel(call)
            raise
        finally:
            self._calls.discard(call)
        return call.result()

    def _begin(self, call: _LoopCall[Any]) -> None:
        with self._lock:
            if not self.alive:
                raise UsageError(_CLOSED)
            self._calls.add(call)
            self._loop.call_soon_threadsafe(call.begin)

    def _cancel(self, call: _LoopCall[Any]) -> None:
        """Cancel a call and wait until its work has ended."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the call
            self._loop.call_soon_threadsafe(call.cancel)
            call.wait_for_end()

    def stop(self) -> None:
        """Cancel running work, close, and end the thread, without waiting for it; see `join`."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            with contextlib.suppress(RuntimeError):  # ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)

    def forsake_callers(self) -> None:
        for call in list(self._calls):
            call.forsaken = True

    def join(self, seconds: float | None = None) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join(seconds)

    def disown(self) -> None:
        """Release the descriptors that the parent also watches. Called in a forked child before it closes anything."""
        if self in _inherited:
            return
        _inherited.append(self)
        _running.discard(self)
        self._stopping = True
        self._loop.set_exception_handler(lambda loop, context: None)  # ignore the parent's unfinished work
        null = os.open(os.devnull, os.O_RDWR)
        watched_keys = self._selector.get_map() or {}
        for key in list(watched_keys.values()):
            os.dup2(null, key.fd, inheritable=False)
        os.close(null)
        if hasattr(self._selector, "fileno"):
            with contextlib.closing(selectors.DefaultSelector()) as own:
                os.dup2(own.fileno(), self._selector.fileno(), inheritable=False)

    def _serve(self) -> None:
        with contextlib.suppress(Exception), asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._main())
            except BaseException as error:  # SystemExit and KeyboardInterrupt of a task end the loop
                self._fail(error)
        self._fail(RuntimeError("the event loop has ended"))
        _running.discard(self)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._stopping = True
        for call in list(self._calls):
            call.fail(error)

    async def _main(self) -> None:
        await self._stop.wait()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        try:
            await self._close()
        except Exception as error:  # for the thread that waits in `join`
            self.close_error = error


_running: set[LoopThread] = set()


def _end_all() -> None:
    """End all threads when the interpreter ends."""
    for thread in list(_running):
        thread.forsake_callers()
        thread.stop()
    for thread in list(_running):
        thread.join(EXIT_SECONDS)


def _forget_all() -> None:
    """Make the copies of all loop threads harmless in a forked child."""
    for thread in list(_running):
        thread.disown()


_inherited: list[LoopThread] = []  # kept alive, since destructors would act on resources of the parent
weakref.finalize(LoopThread, _end_all).atexit = False  # `weakref` registers its exit handler with the first finalizer,
atexit.register(_end_all)  # so this handler runs before it, while no finalizer has closed resources of running loops
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

"""Owner of engines: opens them once, answers with them in any thread, and closes them.

`PyRAG`, the HTTP service and the rewards of a training run each have one. An index that is updated is opened again by
its retriever (`pyrag.retrieval.following`).
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyrag._io import forks
from pyrag._io.loop_thread import LoopThread, Report
from pyrag.runtime.own_parts import OwnParts
from pyrag.settings import Settings
from pyrag.trace.events import Observer, ignore
from pyrag.trace.model import Trace

if TYPE_CHECKING:
    from pyrag.episode.ledger import Recording
    from pyrag.runtime.engines import Engines
    from pyrag.runtime.question_request import QuestionRequest

    _Opened = tuple[Engines, Recording | None]

T = TypeVar("T")


class EngineOwner:
    """Owner of engines, for any number of questions, indexes, threads, event loops and forks.

    Args:
        settings: Settings that name the engines.
        own: Objects of the caller in place of parts that the settings name.
        engines: Engines that are open already, which the owner closes.

    Raises:
        ConfigError: A setting is invalid, or an object of the caller lacks a method.
        DataError: A file that the settings name cannot be read.
    """

    def __init__(self, settings: Settings, own: OwnParts | None = None, engines: Engines | None = None) -> None:
        self.settings = settings
        self._own = own or OwnParts()
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._opened: _Opened | None = self._open() if engines is None else _with_recording(engines)
        forks.watch(self)

    def _open(self) -> _Opened:
        from pyrag.runtime.engines import open_engines

        own = self._own
        engines = open_engines(self.settings, own.retriever, tools=own.tools, llm=own.llm, answerer=own.answerer)
        engines.confirm = own.confirm
        return _with_recording(engines)

    def _here(self) -> _Opened:
        if (opened := self._opened) is None:  # in the child of a fork, which opens its own
            with self._lock:
                opened = self._opened = self._opened or self._open()
        return opened

    @property
    def engines(self) -> Engines:
        """Engines that answer questions: agents, retriever and sandbox."""
        return self._here()[0]

    async def answer(
        self,
        request: QuestionRequest,
        *,
        engines: Engines | None = None,
        observer: Observer = ignore,
        keep: bool = False,
        resume: str | Path | None = None,
    ) -> Trace:
        """Answer a question or run a program. Every failure is in `Trace.error`.

        Args:
            request: The question or program, with its limits.
            engines: These engines with other agents, tools or another retriever; None for the engines as they are.
            observer: Called with each event.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.
            resume: File from which the same request continues after a kill or a limit.

        Raises:
            UsageError: `resume` belongs to another request, or another process writes it.
            StorageError: `resume` cannot be read or written.
        """
        from pyrag.runtime.answering import answer

        own, recording = self._here()
        engines = engines or own
        run = partial(answer, request, engines, observer=observer, recording=recording, keep=keep)
        if resume is None:
            trace = await run(gate=None if recording else _gate(request, engines))
        else:  # without a gate, since nobody knows what has been paid before
            from pyrag.runtime.journal import finish, resumable

            with resumable(resume, request.identity, request.settings, engines.retriever) as journal:
                trace = await run(journal=journal)
                finish(journal, trace)
        if request.returns is None or request.returns.make is None:
            return trace
        return replace(trace, value=request.returns.object(trace.value))

    def run(self, start: Callable[[Report], Coroutine[Any, Any, T]], observer: Report = ignore) -> T:
        """Run a coroutine in the owner's own event loop, and return its result in the calling thread.

        Args:
            start: Makes the coroutine. Its argument is a function that reports events to the calling thread.
            observer: Called with each event, in the calling thread.
        """
        return self._loop_thread().run(start, observer)

    async def aclose(self) -> None:
        """Close the engines inside an event loop. Connections that other loops opened are closed there."""
        thread = self._take_thread()
        if thread is not None:
            thread.stop()
            await asyncio.to_thread(thread.join)
        await self.engines.aclose()

    def close(self) -> None:
        """End worker processes and connections. The owner can be used again afterwards."""
        self._loop_thread()  # the thread closes the engines before it ends
        thread = self._take_thread()
        if thread is not None:
            thread.stop()
            thread.join()
            if thread.close_error is not None:
                raise thread.close_error

    def _loop_thread(self) -> LoopThread:
        engines = self.engines
        with self._lock:
            if self._thread is None or not self._thread.alive:
                self._thread = LoopThread(engines.aclose)
                self._finalizer = weakref.finalize(self, self._thread.stop)
                self._finalizer.atexit = False  # the thread handles exit itself
            return self._thread

    def _take_thread(self) -> LoopThread | None:
        with self._lock:
            thread, self._thread = self._thread, None
            if self._finalizer is not None:
                self._finalizer.detach()
            return thread

    def after_fork(self) -> None:
        """Drop the parent's loop and engines in a forked child, where no other thread runs."""
        if self._finalizer is not None:
            self._finalizer.detach()
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # otherwise the library warns of the fork on stderr
        if self._thread is not None:
            self._thread.disown()
        if self._opened is not None:
            self._opened[0].sandbox.close()
        forks.keep((self._thread, self._opened))
        self._lock, self._thread, self._opened = threading.Lock(), None, None

    def __reduce__(self) -> tuple[Any, ...]:
        return EngineOwner, (self.settings, self._own)


def _with_recording(engines: Engines) -> _Opened:
    if engines.recording is None:
        return engines, None
    from pyrag.episode.ledger import Recording

    return engines, Recording.load(engines.recording)


def _gate(request: QuestionRequest, engines: Engines) -> Any:
    """Return the gate of a request whose program may cost too much; None for any other."""
    if not request.gated:
        return None
    from pyrag.runtime.explain.gate import CostGate

    return CostGate(engines, request.settings, plans=request.program is None)

"""Owner of a `PyRAG` object's engines, and of the event loop that synchronous calls use."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pyrag._io import forks
from pyrag._io.loop_thread import LoopThread
from pyrag.runtime.own_parts import OwnParts
from pyrag.settings import Settings

if TYPE_CHECKING:
    from pyrag.episode.ledger import Recording
    from pyrag.runtime.engines import Engines

Owner = TypeVar("Owner", bound="EngineOwner")


class EngineOwner:
    """Engines of one object, for any number of threads, event loops and forks."""

    def _start(self, settings: Settings, objects: OwnParts) -> None:
        self.settings = settings
        self._objects = objects
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._opened: tuple[Engines, Recording | None] | None = self._open()
        forks.watch(self)

    def _open(self) -> tuple[Engines, Recording | None]:
        from pyrag.episode.ledger import Recording
        from pyrag.runtime.engines import open_engines

        own = self._objects
        engines = open_engines(self.settings, own.retriever, tools=own.tools, llm=own.llm, answerer=own.answerer)
        engines.confirm = own.confirm
        return engines, None if engines.recording is None else Recording.load(engines.recording)

    def _engines_here(self) -> tuple[Engines, Recording | None]:
        if self._opened is None:  # in the child of a fork, which opens its own
            with self._lock:
                self._opened = self._opened or self._open()
        return self._opened

    @property
    def engines(self) -> Engines:
        """Engines that answer: agents, retriever and sandbox."""
        return self._engines_here()[0]

    async def aclose(self) -> None:
        """Close the object inside an event loop. Connections that other loops opened are closed there."""
        thread = self._take_thread()
        if thread is not None:
            thread.stop()
            await asyncio.to_thread(thread.join)
        await self.engines.aclose()

    def close(self) -> None:
        """End worker processes and connections. The object can be used again afterwards."""
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
        """Drop the parent's loop and engines in the child of a fork, where no other thread runs."""
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
        return _reopened, (type(self), self.settings, self._objects)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _reopened(kind: type[Owner], settings: Settings, objects: OwnParts) -> Owner:
    made = kind.__new__(kind)
    made._start(settings, objects)
    return made

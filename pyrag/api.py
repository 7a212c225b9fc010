"""The Python interface: one class, asynchronous inside, with one thin synchronous way in."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pyrag.config import Settings, make_settings
from pyrag.errors import UsageError
from pyrag.events import Observer, ignore
from pyrag.retrieval.open import QDRANT
from pyrag.retrieval.protocol import Retriever
from pyrag.trace import UNKNOWN, Answer, Trace, TraceError

if TYPE_CHECKING:
    from pyrag.engines import Engines

T = TypeVar("T")


class PyRAG:
    """Answers questions by programs over `retrieve` and `answer`.

    Args:
        llm: the engine, such as `openai:MODEL@http://host:port/v1`; `embedded` needs no model.
        plan_llm: another engine for the Plan agent (a coder model).
        retriever: URL of a `/retrieve` server, `qdrant:COLLECTION@PLACE`, an index folder, or an object with the
            `Retriever` protocol; the bundled corpus if None.
        settings: any field of `pyrag.Settings`.

    Use it as a (synchronous or asynchronous) context manager, or close it, to end its worker processes early.

    Raises:
        ConfigError: a setting is unknown or wrong.
        DataError: the index cannot be opened.
    """

    def __init__(
        self,
        llm: str = "embedded",
        *,
        plan_llm: str | None = None,
        retriever: str | Path | Retriever | None = None,
        **settings: Any,
    ) -> None:
        given = {"llm": llm, "plan_llm": plan_llm, **settings}
        if isinstance(retriever, str | Path):
            named = str(retriever).startswith(("http://", "https://", QDRANT))
            given |= {"retriever" if named else "index": str(retriever)}
            retriever = None
        self._start(make_settings(given), retriever)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """For callers that have loaded their settings, such as the command line."""
        self = cls.__new__(cls)
        self._start(settings, None)
        return self

    def _start(self, settings: Settings, retriever: Retriever | None) -> None:
        from pyrag.engines import open_engines
        from pyrag.ledger import Recording

        self.settings = settings
        self.engines = open_engines(settings, retriever)
        path = self.engines.recording
        self._recording = None if path is None else Recording.load(path)
        self._runner: asyncio.Runner | None = None

    async def aask(self, question: str, *, observer: Observer = ignore, keep: bool = False) -> Trace:
        """Answers one question. A failure is in `Trace.error`; only a question that is empty or no text raises
        (`UsageError`).

        Args:
            observer: called with each event as it happens.
            keep: keep requests and replies in the trace, so that it can be replayed.
        """
        from pyrag.runtime import answer_question

        return await answer_question(
            question, self.engines, self.settings, observer=observer, recording=self._recording, keep=keep
        )

    def ask(self, question: str, *, observer: Observer = ignore, keep: bool = False) -> Trace:
        """Like `aask`, for code without an event loop."""
        return self._run(self.aask(question, observer=observer, keep=keep))

    async def aask_many(
        self, questions: Iterable[str], *, concurrency: int | None = None, keep: bool = False
    ) -> AsyncIterator[Trace]:
        """Answers many questions, `concurrency` at a time, yielding traces in the order of the questions."""
        running: deque[asyncio.Task[Trace]] = deque()
        waiting = iter(questions)
        limit = concurrency or self.settings.concurrency
        slots = asyncio.Semaphore(limit)

        async def one(question: str) -> Trace:
            async with slots:
                try:
                    return await self.aask(question, keep=keep)
                except UsageError as error:  # one bad line must not end a batch, and neither must one of our mistakes
                    failure = TraceError(error.kind, str(error), error.exit_code)
                except Exception as error:
                    cure = "a mistake of pyrag's own; asked alone, the question shows its traceback"
                    failure = TraceError("crash", f"{type(error).__name__}: {error} ({cure})")
                return Trace(question, Answer(UNKNOWN, known=False), error=failure)

        try:
            while True:
                # A slow question must not leave slots idle: those behind it start, up to a bounded distance.
                while len(running) < 4 * limit and (question := next(waiting, None)) is not None:
                    running.append(asyncio.create_task(one(question)))
                if not running:
                    return
                yield await running[0]
                running.popleft()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def aclose(self) -> None:
        await self.engines.aclose()

    def close(self) -> None:
        """Ends worker processes and connections; the object can be used again afterwards."""
        self._run(self.aclose())
        if self._runner is not None:
            self._finalizer.detach()
            self._runner.close()
            self._runner = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            work.close()
            raise UsageError("ask() cannot be called from a running event loop: use `await rag.aask(…)` there")
        if self._runner is None:
            self._runner = asyncio.Runner()
            self._finalizer = weakref.finalize(self, _shut_down, self._runner, self.engines)
        return self._runner.run(work)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _shut_down(runner: asyncio.Runner, engines: Engines) -> None:
    """Runs when a PyRAG that was not closed is collected, at the latest when the interpreter ends."""
    runner.run(engines.aclose())
    runner.close()

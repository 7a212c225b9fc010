"""Who answers the questions of a benchmark: engines in this process, or in worker processes of ours.

A worker is this module run as a script: settings and jobs come in as JSON lines, traces go out as JSON lines. It ends
when its input does, so that no worker outlives a run that was killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pyrag.episode.ledger import Recording
from pyrag.errors import PyRAGError
from pyrag.evaluation.runs.batch import QuestionJob, ask_safely
from pyrag.evaluation.runs.journal import FileJournal, journal_path
from pyrag.evaluation.scoring import asked
from pyrag.runtime.engines import open_engines
from pyrag.runtime.run import answer_question
from pyrag.settings import Settings
from pyrag.trace.model import Trace

_MAX_LINE = 1 << 30  # bytes of a trace between processes


class LocalAsk:
    """Answers with one set of engines, whatever the method. With a run's folder in `journals`, questions go on at the
    step that an earlier process had reached."""

    def __init__(self, settings: Settings, journals: Path | None = None) -> None:
        self._settings = settings
        self._engines = open_engines(settings)
        self._recording = Recording.load(self._engines.recording) if self._engines.recording else None
        self._journals = journals

    async def __call__(self, job: QuestionJob) -> Trace:
        with self._journal(job) as journal:
            return await answer_question(
                asked(job.question),
                self._engines,
                replace(self._settings, method=job.method),
                recording=self._recording,
                journal=journal,
            )

    @contextmanager
    def _journal(self, job: QuestionJob) -> Iterator[FileJournal | None]:
        if self._journals is None:
            yield None
            return
        journal = FileJournal(journal_path(self._journals, *job.key))
        try:
            yield journal
        finally:
            journal.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._engines.aclose()


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told first."""

    settings: Settings
    journals: str | None


class CrashError(PyRAGError):
    """A worker process ended while it answered."""

    kind = "crash"


class WorkersAsk:
    """Hands each question to the least busy of several worker processes; one that dies is replaced."""

    def __init__(self, settings: Settings, journals: Path | None, count: int) -> None:
        # What an endpoint bears is theirs together: each has a limiter of its own.
        share = replace(settings, max_in_flight=max(1, settings.max_in_flight // count))
        order = Order(share, None if journals is None else str(journals))
        self._workers = [_Worker(order) for _ in range(count)]

    async def __call__(self, job: QuestionJob) -> Trace:
        return await min(self._workers, key=lambda one: one.busy).ask(job)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for one in self._workers:
            await one.aclose()


class _Worker:
    """One process; started by its first question."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[Trace]] = {}
        self._last = 0
        self.busy = 0

    async def ask(self, job: QuestionJob) -> Trace:
        self.busy += 1
        try:
            process = await self._running()
            answer: asyncio.Future[Trace] = asyncio.get_running_loop().create_future()
            self._last = number = self._last + 1
            self._waiting[number] = answer
            assert process.stdin is not None
            process.stdin.write(_line((number, job)))
            return await answer
        finally:
            self.busy -= 1

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None:
                pipe = asyncio.subprocess.PIPE
                command = [sys.executable, "-m", __name__]
                # Out of the terminal's group: Ctrl-C is ours to handle.
                process = await asyncio.create_subprocess_exec(
                    *command, stdin=pipe, stdout=pipe, limit=_MAX_LINE, start_new_session=True
                )
                assert process.stdin is not None
                process.stdin.write(_line(self._order))
                self._process, self._reader = process, asyncio.create_task(self._read(process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        import msgspec

        assert process.stdout is not None
        decoder = msgspec.json.Decoder(tuple[int, Trace])
        while line := await process.stdout.readline():
            number, trace = decoder.decode(line)
            waiting = self._waiting.pop(number, None)
            if waiting and not waiting.done():
                waiting.set_result(trace)
        self._process = None
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(CrashError("the worker process ended while it answered: its question is open"))
        self._waiting.clear()

    async def aclose(self) -> None:
        process, reader = self._process, self._reader
        if process is not None and process.stdin is not None:
            process.stdin.close()
            await process.wait()
        if reader is not None:
            await reader


def _line(content: object) -> bytes:
    import msgspec

    return msgspec.json.encode(content) + b"\n"


async def _work() -> None:
    """The worker's side."""
    import msgspec

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever else prints must not break the lines
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    order = msgspec.json.decode(await reader.readline(), type=Order)
    decoder = msgspec.json.Decoder(tuple[int, QuestionJob])
    running: set[asyncio.Task[None]] = set()

    async def answer(number: int, job: QuestionJob, ask: LocalAsk) -> None:
        out.write(_line((number, await ask_safely(job, ask))))
        out.flush()

    async with LocalAsk(order.settings, Path(order.journals) if order.journals else None) as ask:
        while line := await reader.readline():
            task = asyncio.create_task(answer(*decoder.decode(line), ask))
            running.add(task)
            task.add_done_callback(running.discard)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_work())

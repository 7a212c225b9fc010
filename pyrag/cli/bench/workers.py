"""Workers of a benchmark: processes of this machine, or actors of a Ray cluster. The calling process stores results.

A worker process is this module run as a script: it reads settings and jobs as JSON lines and writes traces as JSON
lines. It exits when its input ends, so no worker outlives a killed run. Ray needs `pip install '.[ray]'`; its workers
must reach the same index paths (a shared disk) or a retriever by URL.

`--resume-steps` is not supported on Ray, since journals are files of this machine.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyrag.cli.bench.ask import LocalAsk, PooledAsk, WorkerCrashedError
from pyrag.errors import DataError
from pyrag.evaluation.runs.batch import QuestionJob, ask_safely, unwritable
from pyrag.settings import Settings
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace

_MAX_LINE = 1 << 30  # bytes of a trace between processes
_RAY_TRIES = 3  # per question, if actors crash


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """First line that a worker process reads."""

    settings: Settings
    journals: str | None


def process_pool(settings: Settings, journals: Path | None, count: int) -> PooledAsk:
    """Return a pool of worker processes, each of which starts with its first question.

    Args:
        settings: Settings of the run. `max_in_flight` is divided among the processes, since each has its own limiter.
        journals: Folder of the run, for journals of steps. None to keep no journals.
        count: Number of processes, at least 1.
    """
    share = replace(settings, max_in_flight=max(1, settings.max_in_flight // count))
    setup = WorkerSetup(share, None if journals is None else str(journals))
    return PooledAsk([_ProcessWorker(setup) for _ in range(count)])


def ray_pool(settings: Settings, address: str, count: int) -> PooledAsk:
    """Return a pool of Ray actors. If an actor crashes, the others take over its questions.

    Args:
        settings: Settings of the run.
        address: Address of a cluster, or "local".
        count: Number of actors, at least 1.
    """
    return PooledAsk(ray_workers(settings, address, count), _RAY_TRIES)


def ray_workers(settings: Settings, address: str, count: int) -> list[RayWorker]:
    """Start Ray actors, which Ray restarts after a crash.

    Args:
        settings: Settings of the run.
        address: Address of a cluster, or "local".
        count: Number of actors, at least 1.
    """
    from pyrag._io.ray_cluster import connected

    ray = connected(address, count)
    # An actor answers several questions at once, and is restarted without limit.
    options = {"max_concurrency": settings.concurrency, "max_restarts": -1, "num_cpus": 1}
    actor = ray.remote(BenchActor).options(**options)
    return [RayWorker(ray, actor.remote(_encoded(settings))) for _ in range(count)]


class _ProcessWorker:
    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[Trace]] = {}
        self._last = 0

    async def ask(self, job: QuestionJob) -> Trace:
        process = await self._running()
        answer: asyncio.Future[Trace] = asyncio.get_running_loop().create_future()
        self._last = number = self._last + 1
        self._waiting[number] = answer
        assert process.stdin is not None
        process.stdin.write(_encoded((number, job)) + b"\n")
        return await answer

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None:
                pipe = asyncio.subprocess.PIPE
                command = [sys.executable, "-m", __name__]
                # Not in the terminal's process group: this process handles Ctrl-C.
                process = await asyncio.create_subprocess_exec(
                    *command, stdin=pipe, stdout=pipe, limit=_MAX_LINE, start_new_session=True
                )
                assert process.stdin is not None
                process.stdin.write(_encoded(self._setup) + b"\n")
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
                message = "the worker process ended while it answered: its question is open"
                waiting.set_exception(WorkerCrashedError(message))
        self._waiting.clear()

    async def aclose(self) -> None:
        process, reader = self._process, self._reader
        if process is not None and process.stdin is not None:
            process.stdin.close()
            await process.wait()
        if reader is not None:
            await reader


class RayWorker:
    """Ray actor as a `BenchWorker`."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self.actor = ray, actor

    async def ask(self, job: QuestionJob) -> Trace:
        try:
            return from_json(await self.actor.ask.remote(_encoded(job)))
        except self._ray.exceptions.RayActorError as error:
            raise WorkerCrashedError(f"the Ray actor ended while it answered: {error}") from error

    async def aclose(self) -> None:
        self._ray.kill(self.actor)


class BenchActor:
    """Process behind a `RayWorker`, with its own engines, opened by its first question."""

    def __init__(self, settings: bytes) -> None:
        import msgspec

        self._settings = msgspec.json.decode(settings, type=Settings)
        self._ask: LocalAsk | None = None

    async def pid(self) -> int:
        return os.getpid()

    async def ask(self, job: bytes) -> bytes:
        import msgspec

        self._ask = self._ask or LocalAsk(self._settings)
        question = msgspec.json.decode(job, type=QuestionJob)
        return _written(question, await ask_safely(question, self._ask))


def _written(job: QuestionJob, trace: Trace) -> bytes:
    """Return a trace as JSON; a trace that cannot be written becomes a failed one."""
    try:
        return to_json(trace)
    except DataError as error:
        return to_json(unwritable(job, error))


def _encoded(content: object) -> bytes:
    import msgspec

    return msgspec.json.encode(content)


async def _work() -> None:
    """Answer the jobs that arrive on stdin. This is the main function of a worker process."""
    import msgspec

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # other output must not mix with the lines
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    setup = msgspec.json.decode(await reader.readline(), type=WorkerSetup)
    decoder = msgspec.json.Decoder(tuple[int, QuestionJob])
    running: set[asyncio.Task[None]] = set()

    async def answer(number: int, job: QuestionJob, ask: LocalAsk) -> None:
        out.write(b"[%d,%b]\n" % (number, _written(job, await ask_safely(job, ask))))
        out.flush()

    async with LocalAsk(setup.settings, Path(setup.journals) if setup.journals else None) as ask:
        while line := await reader.readline():
            task = asyncio.create_task(answer(*decoder.decode(line), ask))
            running.add(task)
            task.add_done_callback(running.discard)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_work())

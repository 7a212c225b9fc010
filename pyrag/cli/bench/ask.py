"""Answering of a benchmark's questions: by engines in this process, or by a pool of workers (`workers`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from pyrag._io.processes import settle_collector
from pyrag.episode.ledger import Recording
from pyrag.errors import PyRAGError
from pyrag.evaluation.runs.batch import QuestionJob
from pyrag.evaluation.runs.journal import FileJournal, journal_path
from pyrag.evaluation.scoring import asked
from pyrag.runtime.engines import open_engines
from pyrag.runtime.run import answer_question
from pyrag.settings import Settings
from pyrag.trace.model import Trace


class LocalAsk:
    """Answers with one set of engines, whatever the method.

    Args:
        settings: Those of the engines; each job brings its method.
        journals: The run's folder, where questions go on at the step that an earlier process had reached; None
            keeps no journals.
    """

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
        settle_collector()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._engines.aclose()


class WorkerCrashedError(PyRAGError):
    """A worker process ended while it answered."""

    kind = "crash"


class BenchWorker(Protocol):
    """A process, here or on another machine, that answers questions and is started again when it dies."""

    async def ask(self, job: QuestionJob) -> Trace:
        """Answer a job. Raises `WorkerCrashedError` where the process ends meanwhile."""
        ...

    async def aclose(self) -> None: ...


class PooledAsk:
    """Hands each question to the least busy of several workers.

    Args:
        workers: At least one.
        tries: Workers that a question is given to, one after the other, while they die; then its question stays open.
    """

    def __init__(self, workers: Sequence[BenchWorker], tries: int = 1) -> None:
        self._workers, self._tries = workers, tries
        self._busy = [0] * len(workers)

    async def __call__(self, job: QuestionJob) -> Trace:
        crashed: set[int] = set()  # a worker that is being started again is the least busy, and fails at once
        for left in reversed(range(self._tries)):
            place = min(range(len(self._workers)), key=lambda one: (one in crashed, self._busy[one]))
            self._busy[place] += 1
            try:
                return await self._workers[place].ask(job)
            except WorkerCrashedError:
                crashed.add(place)
                if not left:
                    raise
            finally:
                self._busy[place] -= 1
        raise AssertionError("the last try returns or raises")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for one in self._workers:
            await one.aclose()

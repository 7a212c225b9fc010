"""Answers to a benchmark's questions, from engines in this process or from a pool of workers (`workers`)."""

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
from pyrag.evaluation.runs.journal import journal_path
from pyrag.evaluation.scoring import asked
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import open_engines
from pyrag.runtime.journal import FileJournal
from pyrag.settings import Settings
from pyrag.trace.model import Trace


class LocalAsk:
    """Callable that answers jobs with one set of engines, whatever their method.

    Args:
        settings: Settings of the engines. The method comes with each job.
        journals: Folder of the run, whose journals let a question continue from the step that an earlier process
            reached. None to keep no journals.
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
    """Crash of a worker process while it was answering."""

    kind = "crash"


class BenchWorker(Protocol):
    """Process, here or on another machine, that answers questions and is restarted after a crash."""

    async def ask(self, job: QuestionJob) -> Trace:
        """Answer a job.

        Raises:
            WorkerCrashedError: The process ended before it answered.
        """
        ...

    async def aclose(self) -> None: ...


class PooledAsk:
    """Pool that gives each question to its least busy worker.

    Args:
        workers: The workers, at least one.
        tries: Maximum number of workers that a question is given to, one after another, if they crash. After the last
            crash, the question remains unanswered.
    """

    def __init__(self, workers: Sequence[BenchWorker], tries: int = 1) -> None:
        self._workers, self._tries = workers, tries
        self._busy = [0] * len(workers)

    async def __call__(self, job: QuestionJob) -> Trace:
        crashed: set[int] = set()  # a worker that is starting again is the least busy, and would fail at once
        for remaining in reversed(range(self._tries)):
            place = min(range(len(self._workers)), key=lambda number: (number in crashed, self._busy[number]))
            self._busy[place] += 1
            try:
                return await self._workers[place].ask(job)
            except WorkerCrashedError:
                crashed.add(place)
                if not remaining:
                    raise
            finally:
                self._busy[place] -= 1
        raise AssertionError("the last try returns or raises")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for worker in self._workers:
            await worker.aclose()

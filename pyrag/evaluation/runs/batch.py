"""Batch of questions answered in parallel. A failure becomes the question's result, and the other questions continue.

Results are passed on as soon as they are ready, not in order, so no finished question is lost if the process is killed.
The caller's `Ask` decides where questions are answered (this process, worker processes, a cluster).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from pyrag._io.redaction import without_secrets
from pyrag.errors import ConfigError, PyRAGError, StorageError
from pyrag.evaluation.datasets.layout import Question
from pyrag.trace.model import UNKNOWN, Answer, Trace, TraceError


@dataclass(frozen=True, slots=True)
class QuestionJob:
    """Question to answer with a method, and the set it belongs to."""

    set: str
    method: str
    question: Question

    @property
    def key(self) -> tuple[str, str, str]:
        """Set, method and id of the question."""
        return self.set, self.method, self.question.id


_ENDING = {error.kind: error for error in (ConfigError, StorageError)}  # would affect every other question too
Ask = Callable[[QuestionJob], Awaitable[Trace]]


async def run_jobs(
    jobs: Iterable[QuestionJob], ask: Ask, done: Callable[[QuestionJob, Trace], None], *, concurrency: int
) -> None:
    """Run all jobs.

    Args:
        jobs: Questions with set and method.
        ask: Function that answers one job.
        done: Called with each result; an error that it raises (a full disk) ends the batch.
        concurrency: Maximum number of jobs at the same time.

    Raises:
        ConfigError: A method cannot run with these settings at all.
        StorageError: Results cannot be stored.
    """
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:  # shared: each worker takes the next one
            trace = await ask_safely(job, ask)
            if trace.error and (ends := _ENDING.get(trace.error.kind)):
                raise ends(trace.error.message)
            done(job, trace)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None  # the first one ended the others


async def ask_safely(job: QuestionJob, ask: Ask) -> Trace:
    """Return a trace in any case: every error becomes part of the question's trace.

    Args:
        job: The question.
        ask: Function that answers the job.
    """
    try:
        return await ask(job)
    except PyRAGError as error:
        return _failed(job, TraceError(error.kind, str(error), error.exit_code))
    except Exception as error:  # a bug in a method or agent must not end the batch of hours
        message = f"{type(error).__name__}: {error} (a bug; the command's log has its traceback)"
        _log(job)
        return _failed(job, TraceError("crash", without_secrets(message)))


def unwritable(job: QuestionJob, error: PyRAGError) -> Trace:
    """Return a failed trace in place of one that cannot be written.

    Args:
        job: The question.
        error: Reason for the failure.
    """
    return _failed(job, TraceError("crash", str(error)))


def _failed(job: QuestionJob, error: TraceError) -> Trace:
    return Trace(job.question.question, Answer(UNKNOWN, known=False), method=job.method, error=error)


def _log(job: QuestionJob) -> None:
    import logging

    logging.getLogger("pyrag.bench").exception(
        "the question %s of %s failed under %s", job.question.id, job.set, job.method
    )

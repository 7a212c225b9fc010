"""A batch on a local Ray of two workers, one of which is killed in the middle. Needs Ray; skipped without it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from pyrag.cli.bench.ask import PooledAsk
from pyrag.cli.bench.workers import RayWorker, ray_workers
from pyrag.evaluation.datasets.suite import PassageOptions, open_set, source_of
from pyrag.evaluation.runs.batch import QuestionJob, run_jobs
from pyrag.settings import Settings
from pyrag.trace.model import Trace

from .conftest import ChatServer, write_set

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings are not ours
COUNT = 30


async def pid_of(worker: RayWorker) -> int:
    """The process of an actor, which Ray may still be starting again."""
    from ray.exceptions import ActorUnavailableError

    async with asyncio.timeout(120):
        while True:
            try:
                return int(await worker.actor.pid.remote())
            except ActorUnavailableError:
                await asyncio.sleep(0.1)


async def test_a_killed_ray_worker_costs_no_question(chat: ChatServer, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")

    chosen = open_set("stones", write_set(tmp_path / "data", COUNT))
    source = source_of(chosen, PassageOptions(cache=tmp_path / "indexes"))
    chat.delay = 0.1
    settings = Settings(
        llm=f"openai:m@{chat.url}", method="vanilla", recovery="boost", index=str(source.index), concurrency=4
    )
    traces: dict[str, Trace] = {}
    some = asyncio.Event()

    def done(job: QuestionJob, trace: Trace) -> None:
        traces[job.question.id] = trace
        if len(traces) == 5:
            some.set()

    try:
        workers = ray_workers(settings, "local", 2)
        async with PooledAsk(workers, tries=3) as ask:
            pid = await pid_of(workers[0])
            jobs = [QuestionJob("stones", "vanilla", question) for question in chosen.questions]
            batch = asyncio.create_task(run_jobs(jobs, ask, done, concurrency=4))
            await some.wait()
            os.kill(pid, signal.SIGKILL)
            await batch
            assert await pid_of(workers[0]) != pid, "it was started again"
    finally:
        ray.shutdown()
    assert {name for name, trace in traces.items() if trace.error} == set()
    assert len(traces) == COUNT
    usual = COUNT + COUNT // 7  # every seventh stone is asked about twice
    assert usual <= chat.asked.total() <= usual + 2 * 4, "only what was under way on the killed worker is paid again"

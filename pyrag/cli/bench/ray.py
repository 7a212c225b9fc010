"""The questions of a benchmark on Ray workers. Results are kept by the run's own process, in the same files.

An actor that dies takes the questions it had under way with it: they go to the others, and Ray starts it again. Needs
`pip install 'pyrag-runtime[ray]'`; workers must reach the same index paths (a shared disk) or a retriever by URL.

Left out: `--resume-steps` (journals are files of this machine).
"""

from __future__ import annotations

import os
from typing import Any, Self

from pyrag._io.ray_cluster import connected
from pyrag.evaluation.runs.batch import QuestionJob
from pyrag.settings import Settings
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace

_TRIES = 3  # of a question whose worker died


class RayAsk:
    """Hands each question to the least busy of several Ray actors. `address` is a cluster's, or "local"."""

    def __init__(self, settings: Settings, address: str, count: int) -> None:
        self._ray = connected(address, count)
        actor = self._ray.remote(Worker)
        # An actor answers several questions at once; it is restarted for as long as the run goes on.
        options = {"max_concurrency": settings.concurrency, "max_restarts": -1, "num_cpus": 1}
        self._actors = [actor.options(**options).remote(_encoded(settings)) for _ in range(count)]
        self._busy = [0] * count

    async def __call__(self, job: QuestionJob) -> Trace:
        failed: set[int] = set()  # one that is being started again is the least busy, and fails at once
        for left in reversed(range(_TRIES)):
            place = min(range(len(self._actors)), key=lambda one: (one in failed, self._busy[one]))
            self._busy[place] += 1
            try:
                return from_json(await self._actors[place].ask.remote(_encoded(job)))
            except self._ray.exceptions.RayActorError:
                failed.add(place)
                if not left:
                    raise
            finally:
                self._busy[place] -= 1
        raise AssertionError("the last try returns or raises")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)


def _encoded(content: Settings | QuestionJob) -> bytes:
    import msgspec

    return msgspec.json.encode(content)


class Worker:
    """The actor: engines of its own, opened by its first question."""

    def __init__(self, settings: bytes) -> None:
        import msgspec

        self._settings = msgspec.json.decode(settings, type=Settings)
        self._ask: Any = None

    async def pid(self) -> int:
        return os.getpid()

    async def ask(self, job: bytes) -> bytes:
        import msgspec

        from pyrag.cli.bench.ask import LocalAsk
        from pyrag.evaluation.runs.batch import ask_safely

        if self._ask is None:
            self._ask = LocalAsk(self._settings)
        return to_json(await ask_safely(msgspec.json.decode(job, type=QuestionJob), self._ask))

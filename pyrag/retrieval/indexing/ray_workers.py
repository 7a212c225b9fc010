"""Embedding and index building with Ray workers, for corpora that would take a single machine days.

Each worker is an actor with its own embedder, opened from the same spec. Ray restarts a crashed worker and repeats its
tasks. The builder takes results in the order of the passages, so the index does not depend on the distribution of work
or on crashes. Workers read and write the files of shards at the builder's paths, so a cluster needs a shared disk. Only
the builder reads documents and writes the rest of the index.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from pyrag._io.ray_cluster import connected
from pyrag.errors import PyRAGError
from pyrag.retrieval.embedders.protocol import passage_text
from pyrag.retrieval.vectors.faiss_index import Segment
from pyrag.retrieval.vectors.folder import SegmentJob, build_segment
from pyrag.trace.model import Passage

_TRIES = 3  # repetitions of a batch whose worker crashed
_AHEAD = 2  # batches per worker: one being embedded, one waiting
_TIMEOUT = 300.0  # seconds for a request to an embedding server


class RayWorkers:
    """Workers on the Ray cluster at `address`, or on this machine if it is "local"."""

    def __init__(self, embedder: str, address: str, count: int) -> None:
        self._ray = connected(address, count)
        actor = self._ray.remote(EmbeddingWorker).options(num_cpus=1, max_restarts=-1, max_task_retries=_TRIES)
        self.actors = [actor.remote(embedder) for _ in range(count)]
        self._turns = cycle(self.actors)
        self.width = count
        self.ahead = _AHEAD * count

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        texts = [passage_text(passage.title, passage.text) for passage in passages]
        begun = next(self._turns).embed.remote(texts)
        return lambda: self._result(begun)

    def build(self, jobs: Sequence[SegmentJob]) -> list[Segment]:
        begun = [actor.build.remote(job) for actor, job in zip(cycle(self.actors), jobs, strict=False)]
        return [self._result(item) for item in begun]

    def _result(self, begun: Any) -> Any:
        try:
            return self._ray.get(begun)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayActorError as error:
            reason = " ".join(str(error).split())[:200]
            raise PyRAGError(
                f"a Ray worker died {_TRIES + 1} times over one batch ({reason}): see Ray's logs"
            ) from error

    def close(self) -> None:
        for actor in self.actors:
            self._ray.kill(actor)


class EmbeddingWorker:
    """Ray actor that embeds passages and builds segments. The model is loaded with its first batch."""

    def __init__(self, embedder: str) -> None:
        from pyrag.retrieval.embedders.embedding import open_embedder

        self._embedder = open_embedder(embedder, timeout=_TIMEOUT)
        self._runner = asyncio.Runner()

    def pid(self) -> int:
        return os.getpid()

    def embed(self, texts: list[str]) -> Any:
        return self._runner.run(self._embedder.embed_passages(texts))

    def build(self, job: SegmentJob) -> Segment:
        return build_segment(job)

"""Who embeds passages and builds vector indexes for a build: this process (here), Ray's workers (`ray_workers`), or
those who have done so already (`stored_vectors`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyrag.retrieval.embedders.protocol import passage_text
from pyrag.retrieval.vectors.folder import Builder, BuildHere
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Embedder


class Workers(Builder, Protocol):
    """`ahead` batches of passages may be under way while the one before them is waited for."""

    @property
    def ahead(self) -> int: ...

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        """Begins to embed them; calling what it gives waits for the matrix. Raises `PyRAGError` then."""
        ...

    def close(self) -> None: ...


class InProcess(BuildHere):
    """`Workers` over an embedder, one batch at a time."""

    ahead = 0

    def __init__(self, embedder: Embedder, runner: asyncio.Runner) -> None:
        self._embedder = embedder
        self._runner = runner

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        texts = [passage_text(one.title, one.text) for one in passages]
        return lambda: self._runner.run(self._embedder.embed_passages(texts))

    def close(self) -> None:
        """Nothing of its own."""

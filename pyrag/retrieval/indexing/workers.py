"""Who embeds passages and builds vector indexes for a build: this process (here), or Ray's workers (`ray_workers`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyrag.retrieval.vector_folder import Builder, BuildHere

if TYPE_CHECKING:
    from pyrag.retrieval.embedding import Embedder


class Workers(Builder, Protocol):
    """`ahead` batches of texts may be under way while the one before them is waited for."""

    @property
    def ahead(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Callable[[], Any]:
        """Begins to embed the texts; calling what it gives waits for the matrix. Raises `PyRAGError` then."""
        ...

    def close(self) -> None: ...


class InProcess(BuildHere):
    """`Workers` over an embedder, one batch at a time."""

    ahead = 0

    def __init__(self, embedder: Embedder, runner: asyncio.Runner) -> None:
        self._embedder = embedder
        self._runner = runner

    def embed(self, texts: Sequence[str]) -> Callable[[], Any]:
        return lambda: self._runner.run(self._embedder.embed_passages(texts))

    def close(self) -> None:
        """Nothing of its own."""

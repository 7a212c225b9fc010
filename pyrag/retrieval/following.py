"""A retriever over an index folder that follows its generations, for processes that live longer than one."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from pyrag.errors import PyRAGError
from pyrag.retrieval.documents.model import MARK
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import Retriever, fetch_passages, search, searched_index
from pyrag.trace.model import Passage, SearchedIndex

POLL = 0.5  # seconds between two looks at the index folder

Open = Callable[[], Retriever]


class FollowingRetriever:
    """A retriever over the generation in use of a folder; searches that have begun keep the one that they began with.

    A generation that cannot be opened leaves the last good one in use, and `problem` says what is wrong.

    Args:
        opener: opens the retriever; called again, in a thread, for each new generation.
        folder: index folder to watch; None for a retriever that does not change.

    Raises:
        PyRAGError: what the opener raises.
    """

    def __init__(self, opener: Open, folder: Path | None) -> None:
        self._open, self._folder = opener, folder
        self._mark = self._look()
        self._used: Counter[int] = Counter()  # searches that are using a retriever, by its id()
        self.retriever = opener()
        self.problem = ""
        self._reopening: asyncio.Task[None] | None = None
        self._looked = 0.0

    @property
    def name(self) -> str:
        return self.retriever.name

    @property
    def searched(self) -> SearchedIndex:
        return searched_index(self.retriever)

    @property
    def generation(self) -> str:
        """Name of the generation in the folder; empty without one. Reads a file."""
        from pyrag.retrieval.index import read_info

        if self._folder is not None:
            with contextlib.suppress(PyRAGError):
                return read_info(self._folder).generation
        return ""

    @property
    def missing(self) -> bool:
        """True if the folder holds no index any more; the one that was opened is still searched."""
        return self._folder is not None and self._look() is None

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Search the newest generation of the index.

        Args: those of `Retriever.retrieve`.

        Returns:
            Passages, best first.
        """
        async with self.use() as retriever:
            return await search(retriever, query, topk, where)

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages of those ids that exist in the newest generation."""
        async with self.use() as retriever:
            return await fetch_passages(retriever, ids)

    @contextlib.asynccontextmanager
    async def use(self) -> AsyncIterator[Retriever]:
        """Keep one generation open, for several searches in the same one."""
        self._check()
        retriever = self.retriever
        self._used[id(retriever)] += 1
        try:
            yield retriever
        finally:
            self._used[id(retriever)] -= 1
            await self._let_go(retriever)

    async def aclose(self) -> None:
        if self._reopening:
            await self._reopening
        await self.retriever.aclose()

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._folder is None or now - self._looked < POLL:
            return
        self._looked = now
        mark = self._look()
        if mark != self._mark and (self._reopening is None or self._reopening.done()):
            self._reopening = asyncio.create_task(self._reopen(mark))

    async def _reopen(self, mark: tuple[int, int] | None) -> None:
        try:
            fresh = await asyncio.to_thread(self._open)
        except PyRAGError as error:
            self.problem = str(error)  # the old one is still good; the next look tries again
            return
        old, self.retriever = self.retriever, fresh
        self._mark, self.problem = mark, ""
        await self._let_go(old)

    async def _let_go(self, retriever: Retriever) -> None:
        if retriever is not self.retriever and not self._used[id(retriever)]:
            del self._used[id(retriever)]
            await retriever.aclose()

    def _look(self) -> tuple[int, int] | None:
        if self._folder is None:
            return None
        try:
            status = (self._folder / MARK).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

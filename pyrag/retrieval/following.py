"""Retriever that follows the generations of an index folder, for long-lived processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Lock

from pyrag._io.threads import in_own_thread
from pyrag.errors import PyRAGError
from pyrag.retrieval.catalogue.delegating import WrappingRetriever
from pyrag.retrieval.documents.model import MARK
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import Retriever, search, searched_index
from pyrag.trace.model import Passage, SearchedIndex

RETRY = 0.5  # seconds before a generation that could not be opened is tried again

Open = Callable[[], Retriever]
_Mark = tuple[int, int, int, int]


class FollowingRetriever(WrappingRetriever):
    """Retriever over the current generation of a folder. A running search keeps the generation that it began with.

    Each search first checks the file that names the generation, with one `stat`, and waits until a new generation is
    open, so that removed passages are no longer returned after an update. If a generation cannot be opened, the last
    good generation stays in use, and `problem` holds the reason. It is safe to use from the event loops of several
    threads.

    Args:
        opener: Function that opens the retriever. It is called again, in a thread, for each new generation.
        folder: Index folder to watch. None for a retriever that does not change.

    Raises:
        PyRAGError: The opener raised it.
    """

    def __init__(self, opener: Open, folder: Path | None) -> None:
        self._open, self._folder = opener, folder
        self._file = None if folder is None else os.fspath(folder / MARK)
        self._lock = Lock()
        self._used: Counter[int] = Counter()  # searches that are using a retriever, by its id()
        self._replaced: list[Retriever] = []  # retrievers of earlier generations that are still open
        self._opening: Future[None] | None = None
        self._failed: tuple[_Mark | None, float] | None = None
        self._mark = self._look()
        self.retriever, self.generation = self._opened()
        self.problem = ""

    @property
    def name(self) -> str:
        return self.retriever.name

    @property
    def wrapped(self) -> tuple[Retriever, ...]:
        return (self.retriever,)

    @property
    def searched(self) -> SearchedIndex:
        return searched_index(self.retriever)

    @property
    def missing(self) -> bool:
        """True if the folder no longer holds an index; the open generation is still searched."""
        return self._folder is not None and self._look() is None

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Search the current generation of the index.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Returns:
            Passages, best first.
        """
        async with self.use() as retriever:
            return await search(retriever, query, topk, where)

    @contextlib.asynccontextmanager
    async def use(self) -> AsyncIterator[Retriever]:
        """Keep one generation open inside the block, so that several searches use the same one."""
        await self.follow()
        with self._lock:
            retriever = self.retriever
            self._used[id(retriever)] += 1
        try:
            yield retriever
        finally:
            with self._lock:
                self._used[id(retriever)] -= 1
            await self._close_unused()

    _catalogued = use

    async def follow(self) -> None:
        """Open the current generation if it has changed; wait until it is open."""
        if self._file is None or (mark := self._look()) == self._mark:
            return
        if (opening := self._begin(mark)) is not None:
            await asyncio.shield(asyncio.wrap_future(opening))
            await self._close_unused()

    async def aclose(self) -> None:
        if (opening := self._opening) is not None:
            await asyncio.wrap_future(opening)
        with self._lock:
            retrievers, self._replaced = [*self._replaced, self.retriever], []
        for retriever in retrievers:
            await retriever.aclose()

    def _begin(self, mark: _Mark | None) -> Future[None] | None:
        """Return the task that opens a generation, started if needed; None if it is open or has just failed to open."""
        with self._lock:
            if mark == self._mark:  # another thread has opened it since the caller looked
                return None
            if self._opening is None:
                if self._failed and self._failed[0] == mark and time.monotonic() - self._failed[1] < RETRY:
                    return None
                self._opening = in_own_thread(lambda: self._reopen(mark))
            return self._opening

    def _reopen(self, mark: _Mark | None) -> None:
        try:
            fresh, generation = self._opened()
        except PyRAGError as error:
            with self._lock:  # the old generation is still good
                self.problem, self._failed, self._opening = str(error), (mark, time.monotonic()), None
            return
        with self._lock:
            self._replaced.append(self.retriever)
            self.retriever, self.generation, self._mark = fresh, generation, mark
            self.problem, self._failed, self._opening = "", None, None

    def _opened(self) -> tuple[Retriever, str]:
        """Open the retriever; return it with the name of its generation, which is empty if it has none."""
        generation = ""
        if self._folder is not None:
            from pyrag.retrieval.index import read_info

            with contextlib.suppress(PyRAGError):  # a folder of another kind, or a fault that the opener reports
                generation = read_info(self._folder).generation
        retriever = self._open()
        return retriever, searched_index(retriever).generation or generation

    async def _close_unused(self) -> None:
        """Close the retrievers of earlier generations that no search uses any more."""
        if not self._replaced:
            return
        with self._lock:
            unused = [item for item in self._replaced if not self._used[id(item)]]
            self._replaced = [item for item in self._replaced if self._used[id(item)]]
            for retriever in unused:
                del self._used[id(retriever)]
        for retriever in unused:
            await retriever.aclose()

    def _look(self) -> _Mark | None:
        if self._file is None:
            return None
        try:
            status = os.stat(self._file)  # noqa: PTH116 (each search pays for it, and Path.stat costs a fifth more)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size

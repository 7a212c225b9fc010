"""Search over named indexes, without the paths of the server: for `POST /retrieve`, and for questions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrag.errors import PyRAGError
from pyrag.retrieval.checked import Passages
from pyrag.retrieval.filters.language import filter_of
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import FilterVerdict
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.index import read_info
from pyrag.retrieval.protocol import Retriever, fetch_passages, filter_verdict, passages_of, search, searched_index
from pyrag.retrieval.search_protocol import AT_ONCE, BadRequestError, read_request, search_all
from pyrag.server.config import DEFAULT_INDEX, Access, ServerConfig
from pyrag.server.errors import ApiError
from pyrag.server.metrics import Metrics
from pyrag.server.wire import public_passage
from pyrag.trace.model import Passage, SearchedIndex

RETRY_AFTER = 2  # seconds
_FIRST = "who wrote this"  # asked before anybody is served: it loads the models, or says what is wrong with them


class PublicRetriever:
    """A retriever whose passages name their sources without the server's folders.

    Args:
        inner: where to search.
        folder: index folder, whose description names what was indexed; None where there is none.
        name: of the index, which takes the place of the retriever's.
    """

    def __init__(self, inner: Retriever, folder: Path | None, name: str) -> None:
        self._inner, self.name = inner, name
        self.wrapped = (inner,)
        self._roots: tuple[str, ...] = ()
        if folder is not None:
            with contextlib.suppress(PyRAGError):  # an index of another kind, such as a user's own
                self._roots = read_info(folder).sources

    @property
    def searched(self) -> SearchedIndex:
        return replace(searched_index(self._inner), name=self.name)

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Search.

        Args: those of `Retriever.retrieve`.

        Returns:
            Passages, best first.
        """
        found = await search(self._inner, query, topk, where)
        return Passages(map(self._public, found), getattr(found, "notes", ()))

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Return what can be said of a filter before a search. Args: those of `FilterJudge.judge_filter`."""
        return await filter_verdict(self._inner, where, within)

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages of those ids that exist; None if the retriever looks up no ids."""
        found = await fetch_passages(self._inner, ids)
        return None if found is None else list(map(self._public, found))

    def _public(self, passage: Passage) -> Passage:
        return public_passage(passage, self._roots, self._inner.name)

    async def aclose(self) -> None:
        await self._inner.aclose()


def following(opener: Callable[[], Retriever], folder: Path | None, name: str) -> FollowingRetriever:
    """Return a retriever that follows the generations of an index, with public sources.

    Args:
        opener: opens the retriever.
        folder: index folder; None for a retriever that does not change.
        name: of the index.

    Raises:
        PyRAGError: what the opener raises.
    """
    return FollowingRetriever(lambda: PublicRetriever(opener(), folder, name), folder)


class SearchService:
    """Searches over named indexes, for as long as the server is not ending. Belongs to one event loop.

    Args:
        config: limits and keys.
        retrievers: by the names of their indexes.
    """

    def __init__(self, config: ServerConfig, retrievers: dict[str, FollowingRetriever]) -> None:
        self.config, self.metrics, self.retrievers = config, Metrics(), retrievers
        self.search_slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[Any]] = set()  # what the end of the server waits for
        self.started = self.draining = False
        self.otel: bool | None = False  # the setting; searches alone have no spans

    @property
    def gauges(self) -> dict[str, float]:
        """Values of this moment, for the metrics."""
        return {"pyrag_requests_in_flight": len(self._tasks)}

    def allowed(self, access: Access) -> list[str]:
        """Return the names of the indexes that a caller may use."""
        return [name for name in self.retrievers if access.allows(name)]

    def scopes(self, access: Access) -> list[str]:
        """Return the names under which traces are kept that a caller may see."""
        return [access.scope(name) for name in self.allowed(access)]

    def named(self, name: str | None, access: Access) -> str:
        """Return the name of an index that a caller may use.

        Args:
            name: None stands for the only one, or the one named `default`, or the first that the caller may use.
            access: what the caller may use.

        Raises:
            ApiError: the index is unknown, or not the caller's.
        """
        allowed = self.allowed(access)
        if name is None:
            name = DEFAULT_INDEX if DEFAULT_INDEX in allowed or not allowed else allowed[0]
        if name not in allowed:
            raise ApiError(404, "unknown_index", f"there is no index {name!r}: choose from {', '.join(allowed)}")
        return name

    def check_open(self) -> None:
        """Raises `ApiError` while the server is ending."""
        if self.draining:
            raise ApiError(503, "shutting_down", "the server is ending: ask again in a moment", retry_after=RETRY_AFTER)

    def begin(self, work: Any) -> asyncio.Task[Any]:
        """Return a task that the end of the server waits for. Takes a coroutine."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def pinned(self, name: str) -> AbstractAsyncContextManager[Retriever]:
        """Return a context in which one generation of an index stays open."""
        return self.retrievers[name].use()

    async def search(self, name: str, value: Any, access: Access) -> dict[str, Any]:
        """Search as a request of Search-R1's protocol asks.

        Args:
            name: of the index.
            value: the request, in JSON.
            access: what the caller may use.

        Raises:
            ApiError: the request is wrong.
            PyRAGError: the retriever failed.
        """
        try:
            wanted = read_request(value)
        except BadRequestError as error:
            raise ApiError(400, "invalid_request", str(error)) from None
        async with self.pinned(name) as retriever:
            return await search_all(retriever, wanted, self.search_slots, filter_of(access.where or None))

    async def problems(self, access: Access) -> list[str]:
        """Return sentences on what keeps the service from working; none where it is ready.

        Args:
            access: what the caller may use; other indexes are not named.
        """
        if self.draining or not self.started:
            return ["the server is ending" if self.draining else "the server is starting"]
        missing = [name for name, one in self.retrievers.items() if one.missing]
        problems = [f"the index {name} is missing" for name in missing if access.allows(name)]
        return problems if len(problems) == len(missing) else [*problems, "an index is missing"]

    async def start(self) -> None:
        """Search every index once, so that the first question finds models loaded.

        Raises:
            PyRAGError: an index or a model that searching needs cannot be used.
        """
        if self.started:
            return
        for retriever in self.retrievers.values():
            await passages_of(retriever, _FIRST, 1)
        self.started = True

    async def drain(self) -> None:
        """Refuse new work, and end what has not ended by itself after `config.shutdown_timeout` seconds."""
        self.draining = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.config.shutdown_timeout)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def aclose(self) -> None:
        """Close the retrievers; a failure of one does not keep the others open."""
        self.started = False
        await _close(self.retrievers.values())


async def _close(retrievers: Iterable[Retriever]) -> None:
    for retriever in retrievers:
        with contextlib.suppress(PyRAGError, OSError):
            await retriever.aclose()

"""Search over named indexes, without showing the server's paths: for `POST /retrieve` and for questions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrag.errors import PyRAGError
from pyrag.retrieval.catalogue.delegating import WrappingRetriever
from pyrag.retrieval.checked import Passages
from pyrag.retrieval.filters.language import filter_of
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.index import read_info
from pyrag.retrieval.protocol import Retriever, fetch_passages, passages_of, search, searched_index
from pyrag.retrieval.search_protocol import AT_ONCE, BadRequestError, read_request, search_all
from pyrag.server.config import DEFAULT_INDEX, Access, ServerConfig
from pyrag.server.errors import ApiError
from pyrag.server.metrics import Metrics
from pyrag.server.wire import public_passage
from pyrag.trace.model import Passage, SearchedIndex

RETRY_AFTER = 2  # seconds
_FIRST = "who wrote this"  # searched before any request, to load the models or report what is wrong with them


class PublicRetriever(WrappingRetriever):
    """Retriever whose passages name their sources without the server's folders.

    Args:
        inner: Retriever to search.
        folders: Index folders, whose descriptions name the indexed files.
        name: Name of the index, shown instead of the retriever's name.
    """

    def __init__(self, inner: Retriever, folders: Sequence[Path], name: str) -> None:
        self._inner, self.name = inner, name
        self.wrapped = (inner,)
        self._roots: tuple[str, ...] = ()
        for folder in folders:
            with contextlib.suppress(PyRAGError):  # an index of another kind, such as a plug-in's
                self._roots += tuple(read_info(folder).sources)

    @property
    def searched(self) -> SearchedIndex:
        return replace(searched_index(self._inner), name=self.name)

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the passages that best match a query; see `Retriever.retrieve`.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: Filter of the passages.

        Returns:
            Passages, best first.
        """
        passages = await search(self._inner, query, topk, where)
        return Passages(map(self._public, passages), getattr(passages, "notes", ()))

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages that have these ids; None if the retriever cannot look up ids."""
        passages = await fetch_passages(self._inner, ids)
        return None if passages is None else list(map(self._public, passages))

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document.

        Args:
            document: Id of the document.
            where: Filter that passages must pass; None for all.
        """
        return list(map(self._public, await super().document_passages(document, where)))

    def _public(self, passage: Passage) -> Passage:
        return public_passage(passage, self._roots, self._inner.name)


def following(
    opener: Callable[[], Retriever], folder: Path | None, name: str, sources: Sequence[Path] = ()
) -> FollowingRetriever:
    """Return a retriever that follows the generations of an index and hides the server's folders.

    Args:
        opener: Function that opens the retriever.
        folder: Index folder; None for a retriever that does not change.
        name: Name of the index.
        sources: Index folders of an index over several sources, which follows the generations of each.

    Raises:
        PyRAGError: The opener raised it.
    """
    folders = sources if folder is None else [folder]
    return FollowingRetriever(lambda: PublicRetriever(opener(), folders, name), folder)


class SearchService:
    """Search over named indexes until the server shuts down. It belongs to one event loop.

    Args:
        config: Limits and keys.
        retrievers: Retrievers, by the names of their indexes.
    """

    def __init__(self, config: ServerConfig, retrievers: dict[str, FollowingRetriever]) -> None:
        self.config, self.metrics, self.retrievers = config, Metrics(), retrievers
        self.search_slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[Any]] = set()  # the shutdown waits for these
        self.started = self.draining = False
        self.otel: bool | None = False  # setting `otel`; a server that only searches has no spans

    @property
    def gauges(self) -> dict[str, float]:
        """Current values for the metrics."""
        return {"pyrag_requests_in_flight": len(self._tasks)}

    def allowed(self, access: Access) -> list[str]:
        """Return the names of the indexes that a caller may use."""
        return [name for name in self.retrievers if access.allows(name)]

    def scopes(self, access: Access) -> list[str]:
        """Return the names under which the traces that a caller may see are stored."""
        return [access.scope(name) for name in self.allowed(access)]

    def named(self, name: str | None, access: Access) -> str:
        """Return the name of an index that a caller may use.

        Args:
            name: Name of the index. None for the index named `default`, or else the first one that the caller may use.
            access: Rights of the caller.

        Raises:
            ApiError: The index does not exist, or the caller may not use it.
        """
        allowed = self.allowed(access)
        if name is None:
            name = DEFAULT_INDEX if DEFAULT_INDEX in allowed or not allowed else allowed[0]
        if name not in allowed:
            raise ApiError(404, "unknown_index", f"there is no index {name!r}: choose from {', '.join(allowed)}")
        return name

    def check_open(self) -> None:
        """Raise `ApiError` if the server is shutting down."""
        if self.draining:
            raise ApiError(503, "shutting_down", "the server is shutting down: ask again soon", retry_after=RETRY_AFTER)

    def begin(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in a task that the shutdown waits for, and return the task."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def pinned(self, name: str) -> AbstractAsyncContextManager[Retriever]:
        """Return a context manager that keeps one generation of an index open."""
        return self.retrievers[name].use()

    async def search(self, name: str, value: Any, access: Access) -> dict[str, Any]:
        """Search, as specified by a request in Search-R1's protocol.

        Args:
            name: Name of the index.
            value: The request, as decoded JSON.
            access: Rights of the caller.

        Raises:
            ApiError: The request is wrong.
            PyRAGError: The retriever failed.
        """
        try:
            wanted = read_request(value)
        except BadRequestError as error:
            raise ApiError(400, "invalid_request", str(error)) from None
        async with self.pinned(name) as retriever:
            return await search_all(retriever, wanted, self.search_slots, filter_of(access.where or None))

    async def problems(self, access: Access) -> list[str]:
        """Return sentences about problems that prevent the service from working; empty if it is ready.

        Args:
            access: Rights of the caller. Indexes that it may not use are not named.
        """
        if self.draining or not self.started:
            return ["the server is shutting down" if self.draining else "the server is starting"]
        missing = [name for name, retriever in self.retrievers.items() if retriever.missing]
        problems = [f"the index {name} is missing" for name in missing if access.allows(name)]
        return problems if len(problems) == len(missing) else [*problems, "an index is missing"]

    async def start(self) -> None:
        """Search every index once, so that models are loaded before the first question.

        Raises:
            PyRAGError: An index, or a model that searching needs, cannot be used.
        """
        if self.started:
            return
        for retriever in self.retrievers.values():
            await passages_of(retriever, _FIRST, 1)
        self.started = True

    async def drain(self) -> None:
        """Refuse new work, and cancel work that has not finished after `config.shutdown_timeout` seconds."""
        self.draining = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.config.shutdown_timeout)
        remaining = list(self._tasks)
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)

    async def aclose(self) -> None:
        """Close the retrievers, even if closing one of them fails."""
        self.started = False
        await _close(self.retrievers.values())


async def _close(retrievers: Iterable[Retriever]) -> None:
    for retriever in retrievers:
        with contextlib.suppress(PyRAGError, OSError):
            await retriever.aclose()

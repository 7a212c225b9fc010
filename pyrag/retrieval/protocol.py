"""Protocol of retrievers, with one asynchronous method from a query to passages, best first."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from pyrag._io.excerpts import excerpt
from pyrag.errors import ConfigError, FilterError, MalformedReplyError, PyRAGError, ServiceError
from pyrag.retrieval.checked import Passages, checked, shown
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import NOTHING_TO_SAY, FilterVerdict
from pyrag.trace.model import Passage, SearchedIndex

_MAX_SAID = 300  # characters of a message of foreign code


class Retriever(Protocol):
    """Source of passages. Any object with these methods is a retriever; a user-defined one only needs `retrieve`.

    A retriever that supports filters has a third parameter, `where: Filter | None = None`
    (`pyrag.retrieval.filters.tree`), and returns the best `topk` passages for which `where.matches(passage.metadata)`
    is true; `str(where)` is the filter's text. Without this parameter, questions with a filter are refused.

    class Bookshelf:
        name = "bookshelf"

        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            rows = await self.database.search(query, limit=topk)
            return [Passage(row.id, row.title, row.text, score=row.rank) for row in rows]

        async def aclose(self) -> None:
            await self.database.close()

    PyRAG("embedded", retriever=Bookshelf())
    """

    @property
    def name(self) -> str:
        """Name in traces and on the command line, such as `bm25:notes/.pyrag` or `http://host:8000`."""
        ...

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        """Find passages for a query. Several calls may run at the same time, even in different event loops.

        Args:
            query: Text to search for: a question or keywords, never query syntax. If it is blank, nothing should be
                returned.
            topk: Maximum number of passages, usually 3 to 20. Fewer may be returned; a longer list is cut.

        Returns:
            Passages, best first. The `id` of a passage must always be the same, since citations and memos rely on it.
            `score` only has to decrease along the list; `source`, `start` and `end` are optional.

        Raises:
            pyrag.errors.ServiceError: The source cannot be reached; a `RetryableServiceError` is tried again. Any
                other exception ends the question as a failure of this retriever.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and files. This is called once, after the last question."""
        ...


def _ignore(_: str) -> None:
    pass


async def passages_of(
    retriever: Retriever,
    query: str,
    topk: int,
    warn: Callable[[str], None] = _ignore,
    where: Filter | None = None,
) -> Passages:
    """Search a retriever and enforce the protocol, since user-defined retrievers may raise and return anything.

    Args:
        retriever: Any object with `retrieve`, asynchronous or not.
        query: Text to search for.
        topk: Maximum number of passages. Any additional passages are dropped.
        warn: Called with each sentence on a repair or omission.
        where: Filter that passages must pass. Other passages of the retriever are dropped.

    Raises:
        FilterError: A filter is set, but the retriever does not support filters.
        ServiceError: The retriever raised an error, which the message quotes.
        MalformedReplyError: The retriever returned something other than passages, or no usable passage.
    """
    name = name_of(retriever)
    try:
        result = await _asked(retriever, query, topk, where)
    except PyRAGError:
        raise
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        raise _failed(name, "it cancelled itself") from None
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise _failed(name, described(error)) from error
    if not isinstance(result, list):
        raise _returned(name, result)
    passages = checked(result, topk)
    if result and topk > 0 and not passages:
        raise _returned(name, result)
    if where is not None:
        passages = _passing(passages, where)
    for note in passages.notes:
        warn(f"the retriever {name}: {note}")
    return passages


def _passing(passages: Passages, where: Filter) -> Passages:
    passing = [passage for passage in passages if where.matches(passage.metadata)]
    if len(passing) == len(passages):
        return passages
    return Passages(
        passing, (*passages.notes, f"{len(passages) - len(passing)} passages were dropped that the filter excludes")
    )


async def search(retriever: Retriever, query: str, topk: int, where: Filter | None) -> list[Passage]:
    """Search one of pyrag's own retrievers, with or without a filter.

    Args:
        retriever: The retriever.
        query: Text to search for.
        topk: Maximum number of passages.
        where: Filter that passages must pass. None for no filter.

    Raises:
        FilterError: A filter is set, but the retriever does not support filters.
    """
    if where is None:
        return await retriever.retrieve(query, topk)
    check_filters(retriever)
    filtering: Any = retriever
    passages: list[Passage] = await filtering.retrieve(query, topk, where=where)
    return passages


def check_filters(retriever: object) -> None:
    """Raise `FilterError` if a retriever does not support filters: its `retrieve` has no parameter `where`.

    A retriever that wraps others lists them in its attribute `wrapped`, and supports filters only if they all do.
    """
    for inner in _wrapped(retriever):
        check_filters(inner)
    try:
        parameters = inspect.signature(retriever.retrieve).parameters.values()  # type: ignore[attr-defined]
        takes = any(parameter.name == "where" or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    except Exception:  # a retriever from another package may raise anything
        takes = False
    if not takes:
        raise FilterError(
            f"the retriever {name_of(retriever)} takes no filter: give its retrieve(query, topk) a parameter where, or "
            "ask without a filter"
        )


def _wrapped(retriever: object) -> tuple[object, ...]:
    try:
        inner = retriever.wrapped  # type: ignore[attr-defined]
    except Exception:  # a retriever from another package may raise anything
        return ()
    return inner if isinstance(inner, tuple) else ()


class OwnRetriever:
    """Retriever that wraps any object with `retrieve(query, topk)`.

    Raises:
        ConfigError: The object has no such method.
    """

    def __init__(self, inner: Any) -> None:
        try:
            usable = callable(inner.retrieve)
        except Exception:
            usable = False
        if not usable:
            raise ConfigError(
                f"{type(inner).__name__} is not a retriever: give a URL, an index folder or an object with "
                "async retrieve(query, topk)"
            )
        self.inner = inner
        self.wrapped = (inner,)

    @property
    def name(self) -> str:
        return name_of(self.inner)

    @property
    def searched(self) -> SearchedIndex:
        return searched_index(self.inner)

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> Passages:
        """Return the checked passages of the object.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Raises:
            FilterError: The object does not support filters.
            ServiceError: The object failed.
        """
        return await passages_of(self.inner, query, topk, where=where)

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Return the object's verdict on a filter; see `FilterJudge.judge_filter`.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see. None for all.
        """
        return await filter_verdict(self.inner, where, within)

    async def aclose(self) -> None:
        """Close the object if it can be closed. A failure becomes a warning."""
        close = getattr(self.inner, "aclose", None) or getattr(self.inner, "close", None)
        try:
            closing = close() if callable(close) else None
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:
            warnings.warn(f"the retriever {self.name} could not be closed ({described(error)})", stacklevel=2)


def name_of(retriever: object) -> str:
    """Return the name of a retriever, or its class's name if its own is unusable."""
    try:
        name = retriever.name  # type: ignore[attr-defined]
    except Exception:
        name = None
    return name if isinstance(name, str) and name else type(retriever).__name__


def searched_index(retriever: object) -> SearchedIndex:
    """Return the description of a retriever's index; only its name if it has no description.

    Retrievers over an index have an attribute `searched`, a `SearchedIndex`; retrievers that wrap another pass it on.
    """
    try:
        description = retriever.searched  # type: ignore[attr-defined]
    except Exception:  # a retriever from another package may raise anything
        description = None
    return description if isinstance(description, SearchedIndex) else SearchedIndex(name_of(retriever))


def described(error: BaseException) -> str:
    """Return an excerpt of an error in foreign code. Even converting it to text may fail."""
    try:
        words = excerpt(error, _MAX_SAID)
    except Exception:
        words = ""
    return f"{type(error).__name__}: {words}"


async def _asked(retriever: Any, query: str, topk: int, where: Filter | None) -> object:
    """Return the retriever's result, reading iterators as far as needed."""
    if where is None:
        result = retriever.retrieve(query, topk)
    else:
        check_filters(retriever)
        result = retriever.retrieve(query, topk, where=where)
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncIterator):
        items: list[object] = []
        async for item in result:
            if len(items) >= topk:
                break
            items.append(item)
        return items
    return list(islice(result, max(topk, 0))) if isinstance(result, tuple | Iterator) else result


def best_first(passage: Passage) -> tuple[float, str, int, str]:
    """Return a sort key for passages: best first and, if scores are equal, by source."""
    return -passage.score, passage.source, passage.start or 0, passage.id


def _failed(name: str, reason: str) -> ServiceError:
    return ServiceError(f"the retriever {name} failed ({reason}): look into its code", service=name)


def _returned(name: str, result: object) -> MalformedReplyError:
    message = f"the retriever {name} returned {shown(result)}: it must return a list of pyrag.Passage"
    return MalformedReplyError(message, service=name)


@runtime_checkable
class PassageLookup(Protocol):
    """Optional part of a retriever that looks up passages by their ids."""

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages with these ids that exist, in any order; None if the retriever cannot look up ids."""
        ...


async def fetch_passages(retriever: object, ids: Sequence[str], where: Filter | None = None) -> list[Passage] | None:
    """Return passages by their ids.

    Args:
        retriever: Any retriever.
        ids: Ids of the passages.
        where: Filter that passages must pass. None for no filter.

    Returns:
        Passages that exist and pass, in any order; None if the retriever cannot look up ids.

    Raises:
        ServiceError: The index cannot be read.
    """
    passages = await retriever.fetch(ids) if isinstance(retriever, PassageLookup) else None
    if passages is None or where is None:
        return passages
    return [passage for passage in passages if where.matches(passage.metadata)]


@runtime_checkable
class FilterJudge(Protocol):
    """Optional part of a retriever that judges filters by its passages' fields."""

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Judge a filter before a search: whether it matches nothing, and why.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see. None for all.
        """
        ...


async def filter_verdict(retriever: object, where: Filter, within: Filter | None = None) -> FilterVerdict:
    """Return a retriever's verdict on a filter, which is empty if the retriever cannot judge filters.

    Args:
        retriever: Any retriever.
        where: The filter.
        within: Filter for the passages that the caller may see. None for all.
    """
    try:
        verdict = await retriever.judge_filter(where, within) if isinstance(retriever, FilterJudge) else NOTHING_TO_SAY
    except Exception:  # a search will report the fault
        return NOTHING_TO_SAY
    return verdict if isinstance(verdict, FilterVerdict) else NOTHING_TO_SAY

"""The retriever protocol: one asynchronous method from a query to passages, best first."""

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

_MAX_SAID = 300  # characters of a stranger's message


class Retriever(Protocol):
    """Source of passages. Any object with these three methods will do; only `retrieve` is required of a user's own.

    One that takes filters has a third parameter, `where: Filter | None = None` (`pyrag.retrieval.filters.tree`): its
    `matches(passage.metadata)` says of a passage if it may be returned, `str(where)` is its text, and the best `topk`
    of those that may be are wanted. A question with a filter is refused by any other retriever.

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
        """Find passages for a query. Several calls may run at the same time, also in different event loops.

        Args:
            query: What to search for, in words: a question or keywords of a program, never query syntax. May be blank,
                which should find nothing.
            topk: Maximum number of passages, usually 3 to 20. Fewer may be returned; a list that is longer is cut.

        Returns:
            Passages, best first. `id` must be the same whenever the passage is found, since citations and memos rely on
            it; `score` only has to fall along the list; `source`, `start` and `end` are optional.

        Raises:
            pyrag.errors.ServiceError: The source is out of reach; a `RetryableServiceError` is worth another try. Any
                other exception ends the question as a failure of this retriever.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and files; called once, after the last question."""
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
    """Ask a retriever and hold it to the protocol: a user's own one may raise and return anything.

    Args:
        retriever: Any object with `retrieve`, asynchronous or not.
        query: Text to search for.
        topk: Maximum number of passages; further ones are dropped.
        warn: Called with each sentence on a repair or omission.
        where: Filter that passages must pass; what the retriever returns besides is dropped.

    Raises:
        FilterError: There is a filter, and the retriever takes none.
        ServiceError: The retriever raised; the message quotes it.
        MalformedReplyError: It returned something else than passages, or no usable one.
    """
    name = name_of(retriever)
    try:
        given = await _asked(retriever, query, topk, where)
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
    if not isinstance(given, list):
        raise _returned(name, given)
    found = checked(given, topk)
    if given and topk > 0 and not found:
        raise _returned(name, given)
    if where is not None:
        found = _passing(found, where)
    for note in found.notes:
        warn(f"the retriever {name}: {note}")
    return found


def _passing(found: Passages, where: Filter) -> Passages:
    kept = [passage for passage in found if where.matches(passage.metadata)]
    if len(kept) == len(found):
        return found
    return Passages(kept, (*found.notes, f"{len(found) - len(kept)} passages were dropped that the filter excludes"))


async def search(retriever: Retriever, query: str, topk: int, where: Filter | None) -> list[Passage]:
    """Ask a retriever of pyrag's own, with a filter if there is one.

    Args:
        retriever: The retriever.
        query: Text to search for.
        topk: Maximum number of passages.
        where: Filter that passages must pass.

    Raises:
        FilterError: There is a filter, and the retriever takes none.
    """
    if where is None:
        return await retriever.retrieve(query, topk)
    check_filters(retriever)
    filtering: Any = retriever
    found: list[Passage] = await filtering.retrieve(query, topk, where=where)
    return found


def check_filters(retriever: object) -> None:
    """Raise `FilterError` for a retriever whose `retrieve` has no parameter `where`, or that asks such a one.

    Retrievers around others have an attribute `wrapped` with those that they ask: they filter as far as these do.
    """
    for inner in _wrapped(retriever):
        check_filters(inner)
    try:
        parameters = inspect.signature(retriever.retrieve).parameters.values()  # type: ignore[attr-defined]
        takes = any(one.name == "where" or one.kind is one.VAR_KEYWORD for one in parameters)
    except Exception:  # a stranger's object may fail wherever it is touched
        takes = False
    if not takes:
        raise FilterError(
            f"the retriever {name_of(retriever)} takes no filter: give its retrieve(query, topk) a parameter where, or "
            "ask without a filter"
        )


def _wrapped(retriever: object) -> tuple[object, ...]:
    try:
        inner = retriever.wrapped  # type: ignore[attr-defined]
    except Exception:  # a stranger's object may fail wherever it is touched
        return ()
    return inner if isinstance(inner, tuple) else ()


class OwnRetriever:
    """A `Retriever` over any object with `retrieve(query, topk)`. Raises `ConfigError` for an object without."""

    def __init__(self, inner: Any) -> None:
        try:
            usable = callable(inner.retrieve)
        except Exception:
            usable = False
        if not usable:
            raise ConfigError(
                f"a {type(inner).__name__} is no retriever: give a URL, an index folder or an object with "
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

        Args: those of `Retriever.retrieve`.

        Raises:
            FilterError: The object takes no filter.
            ServiceError: The object failed.
        """
        return await passages_of(self.inner, query, topk, where=where)

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Return what the object can say of a filter. Args: those of `FilterJudge.judge_filter`."""
        return await filter_verdict(self.inner, where, within)

    async def aclose(self) -> None:
        """Close the object, if it can be closed; a failure is a warning."""
        close = getattr(self.inner, "aclose", None) or getattr(self.inner, "close", None)
        try:
            closing = close() if callable(close) else None
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:
            warnings.warn(f"the retriever {self.name} could not be closed ({described(error)})", stacklevel=2)


def name_of(retriever: object) -> str:
    """Return the name of a retriever, or that of its class if it has none that can be shown."""
    try:
        name = retriever.name  # type: ignore[attr-defined]
    except Exception:
        name = None
    return name if isinstance(name, str) and name else type(retriever).__name__


def searched_index(retriever: object) -> SearchedIndex:
    """Return what a retriever says of its index; its name alone where it says nothing.

    Retrievers over an index have an attribute `searched`, a `SearchedIndex`; those around another one pass it on.
    """
    try:
        said = retriever.searched  # type: ignore[attr-defined]
    except Exception:  # a stranger's object may fail wherever it is touched
        said = None
    return said if isinstance(said, SearchedIndex) else SearchedIndex(name_of(retriever))


def described(error: BaseException) -> str:
    """Return the words of an error of foreign code, as an excerpt; its text may fail too."""
    try:
        words = excerpt(error, _MAX_SAID)
    except Exception:
        words = ""
    return f"{type(error).__name__}: {words}"


async def _asked(retriever: Any, query: str, topk: int, where: Filter | None) -> object:
    """Return the retriever's result; iterators are read as far as needed."""
    if where is None:
        given = retriever.retrieve(query, topk)
    else:
        check_filters(retriever)
        given = retriever.retrieve(query, topk, where=where)
    if inspect.isawaitable(given):
        given = await given
    if isinstance(given, AsyncIterator):
        found: list[object] = []
        async for one in given:
            if len(found) >= topk:
                break
            found.append(one)
        return found
    return list(islice(given, max(topk, 0))) if isinstance(given, tuple | Iterator) else given


def best_first(passage: Passage) -> tuple[float, str, int, str]:
    """Return the key to sort passages by: best first, and those with equal scores as their sources have them."""
    return -passage.score, passage.source, passage.start or 0, passage.id


def _failed(name: str, said: str) -> ServiceError:
    return ServiceError(f"the retriever {name} failed ({said}): look into its code", service=name)


def _returned(name: str, given: object) -> MalformedReplyError:
    message = f"the retriever {name} returned {shown(given)}: it must return a list of pyrag.Passage"
    return MalformedReplyError(message, service=name)


@runtime_checkable
class PassageLookup(Protocol):
    """Optional part of a retriever: a lookup of passages."""

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages of those ids that exist, in any order; None where nothing can be looked up."""
        ...


async def fetch_passages(retriever: object, ids: Sequence[str], where: Filter | None = None) -> list[Passage] | None:
    """Return passages by their ids.

    Args:
        retriever: any retriever.
        ids: of the passages.
        where: filter that passages must pass.

    Returns:
        Those that exist and pass, in any order; None if the retriever looks up no ids, as those behind a search API.

    Raises:
        ServiceError: the index cannot be read.
    """
    found = await retriever.fetch(ids) if isinstance(retriever, PassageLookup) else None
    if found is None or where is None:
        return found
    return [passage for passage in found if where.matches(passage.metadata)]


@runtime_checkable
class FilterJudge(Protocol):
    """Optional part of a retriever: what it knows of the fields of its passages."""

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Return what can be said of a filter before a search.

        Args:
            where: The filter.
            within: Filter of the passages that the caller may know of; None for all.
        """
        ...


async def filter_verdict(retriever: object, where: Filter, within: Filter | None = None) -> FilterVerdict:
    """Return what a retriever can say of a filter; nothing if it cannot list the fields of its passages.

    Args:
        retriever: any retriever.
        where: the filter.
        within: filter of the passages that the caller may know of; None for all.
    """
    try:
        verdict = await retriever.judge_filter(where, within) if isinstance(retriever, FilterJudge) else NOTHING_TO_SAY
    except Exception:  # a search will say what is wrong with the retriever
        return NOTHING_TO_SAY
    return verdict if isinstance(verdict, FilterVerdict) else NOTHING_TO_SAY

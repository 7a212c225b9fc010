"""What a retriever is: one asynchronous method from a query to passages, best first."""

from __future__ import annotations

from typing import Protocol

from pyrag.errors import MalformedReplyError, PyRAGError, ServiceError
from pyrag.trace import Passage


class Retriever(Protocol):
    @property
    def name(self) -> str:
        """What traces and the command line show, such as `bm25:notes/.pyrag` or `http://host:8000`."""
        ...

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        """At most `topk` passages, best first. Raises `pyrag.errors.ServiceError`."""
        ...

    async def aclose(self) -> None: ...


async def passages_of(retriever: Retriever, query: str, topk: int) -> list[Passage]:
    """What a retriever finds, held to the protocol: a user's own one may raise and return anything.

    Raises `ServiceError`, in which what it raised stands.
    """
    try:
        found = await retriever.retrieve(query, topk)
    except PyRAGError:
        raise
    except Exception as error:
        message = f"the retriever {retriever.name} failed ({type(error).__name__}: {error}): look into its code"
        raise ServiceError(message, service=retriever.name) from error
    if not isinstance(found, list) or not all(isinstance(one, Passage) for one in found):
        message = f"the retriever {retriever.name} returned {found!r:.80}: it must return a list of pyrag.Passage"
        raise MalformedReplyError(message, service=retriever.name)
    return found

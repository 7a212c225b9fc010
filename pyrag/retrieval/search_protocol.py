"""Server side of Search-R1's protocol: validation of requests, and passages as documents.

    POST /retrieve {"queries": [q, ...], "topk": 5, "return_scores": true, "where": "year >= 2020"}
    -> {"result": [[{"document": {"id", "title", "text", "contents", "source", ...}, "score"}, ...], ...],
        "where": "year >= 2020"}

Without `return_scores`, the result holds the documents themselves. `http` is the client; `pyrag.server.search` has the
routes.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from pyrag.errors import FilterError, PyRAGError
from pyrag.retrieval.filters.language import filter_of
from pyrag.retrieval.filters.tree import Filter, all_of, comparisons_of
from pyrag.retrieval.protocol import Retriever, filter_verdict, passages_of
from pyrag.trace.model import Passage

MAX_QUERIES = 1024
MAX_TOPK = 1000
MAX_PASSAGES = 100_000
"""Maximum of a reply, as queries times topk. A larger reply would have hundreds of megabytes."""

MAX_COMPARED = 2_000_000
"""Maximum of passages times comparisons of the request's filter, which take a second of CPU."""

TOPK = 5
AT_ONCE = 16
"""Maximum number of queries that are searched at the same time."""


class RetrieveRequest(msgspec.Struct):
    """Search request. `where` is a filter in any form; the reply repeats its text to confirm it."""

    queries: list[str]
    topk: int | None = None
    return_scores: bool = False
    where: str | dict[str, Any] | None = None


class BadRequestError(ValueError):
    """Error for a request that cannot be served. Its message says what to send instead."""


def read_request(value: Any) -> RetrieveRequest:
    """Convert a JSON value to a request.

    Raises:
        BadRequestError: The value is not a valid request.
    """
    example = 'send {"queries": ["…"], "topk": 5, "return_scores": true}'
    try:
        request = msgspec.convert(value, RetrieveRequest)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"the request cannot be read ({error}): {example}") from None
    if len(request.queries) > MAX_QUERIES:
        raise BadRequestError(f"{len(request.queries)} queries at once: send at most {MAX_QUERIES}")
    if request.topk is not None and not 1 <= request.topk <= MAX_TOPK:
        raise BadRequestError(f"topk is {request.topk}: ask for 1 to {MAX_TOPK} passages")
    passages = len(request.queries) * (request.topk or TOPK)
    if passages > MAX_PASSAGES:
        raise BadRequestError(f"{passages} passages at once: send fewer queries, at most {MAX_PASSAGES} in all")
    return request


async def search_all(
    retriever: Retriever, wanted: RetrieveRequest, slots: asyncio.Semaphore, bound: Filter | None = None
) -> dict[str, Any]:
    """Search for each query of a request and return the reply of the protocol.

    Args:
        retriever: Retriever to search.
        wanted: The request, as `read_request` returned it.
        slots: Semaphore that limits the simultaneous searches of all requests.
        bound: Filter that passages must pass in addition to the request's own.

    Raises:
        FilterError: The filter cannot be read or makes too many comparisons, or the retriever does not support filters.
        PyRAGError: The retriever failed. The other searches are cancelled.
    """
    topk = TOPK if wanted.topk is None else wanted.topk
    own = filter_of(wanted.where)
    _check_cost(len(wanted.queries) * topk, own)
    where = all_of(bound, own)

    async def search(query: str) -> list[Passage]:
        async with slots:
            passages = await passages_of(retriever, query, topk, where=where)
        await asyncio.sleep(0)  # small indexes are searched in the loop, so let other tasks run
        return passages

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(search(query)) for query in wanted.queries]
    except* PyRAGError as group_error:
        raise group_error.exceptions[0] from None
    result = [[_hit_of(passage, scored=wanted.return_scores) for passage in task.result()] for task in tasks]
    if own is None:
        return {"result": result}
    verdict = await filter_verdict(retriever, own, bound)
    return {"result": result, "where": str(own), **({"remarks": verdict.sentences} if verdict.sentences else {})}


def _check_cost(passages: int, where: Filter | None) -> None:
    """Raise `FilterError` if a reply's passages would need more than `MAX_COMPARED` comparisons."""
    count = 0 if where is None else sum(1 for _ in comparisons_of(where))
    if passages * count > MAX_COMPARED:
        raise FilterError(
            f"{passages} passages with a filter of {count} comparisons: send fewer queries, a smaller topk, or `in` "
            "with a list in place of many comparisons"
        )


def _hit_of(passage: Passage, *, scored: bool) -> dict[str, Any]:
    """Return a passage as the protocol's document, or as a hit with its score."""
    title = " ".join(passage.title.split())
    document: dict[str, Any] = {
        "id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "contents": f'"{title}"\n{passage.text}' if title else passage.text,
        "source": passage.source,
    }
    if passage.start is not None:
        document |= {"start": passage.start, "end": passage.end}
    if passage.parts:
        document["parts"] = passage.parts
    if passage.metadata:
        document["metadata"] = passage.metadata
    return {"document": document, "score": passage.score} if scored else document

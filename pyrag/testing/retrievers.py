"""Checks of a retriever: what `pyrag.retrieval.protocol.Retriever` promises, each with the reason why it matters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from pyrag.errors import ServiceError
from pyrag.retrieval.checked import checked
from pyrag.retrieval.protocol import Retriever
from pyrag.testing.checks import expect, shown
from pyrag.trace.model import Passage

_ODD_QUERIES = ("\ud800", "\x00", '"+-title:(', "' OR 1=1 --", "x" * 20_000, "星河 👍", "\u202e\n\t")


@dataclass(frozen=True, slots=True)
class RetrieverCase:
    """A retriever with an example.

    Attributes:
        retriever: The object; the checks leave it open.
        query: A query that finds something.
        finds: Id of a passage that it must find; empty if that is not known.
        others: Queries beside it, which may find nothing.
    """

    retriever: Retriever
    query: str
    finds: str = ""
    others: tuple[str, ...] = ("river", "who was born first?", "1984")

    async def found(self, topk: int = 5) -> list[Passage]:
        """Return the passages of the query."""
        return await self.retriever.retrieve(self.query, topk)


async def has_a_name(case: RetrieverCase) -> None:
    name = case.retriever.name
    expect(
        isinstance(name, str) and name.strip(), f"its name is {shown(name)}: traces need a text that says what it is"
    )


async def returns_passages(case: RetrieverCase) -> None:
    found = await case.found()
    expect(isinstance(found, list), f"retrieve() returned a {type(found).__name__}: return a list")
    expect(found, f"it found nothing for {case.query!r}: give the case a query that finds something")
    for one in found:
        expect(isinstance(one, Passage), f"it returned {shown(one)}: return pyrag.Passage objects")
    mended = checked(found, len(found)).notes
    expect(not mended, f"pyrag had to mend its passages: {'; '.join(mended)}")


async def finds_the_known_passage(case: RetrieverCase) -> None:
    ids = [one.id for one in await case.found(20)]
    expect(not case.finds or case.finds in ids, f"{case.query!r} found {shown(ids)}, but not {case.finds!r}")


async def returns_at_most_topk(case: RetrieverCase) -> None:
    for topk in (1, 2, 100):
        found = await case.found(topk)
        expect(len(found) <= topk, f"it returned {len(found)} passages for topk={topk}: cut the list")


async def returns_the_best_first(case: RetrieverCase) -> None:
    scores = [one.score for one in await case.found(20)]
    expect(scores == sorted(scores, reverse=True), f"its scores do not fall along the list: {shown(scores)}")


async def returns_each_passage_once(case: RetrieverCase) -> None:
    ids = [one.id for one in await case.found(100)]
    expect(len(set(ids)) == len(ids), f"an id is there twice among {shown(ids)}: citations could mean either")


async def finds_nothing_for_nothing(case: RetrieverCase) -> None:
    for query, topk in (("", 5), ("   ", 5), (case.query, 0), (case.query, -1)):
        found = await case.retriever.retrieve(query, topk)
        expect(found == [], f"retrieve({query!r}, {topk}) returned {shown(found)}: return an empty list")


async def finds_the_same_again(case: RetrieverCase) -> None:
    first, again = await case.found(), await case.found()
    same = [one.id for one in first] == [one.id for one in again]
    expect(same, "the same query found other passages the second time: memo and recordings take them for the same")


async def answers_side_by_side(case: RetrieverCase) -> None:
    queries = [case.query, *case.others] * 4
    alone = {query: await case.retriever.retrieve(query, 5) for query in queries}
    together = await asyncio.gather(*(case.retriever.retrieve(query, 5) for query in queries))
    wrong = [query for query, found in zip(queries, together, strict=True) if found != alone[query]]
    expect(not wrong, f"{shown(wrong[:1])} found something else beside other queries: calls must not share state")


async def takes_any_text(case: RetrieverCase) -> None:
    for query in _ODD_QUERIES:
        try:
            found = await case.retriever.retrieve(query, 3)
        except ServiceError:
            continue
        except Exception as error:
            problem = f"the query {shown(query)} raised {type(error).__name__}: escape it, or raise a ServiceError"
            raise AssertionError(problem) from error
        expect(len(found) <= 3, f"the query {shown(query)} found more than 3 passages")


async def works_in_other_event_loops(case: RetrieverCase) -> None:
    here = [one.id for one in await case.found()]

    def elsewhere() -> list[str]:
        return [one.id for one in asyncio.run(case.found())]

    try:
        there = await asyncio.to_thread(elsewhere)
    except Exception as error:
        problem = f"in a second event loop it raised {type(error).__name__} ({error}): keep connections for each loop"
        raise AssertionError(problem) from error
    expect(there == here, "in a second event loop it found other passages")


async def survives_cancellation(case: RetrieverCase) -> None:
    task = asyncio.ensure_future(case.found())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    expect(await case.found(), "after a call was cancelled it finds nothing")


RETRIEVER_CHECKS: tuple[Callable[[RetrieverCase], Awaitable[None]], ...] = (
    has_a_name,
    returns_passages,
    finds_the_known_passage,
    returns_at_most_topk,
    returns_the_best_first,
    returns_each_passage_once,
    finds_nothing_for_nothing,
    finds_the_same_again,
    answers_side_by_side,
    takes_any_text,
    works_in_other_event_loops,
    survives_cancellation,
)

"""Checks of a retriever: the promises of `pyrag.retrieval.protocol.Retriever`, and why each one matters."""

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
    """Retriever, with examples.

    Attributes:
        retriever: The retriever. The checks leave it open.
        query: Query that finds something.
        finds: Id of a passage that the query must find; empty if unknown.
        others: Additional queries, which may find nothing.
    """

    retriever: Retriever
    query: str
    finds: str = ""
    others: tuple[str, ...] = ("river", "who was born first?", "1984")

    async def matches(self, topk: int = 5) -> list[Passage]:
        """Return the passages that the query finds, at most `topk`."""
        return await self.retriever.retrieve(self.query, topk)


async def has_a_name(case: RetrieverCase) -> None:
    name = case.retriever.name
    expect(
        isinstance(name, str) and name.strip(), f"its name is {shown(name)}: traces need a text that says what it is"
    )


async def returns_passages(case: RetrieverCase) -> None:
    passages = await case.matches()
    expect(isinstance(passages, list), f"retrieve() returned a {type(passages).__name__}: return a list")
    expect(passages, f"it found nothing for {case.query!r}: give the case a query that finds something")
    for passage in passages:
        expect(isinstance(passage, Passage), f"it returned {shown(passage)}: return pyrag.Passage objects")
    corrections = checked(passages, len(passages)).notes
    expect(not corrections, f"pyrag had to mend its passages: {'; '.join(corrections)}")


async def finds_the_known_passage(case: RetrieverCase) -> None:
    ids = [passage.id for passage in await case.matches(20)]
    expect(not case.finds or case.finds in ids, f"{case.query!r} found {shown(ids)}, but not {case.finds!r}")


async def returns_at_most_topk(case: RetrieverCase) -> None:
    for topk in (1, 2, 100):
        passages = await case.matches(topk)
        expect(len(passages) <= topk, f"it returned {len(passages)} passages for topk={topk}: cut the list")


async def returns_the_best_first(case: RetrieverCase) -> None:
    scores = [passage.score for passage in await case.matches(20)]
    expect(scores == sorted(scores, reverse=True), f"its scores do not fall along the list: {shown(scores)}")


async def returns_each_passage_once(case: RetrieverCase) -> None:
    ids = [passage.id for passage in await case.matches(100)]
    expect(len(set(ids)) == len(ids), f"an id is there twice among {shown(ids)}: citations could mean either")


async def finds_nothing_for_nothing(case: RetrieverCase) -> None:
    for query, topk in (("", 5), ("   ", 5), (case.query, 0), (case.query, -1)):
        passages = await case.retriever.retrieve(query, topk)
        expect(passages == [], f"retrieve({query!r}, {topk}) returned {shown(passages)}: return an empty list")


async def finds_the_same_again(case: RetrieverCase) -> None:
    first, again = await case.matches(), await case.matches()
    same = [passage.id for passage in first] == [passage.id for passage in again]
    expect(same, "the same query found other passages the second time: memo and recordings take them for the same")


async def answers_side_by_side(case: RetrieverCase) -> None:
    queries = [case.query, *case.others] * 4
    separate = {query: await case.retriever.retrieve(query, 5) for query in queries}
    together = await asyncio.gather(*(case.retriever.retrieve(query, 5) for query in queries))
    wrong = [query for query, passages in zip(queries, together, strict=True) if passages != separate[query]]
    expect(not wrong, f"{shown(wrong[:1])} found something else beside other queries: calls must not share state")


async def takes_any_text(case: RetrieverCase) -> None:
    for query in _ODD_QUERIES:
        try:
            passages = await case.retriever.retrieve(query, 3)
        except ServiceError:
            continue
        except Exception as error:
            problem = f"the query {shown(query)} raised {type(error).__name__}: escape it, or raise a ServiceError"
            raise AssertionError(problem) from error
        expect(len(passages) <= 3, f"the query {shown(query)} found more than 3 passages")


async def works_in_other_event_loops(case: RetrieverCase) -> None:
    here = [passage.id for passage in await case.matches()]

    def elsewhere() -> list[str]:
        return [passage.id for passage in asyncio.run(case.matches())]

    try:
        there = await asyncio.to_thread(elsewhere)
    except Exception as error:
        problem = f"in a second event loop it raised {type(error).__name__} ({error}): keep connections for each loop"
        raise AssertionError(problem) from error
    expect(there == here, "in a second event loop it found other passages")


async def survives_cancellation(case: RetrieverCase) -> None:
    task = asyncio.ensure_future(case.matches())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    expect(await case.matches(), "after a call was cancelled it finds nothing")


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

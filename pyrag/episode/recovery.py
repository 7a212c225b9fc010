"""Recovery ladders: attempts for a step whose answer is unknown, before anything uses the answer.

PyRAG's ladder has one rung (section 2.6 of its paper): the same step with more passages. OPERA's ladder has a different
one: a rewritten query. A rung is plain data; a `RecoveryRunner` tries the rungs in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pyrag.agents.protocol import Reading, Rewritten
from pyrag.episode.program_values import MAX_QUERY_BYTES, MAX_TOPK
from pyrag.episode.requests import AskingStep
from pyrag.errors import BadOutputError
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.events import Observer, Recovering
from pyrag.trace.model import UNKNOWN, Answer, Attempt, Passage

Recovery = Literal["none", "boost", "rewrite", "boost+rewrite", "rewrite+boost"]


@dataclass(frozen=True, slots=True)
class Boost:
    """Rung that retrieves again with a larger top-k, for the step's own documents."""

    topk: int

    def deeper(self, used: int) -> int:
        """Return the top-k to use after `used` was not enough; always more than `used`."""
        return self.topk if self.topk > used else 2 * used


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Rung that retrieves with rewritten queries, one per entry of `topks` (OPERA: 5 at first, then 10 and 15)."""

    topks: tuple[int, ...] = (10, 15)


Rung = Boost | Rewrite
Ladder = tuple[Rung, ...]


_HOPS = 4  # hops of the longest questions in the QA sets
_MIN_CALLS = 20


def calls_for(ladder: Ladder) -> int:
    """Return the maximum model calls of a four-hop plan that uses the whole ladder, and of one revision of it."""
    return max(_MIN_CALLS, 2 * (2 + _HOPS * calls_of_step(ladder)))


def calls_of_step(ladder: Ladder) -> int:
    """Return the maximum number of model calls of one answer, including the whole ladder."""
    return 1 + sum(1 if isinstance(rung, Boost) else 2 * len(rung.topks) for rung in ladder)


def ladder_of(recovery: Recovery, boost_topk: int) -> Ladder:
    """Return the rungs of a recovery setting, in order.

    Args:
        recovery: Names of rungs, joined by `+`.
        boost_topk: Number of passages that the boost retrieves; 0 omits this rung.
    """
    rungs: dict[str, Ladder] = {"boost": (Boost(boost_topk),) if boost_topk else (), "rewrite": (Rewrite(),)}
    return tuple(rung for name in recovery.split("+") for rung in rungs.get(name, ()))


class RecoveryContext(Protocol):
    """Part of an episode that recovery needs."""

    @property
    def observer(self) -> Observer: ...

    @property
    def can_rewrite(self) -> bool: ...

    def warn(self, message: str) -> None: ...

    async def fetch(
        self, query: str, topk: int, where: Filter | None = None, step: AskingStep | None = None
    ) -> tuple[list[Passage], bool]:
        """Return the passages that match best, best first, and True if the same search had been made before.

        Args:
            query: Search text.
            topk: Number of passages, 1 to `MAX_TOPK`.
            where: Filter of the program's search.
            step: Step that searches.
        """
        ...

    async def read(
        self, query: str, passages: Sequence[Passage] | None, *, step: AskingStep | None = None
    ) -> tuple[Reading, bool]:
        """Return the Answer agent's reading, and True if the same request had been made before.

        Args:
            query: Sub-query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
            step: Step that asks.
        """
        ...

    async def rewrite(
        self,
        query: str,
        tried: Sequence[str],
        passages: Sequence[Passage],
        missing: str,
        step: AskingStep | None = None,
    ) -> tuple[Rewritten, bool]:
        """Return a rewritten query, and True if the same request had been made before.

        Args:
            query: Sub-query that has no answer yet.
            tried: Queries searched for so far.
            passages: Passages that these searches returned.
            missing: Information that the passages lack.
            step: Step that needs the query.
        """
        ...


@dataclass(frozen=True, slots=True)
class ProgramSearch:
    """Search that a program makes: its query, and its own filter if it has one."""

    query: str
    where: Filter | None = None


@dataclass(slots=True)
class RecoveryRunner:
    """Recovery of one step. `searches` maps the searches that returned its passages to their top-k."""

    desk: RecoveryContext
    step: AskingStep
    query: str
    searches: dict[ProgramSearch, int]
    passages: list[Passage]
    reading: Reading
    attempts: list[Attempt] = field(default_factory=list)
    _tried: list[str] = field(default_factory=list)

    async def up(self, ladder: Ladder) -> list[Attempt]:
        """Try the rungs of a ladder and return the attempts. Only the last attempt can have a known answer."""
        self._tried = [*(search.query for search in self.searches), self.query]
        for rung in ladder:
            match rung:
                case Boost():
                    await self._boost(rung)
                case Rewrite():
                    await self._rewrite(rung)
            if self.reading.known:
                break
        return self.attempts

    @property
    def _step_id(self) -> int:
        assert self.step.id is not None, "the step was dropped"
        return self.step.id

    async def _boost(self, rung: Boost) -> None:
        topks = {search: min(rung.deeper(topk), MAX_TOPK) for search, topk in self.searches.items()}
        largest = max(topks.values())
        self.desk.observer(Recovering(self._step_id, "boost", largest))
        deeper = merge(self.passages, *await self._fetched(topks))
        self.searches = topks
        if len(deeper) > len(self.passages):
            await self._read(deeper, "boost", self.query, largest)

    async def _rewrite(self, rung: Rewrite) -> None:
        for topk in rung.topks if self.desk.can_rewrite else ():
            rewritten = await self._rewritten()
            if rewritten is None:
                return
            topk = min(max(topk, *self.searches.values()), MAX_TOPK)
            query = " ".join(rewritten.query.split()).encode()[:MAX_QUERY_BYTES].decode(errors="ignore")
            if plain(query) in map(plain, ["", *self._tried]):
                repeated = Reading(UNKNOWN, known=False, rationale="the query had been tried before")
                self.attempts.append(attempt("rewrite", query, self.passages, repeated, rewritten=rewritten))
                return
            self._tried.append(query)
            self.desk.observer(Recovering(self._step_id, "rewrite", topk, query))
            filters = {str(search.where): search.where for search in self.searches}
            results = await self._fetched({ProgramSearch(query, where): topk for where in filters.values()})
            # The first search's passages stay, since the analysis may need both.
            await self._read(merge(*results, self.passages), "rewrite", query, topk, rewritten)
            if self.reading.known:
                return

    async def _rewritten(self) -> Rewritten | None:
        missing = self.reading.missing or self.reading.rationale
        try:
            return (await self.desk.rewrite(self.query, tuple(self._tried), self.passages, missing, self.step))[0]
        except BadOutputError as error:
            self.desk.warn(f"no rewritten query for {self.query!r}: {error}")
            return None

    async def _fetched(self, topks: Mapping[ProgramSearch, int]) -> list[list[Passage]]:
        results = await asyncio.gather(
            *(self.desk.fetch(search.query, topk, search.where, self.step) for search, topk in topks.items())
        )
        return [passages for passages, _ in results]

    async def _read(
        self, passages: list[Passage], policy: str, query: str, topk: int, rewritten: Rewritten | None = None
    ) -> None:
        self.passages = passages
        self.reading, _ = await self.desk.read(self.query, passages, step=self.step)
        self.attempts.append(attempt(policy, query, passages, self.reading, topk, rewritten))


def attempt(
    policy: str,
    query: str,
    passages: Sequence[Passage],
    reading: Reading,
    topk: int | None = None,
    rewritten: Rewritten | None = None,
) -> Attempt:
    """Return the attempt that corresponds to a reading.

    Args:
        policy: Kind of attempt: "first", "boost" or "rewrite".
        query: Query that was searched for or answered.
        passages: Passages that were read.
        reading: The answerer's reading.
        topk: Number of passages searched for; None for the first attempt.
        rewritten: The rewritten query, if there was one.
    """
    cited = tuple(passages[i].id for i in reading.citations if 0 <= i < len(passages))
    return Attempt(
        policy,
        query,
        topk,
        ids_of(passages),
        Answer(reading.text if reading.known else UNKNOWN, reading.known, cited, reading.confidence),
        reading.usage if rewritten is None else rewritten.usage + reading.usage,
        reading.rationale,
        reading.missing,
        strategy="" if rewritten is None else rewritten.strategy,
        keywords=() if rewritten is None else rewritten.keywords,
    )


def plain(query: str) -> str:
    """Return a query's words in lower case and alphabetical order, to compare queries."""
    return " ".join(sorted("".join(char if char.isalnum() else " " for char in query.casefold()).split()))


def merge(*groups: Sequence[Passage]) -> list[Passage]:
    """Return all passages once each, in order of first appearance."""
    return list({passage.id: passage for group in groups for passage in group}.values())


def ids_of(passages: Sequence[Passage]) -> tuple[str, ...]:
    return tuple(passage.id for passage in passages)

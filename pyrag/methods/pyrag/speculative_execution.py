"""Work that starts while a program is still being written: its searches, and its finished statements.

The written part of a program runs in the sandbox, over speculative requests (`pyrag.episode.speculation`), and its
result is discarded. The complete program then runs as usual, and finds its requests already answered or started. This
needs a planner that can show its text while it writes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Self

from pyrag.agents.protocol import Planner
from pyrag.episode.episode import Episode
from pyrag.episode.plan_checks import names_in
from pyrag.episode.program_run import run_program
from pyrag.errors import PyRAGError
from pyrag.trace.events import Drafting
from pyrag.trace.model import Program
from pyrag_sandbox import SandboxError

_REFERENCE = re.compile(r"[\[{<#]|\b(?:answer|step|query|question|result) \d", re.IGNORECASE)
_REFERRING = frozenset((
    "he", "she", "it", "they", "his", "her", "hers", "its", "their", "them", "him", "that", "those", "these", "this",
    "previous", "former", "latter", "above", "both", "either", "same",
))  # fmt: skip
_WORD = re.compile(r"\w+")


class SpeculativeExecution:
    """Speculative work for one question.

    Leaving the context ends the speculative program. Its calls continue, since later programs may use them.
    """

    def __init__(self, episode: Episode, *, on: bool) -> None:
        self._episode = episode
        self._drafting = getattr(episode.agents.planner, "drafting", None) if on and _pays(episode) else None
        episode.memo.speculative.on_wait = self._wait
        self._tasks: set[asyncio.Task[None]] = set()
        self._run: asyncio.Task[None] | None = None
        self._waits = False  # the running program waits for a reply
        self._searched: list[str] = []
        self._next = ""  # the program to run next

    def search(self, sub_queries: Sequence[str]) -> None:
        """Start the searches that a program will make verbatim."""
        prefetch_stats, guarded = self._episode.prefetch_stats, self._episode.flow.guards_searches
        if self._drafting is not None and not guarded and (prefetch_stats is None or prefetch_stats.pays):
            self._searched = self_contained(sub_queries)
            aside = self._episode.ahead()
            for query in self._searched:
                self._start(partial(aside.fetch, query, aside.topk))

    @contextmanager
    def watching(self) -> Iterator[Planner]:
        """Return a planner whose unfinished programs are run while it writes them."""
        if self._drafting is None:
            yield self._episode.agents.planner
            return
        try:
            yield self._drafting(self._draft, self._show)
        finally:
            self._next = ""
            self._stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._learn()

    def _learn(self) -> None:
        made = {step.query for step in self._episode.steps if step.primitive == "retrieve"}
        if self._episode.prefetch_stats is not None and made:
            hits = len(made.intersection(self._searched))
            self._episode.prefetch_stats.hits += hits
            self._episode.prefetch_stats.misses += len(self._searched) - hits

    def _draft(self, source: str) -> None:
        self._next = source
        self._advance()

    def _show(self, source: str) -> None:
        self._episode.observer(Drafting(source))

    def _wait(self) -> None:
        self._waits = True
        asyncio.get_running_loop().call_soon(self._advance)  # after calls made at the same time

    def _advance(self) -> None:
        """Run the longest available beginning of the program, after a shorter one has ended or is waiting.

        Otherwise, a program that is written quickly would be restarted before it makes any call.
        """
        if self._next and (self._waits or self._run is None or self._run.done()):
            self._stop()
            program, self._next = Program(self._next, planner="", origin="ahead"), ""
            self._waits = False
            self._run = self._start(partial(run_program, self._episode.ahead(), program))
            self._run.add_done_callback(lambda _: self._advance())

    def _stop(self) -> None:
        if self._run is not None:
            self._run.cancel()

    def _start(self, work: Callable[[], Awaitable[object]]) -> asyncio.Task[None]:
        task = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _quietly(work: Callable[[], Awaitable[object]]) -> None:
    """Await work and ignore its errors, since they occur again if the program needs it."""
    with suppress(PyRAGError, SandboxError):
        await work()


def _pays(episode: Episode) -> bool:
    """Return False for a recording or a resumed question, which answer immediately and hold only real requests."""
    ledger = episode.ledger
    return episode.parallel and ledger.recording is None and not (ledger.journal and ledger.journal.spent)


def self_contained(sub_queries: Sequence[str]) -> list[str]:
    """Return the sub-queries that do not need the answer of another one, judged by their wording.

    They refer to nothing, and their names did not appear before ("When was the director of Alpha born?" after "Who
    directed Alpha?").
    """
    independent = []
    named: set[str] = set()
    for index, query in enumerate(sub_queries):
        names = set(names_in(query))
        if not _refers(query) and (names or not index) and names.isdisjoint(named):
            independent.append(query)
        named |= names
    return independent


def _refers(query: str) -> bool:
    return not _REFERRING.isdisjoint(_WORD.findall(query.lower())) or _REFERENCE.search(query) is not None

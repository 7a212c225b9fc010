"""A small scripted world: agents and a retriever at the protocols' seam, so that the runtime is what is tested."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from pyrag.agents.protocol import Agents, Decomposition, Plan, Reading
from pyrag.episode.ledger import Recording
from pyrag.errors import ServiceError
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.events import Observer, ignore
from pyrag.trace.model import UNKNOWN, Passage, Trace, Usage
from pyrag_sandbox import Sandbox


@dataclass
class World:
    """`facts` maps a query to (answer, rank of its evidence); `programs` are the plans in the order asked for.

    `fail` maps a query to the error that its retrieval raises; what is in `hang` never ends. `log` holds every request
    in order of its start.
    """

    facts: dict[str, tuple[str, int]] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    sub_queries: tuple[str, ...] = ("What?",)
    fail: dict[str, ServiceError] = field(default_factory=dict)
    hang: set[str] = field(default_factory=set)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    delay: float = 0.0
    log: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    sandbox: Sandbox = field(default_factory=Sandbox)
    name: str = "world"

    async def _work(self, kind: str, text: str) -> None:
        self.log.append((kind, text))
        if text in self.hang:
            self.hanging.set()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(3600 if text in self.hang else self.delay)
        finally:
            self.in_flight -= 1

    async def decompose(self, question: str) -> Decomposition:
        await self._work("decompose", question)
        return Decomposition(self.sub_queries, usage=Usage(model_calls=1))

    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        await self._work("plan", question)
        joint = () if sub_queries is not None else self.sub_queries
        return Plan(self.programs[0], joint, usage=Usage(model_calls=1))

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        await self._work("repair", error)
        self.errors.append(error)
        return Plan(self.programs[min(len(self.errors), len(self.programs) - 1)], usage=Usage(model_calls=1))

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        await self._work("answer", query)
        usage = Usage(model_calls=1, prompt_tokens=10, completion_tokens=1)
        if passages is None:
            given = query.removeprefix("Given: ").partition(". Answer the question:")[0]
            return Reading(given, known=True, usage=usage)
        for position, passage in enumerate(passages):
            if passage.text == f"evidence for {query}":
                return Reading(self.facts[query][0], True, (position,), usage=usage)
        return Reading(UNKNOWN, known=False, usage=usage)

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        await self._work(f"retrieve {topk}", query)
        if query in self.fail:
            raise self.fail[query]
        rank = self.facts.get(query, ("", 0))[1]
        texts = [f"evidence for {query}" if n == rank else f"noise {n} for {query}" for n in range(1, topk + 1)]
        return [Passage(f"{query}-{n}", f"title {n}", text, 1 / n) for n, text in enumerate(texts, start=1)]

    async def aclose(self) -> None:
        return

    def count(self, kind: str) -> int:
        return sum(one.startswith(kind) for one, _ in self.log)

    async def ask(
        self,
        question: str = "What?",
        observer: Observer = ignore,
        recording: Recording | None = None,
        **settings: object,
    ) -> Trace:
        keep = bool(settings.pop("keep", False))
        engines = Engines(Agents("world", self, self, self), self, self.sandbox)
        chosen = Settings(**settings)  # type: ignore[arg-type]  # tests pass real setting names
        return await answer_question(question, engines, chosen, observer=observer, recording=recording, keep=keep)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.sandbox.aclose()

"""Programs over a tool with effects: what is ordered is written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyrag import PyRAG, Trace
from pyrag.agents.protocol import Reading
from pyrag.extend import Sourced, tool
from pyrag.trace.model import Passage
from tests.episode.flow.program_maker import INPUTS


@dataclass
class World:
    """What is retrieved and read: replaced to see whether it makes a difference."""

    text: str = "yes"
    answer: str = "yes"
    known: bool = True

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        """One passage for everything."""
        return [Passage("p1", self.text, self.text)] if self.text else []

    async def answer_of(self) -> Reading:
        return Reading(self.answer, known=self.known)


class _Reader:
    def __init__(self, world: World) -> None:
        self._world = world

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        return await self._world.answer_of()


class _Searcher:
    name = "world"

    def __init__(self, world: World) -> None:
        self._world = world

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        return await self._world.retrieve(query, topk)

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass
class Desk:
    """Runs programs and lists what they ordered."""

    world: World = field(default_factory=World)
    orders: list[str] = field(default_factory=list)

    @property
    def tools(self) -> list[Any]:
        """Tools of the programs."""
        return [tool(effects=True, name="order")(self._order), self.lookup, self.notes, self.sourced]

    def _order(self, item: str) -> str:
        """Order an item."""
        self.orders.append(item)
        return f"number {len(self.orders)}"

    def lookup(self, key: str) -> str:
        """Look up a value of the owner's."""
        return f"value of {key}"

    def notes(self, key: str) -> list[Passage]:
        """Notes as passages."""
        return [Passage("n1", "note", self.world.text)]

    def sourced(self, key: str) -> Sourced[str]:
        """A value taken from a passage."""
        return Sourced(self.world.text, (Passage("n2", "note", self.world.text),))

    def open(self, **settings: Any) -> PyRAG:
        """An object whose programs have the tools."""
        world = self.world
        return PyRAG(retriever=_Searcher(world), answerer=_Reader(world), tools=self.tools, recovery="none", **settings)

    def run(self, rag: PyRAG, source: str, inputs: Mapping[str, Any] = INPUTS) -> tuple[Trace, list[str]]:
        """The trace of a program, and what it ordered."""
        self.orders.clear()
        trace = rag.run(source, inputs)
        return trace, list(self.orders)


@pytest.fixture(scope="module")
def desk() -> Desk:
    """One desk for the tests of a module."""
    return Desk()


@pytest.fixture(scope="module")
def rag(desk: Desk) -> Iterator[PyRAG]:
    """An object with the default policy."""
    with desk.open() as opened:
        yield opened

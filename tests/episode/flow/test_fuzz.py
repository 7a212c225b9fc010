"""Random programs: no call with effects depends on what was retrieved, and plain programs make all of theirs.

The oracle runs a program in several worlds, which differ in passages and answers only. Whatever is ordered must be the
same in all of them. Most programs run in this process, with the analysis of the runtime; some run in the real runtime.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.episode.flow.analysis import dependence
from pyrag_helpers import is_known
from tests.episode.flow.conftest import Desk
from tests.episode.flow.program_maker import INPUTS, Maker

WORLDS = (("yes", "yes", True), ("nothing to see here", "no, never", True), ("", "", False), ("12", "7", True))
SOURCES = frozenset(("retrieve", "answer", "each", "documents"))
EFFECTS = frozenset(("order",))


class _Refused(BaseException):
    """End of a program at a call that is not made."""


class _Doc(dict[str, Any]):
    """A passage as programs see it."""

    @property
    def text(self) -> str:
        return str(self["text"])


class _Paper(_Doc):
    """A document as programs see it: it has no text of its own."""


@dataclass
class _Library:
    """Primitives that search and answer in a world, and fail as those of the runtime do."""

    text: str
    answer: str
    delivered: bool = False

    def retrieve(self, query: str, topk: int = 5) -> list[_Doc]:
        self.delivered = True
        return [_Doc(text=self.text, title=self.text)] if self.text else []

    def documents(self) -> list[_Paper]:
        self.delivered = True
        return [_Paper(title=self.text) for _ in range(len(self.text) % 3)]

    def read(self, query: str, docs: Any = None) -> str:
        self.delivered = True
        if not all(type(item) is _Doc for item in _flat(docs or [])):
            raise TypeError("docs must hold passages")
        return self.answer

    def each(self, items: Any, question: str, returns: Any = None) -> list[_Doc]:
        self.delivered = True
        if not isinstance(items, list) or not all(isinstance(item, dict | str) for item in items):
            raise TypeError("each() needs a list of items")
        for item in items:
            question.format(**{"item": item, **(item if isinstance(item, dict) else {})})
            if "{" not in question and not isinstance(item, _Doc):
                raise ValueError("a plain question is asked only of documents and passages")
        if returns == "number" and items and self.answer != "yes":
            raise ValueError("the numbers have different units")
        return [_Doc(value=self.answer, known=self.answer != "yes") for _ in items]


def orders(source: str, text: str, answer: str, *, guarded: bool = True) -> list[str]:
    """What a program orders in a world, in this process."""
    made: list[str] = []
    library = _Library(text, answer)

    def order(item: Any) -> str:
        line = sys._getframe(1).f_lineno
        if guarded and library.delivered and dependence(source, SOURCES, EFFECTS, "order", line) is not None:
            raise _Refused
        made.append(str(item))
        return f"number {len(made)}"

    names: dict[str, Any] = {"order": order, "is_known": is_known, "print": lambda *_: None, **INPUTS}
    names |= {"retrieve": library.retrieve, "documents": library.documents}
    names |= {"answer": library.read, "each": library.each}
    with suppress(Exception, _Refused):
        exec(compile(source, "<program>", "exec"), names)
    return made


def _flat(items: Any) -> list[Any]:
    """Items of a list and of the lists in it."""
    return [part for item in items for part in _flat(item)] if isinstance(items, list) else [items]


def differing(make: Callable[[Maker], str], seeds: range, *, guarded: bool = True) -> Iterator[str]:
    """Programs whose orders differ between the worlds."""
    for seed in seeds:
        source = make(Maker(seed))
        if len({tuple(orders(source, text, answer, guarded=guarded)) for text, answer, _ in WORLDS}) > 1:
            yield source


def check_many(seeds: range) -> None:
    assert not list(differing(Maker.any_program, seeds))
    for seed in seeds:
        source = Maker(seed).dependent_program()
        assert [orders(source, text, answer) for text, answer, _ in WORLDS] == [[]] * len(WORLDS), source
        source, expected = Maker(seed).free_program()
        assert orders(source, "yes", "yes") == expected, source


def check_runtime(desk: Desk, rag: PyRAG, seeds: range) -> None:
    for seed in seeds:
        source, ordered = Maker(seed).any_program(), []
        for world in WORLDS:
            desk.world.text, desk.world.answer, desk.world.known = world
            ordered.append(desk.run(rag, source)[1])
        assert ordered == [ordered[0]] * len(WORLDS), source
        source = Maker(seed).dependent_program()
        assert desk.run(rag, source)[1] == [], source
        source, expected = Maker(seed).free_program()
        trace, made = desk.run(rag, source)
        assert (trace.error, made) == (None, expected), source


def test_random_programs_order_the_same_in_all_worlds() -> None:
    check_many(range(300))


def test_the_worlds_show_the_flows_of_unguarded_programs() -> None:
    assert len(list(differing(Maker.any_program, range(100), guarded=False))) > 40


def test_the_runtime_guards_random_programs(desk: Desk, rag: PyRAG) -> None:
    check_runtime(desk, rag, range(12))


@pytest.mark.slow
def test_thousands_of_programs_order_the_same_in_all_worlds() -> None:
    check_many(range(1_000, 21_000))


@pytest.mark.slow
def test_the_runtime_guards_hundreds_of_programs(desk: Desk, rag: PyRAG) -> None:
    check_runtime(desk, rag, range(1_000, 1_400))

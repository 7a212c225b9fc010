"""Random programs: no call with effects depends on what was retrieved, and plain programs make all of theirs.

The oracle runs a program in several worlds, which differ in passages and answers only. Whatever is ordered must be the
same in all of them. Most programs run in this process, with the analysis of the runtime; some run in the real runtime.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.episode.flow.analysis import dependence
from pyrag_helpers import is_known
from tests.episode.flow.conftest import Desk
from tests.episode.flow.program_maker import INPUTS, Maker

WORLDS = (("yes", "yes", True), ("nothing to see here", "no, never", True), ("", "", False), ("12", "7", True))
SOURCES, EFFECTS = frozenset(("retrieve", "answer")), frozenset(("order",))


class _Refused(BaseException):
    """End of a program at a call that is not made."""


class _Doc(dict[str, str]):
    """A passage as programs see it."""

    @property
    def text(self) -> str:
        return self["text"]


def orders(source: str, text: str, answer: str, *, guarded: bool = True) -> list[str]:
    """What a program orders in a world, in this process."""
    made: list[str] = []
    delivered = False

    def order(item: Any) -> str:
        line = sys._getframe(1).f_lineno
        if guarded and delivered and dependence(source, SOURCES, EFFECTS, "order", line) is not None:
            raise _Refused
        made.append(str(item))
        return f"number {len(made)}"

    def retrieve(query: str, topk: int = 5) -> list[_Doc]:
        nonlocal delivered
        delivered = True
        return [_Doc(text=text, title=text)] if text else []

    def read(query: str, docs: Any = None) -> str:
        nonlocal delivered
        delivered = True
        return answer

    names: dict[str, Any] = {"order": order, "retrieve": retrieve, "answer": read, "is_known": is_known}
    with suppress(Exception, _Refused):
        exec(compile(source, "<program>", "exec"), names | {"print": lambda *_: None} | dict(INPUTS))
    return made


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

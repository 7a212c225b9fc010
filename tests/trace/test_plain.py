"""Values of every kind in a trace: each is written in the documented form, and read back."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import DataError
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Answer, Program, Trace
from pyrag.trace.plain import MAX_DEPTH, encoded, jsonable

TRACE = Trace("Who?", Answer("Ada"))


@dataclass(frozen=True)
class Point:
    x: int
    seen: object = None


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({True: "yes", None: 1, 1.5: 2, 7: 3}, {"True": "yes", "None": 1, "1.5": 2, "7": 3}),
        ({1: "a", "1": "b"}, {"1 (int)": "a", "1": "b"}),
        ({True: 1, "True": 2, "True (bool)": 3}, {"True (bool) (bool)": 1, "True": 2, "True (bool)": 3}),
        ({(1, "x"): 2, float("nan"): 3, b"k": 4}, {"(1, 'x')": 2, "nan": 3, "b'k'": 4}),
        ({None: float("nan")}, {"None": "nan"}),
        ([{None: float("-inf")}], [{"None": "-inf"}]),
        ([{True: {2, 1}}, frozenset("b")], [{"True": [1, 2]}, ["b"]]),
        ({True: (1, range(2))}, {"True": [1, [0, 1]]}),
        ("half \ud800", "half \ufffd"),
        ({"\ud800": b"\xff"}, {"\ufffd": "b'\\xff'"}),
        (2**70, 2**70),
        ({None: Point(1, {True: 2})}, {"None": {"x": 1, "seen": {"True": 2}}}),
        ({None: Path("/a")}, {"None": "/a"}),
        ({None: Hostile()}, {"None": "Hostile"}),
    ],
)
def test_every_value_has_a_written_form(value: Any, written: Any) -> None:
    assert json.loads(encoded(jsonable(value))) == written
    trace = replace(TRACE, variables={"x": jsonable(value)}, extensions={"own": value})
    assert from_json(to_json(trace)).variables == {"x": written}


def test_numbers_beyond_all_digits_are_hexadecimal() -> None:
    for value in (10**5000, -(10**5000)):
        assert from_json(to_json(replace(TRACE, variables={"x": value}))).variables == {"x": hex(value)}


def test_cycles_and_deep_values_end_in_a_mark() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = {None: "bottom"}
    for _ in range(50_000):
        deep = [deep]
    for value in (loop, deep):
        found = from_json(to_json(replace(TRACE, variables={"x": value}))).variables["x"]
        for _ in range(MAX_DEPTH - 2):
            (found,) = found
        assert "…" in json.dumps(found, ensure_ascii=False)


def test_halves_of_characters_are_replaced_everywhere() -> None:
    said = "a \ud83d b"
    trace = replace(TRACE, answer=Answer(said), programs=(Program(said, "p", error=said),), warnings=(said,))
    read = from_json(to_json(trace))
    assert (read.answer.text, read.programs[0].source, read.warnings) == ("a \ufffd b", "a \ufffd b", ("a \ufffd b",))


def test_a_trace_that_cannot_be_written_is_a_data_error() -> None:
    class Bottomless(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            raise MemoryError

        def __iter__(self) -> Any:
            raise MemoryError

    with pytest.raises(DataError, match="a trace cannot be written"):
        to_json(replace(TRACE, extensions={None: Bottomless()}))  # type: ignore[dict-item]

"""The helpers where they are used: inside of a sandbox's worker, on values from primitives."""

from __future__ import annotations

import ast
import inspect
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from pyrag_helpers import ERRORS, HELPERS, MODULE
from pyrag_sandbox import Absent, Call, Outcome, Sandbox, Text
from pyrag_sandbox.dataflow.plan import plan

ABSENT = Absent(("N/A",), ("N/A", "not"), "UnknownAnswerError", "the answer is unknown")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(prefork=1) as made:
        yield made


async def find(call: Call) -> Text:
    if call.args == ("found",):
        return Text("12 May 1901", {"known": True})
    return Text("unknown", {"known": False}, ABSENT)


async def finished(sandbox: Sandbox, source: str) -> Outcome:
    return await sandbox.run(source, {"find": find}, helpers=MODULE)


USES = [
    "parse_date(x)",
    "parse_year(x)",
    "parse_number(x)",
    "parse_quantity(x)",
    "years_between(x, '1901')",
    "years_between('1901', x.strip())",
    "overlap(x, '1901-1910')",
    "same_entity(x, y)",
    "same_entity(y, f'{x}')",
    "common(x, y)",
    "parse_year(None)",
    "parse_number('unknown')",
]


async def test_uses_of_unknown_answers_raise_its_error(sandbox: Sandbox) -> None:
    ended = {}
    for use in USES:
        outcome = await finished(sandbox, f"x = find('lost')\ny = find('found')\nfinal_answer = {use}")
        ended[use] = (outcome.status, outcome.error and (outcome.error.type, outcome.error.line))
    assert ended == dict.fromkeys(USES, ("error", ("UnknownAnswerError", 3)))


async def test_programs_test_for_unknown_and_catch_its_error(sandbox: Sandbox) -> None:
    source = (
        "x = find('lost')\ny = find('found')\nfinal_answer = [is_known(x), is_known(x.strip()), is_known(y)]\n"
        "try:\n    parse_year(x)\nexcept UnknownAnswerError as e:\n    final_answer.append('caught')\n"
        "final_answer.append(parse_date(y).isoformat())"
    )
    assert (await finished(sandbox, source)).value == [False, False, True, "caught", "1901-05-12"]


async def test_a_worker_imports_the_helpers_and_nothing_of_pyrag(sandbox: Sandbox) -> None:
    source = "import sys\nfinal_answer = sorted({name.split('.')[0] for name in sys.modules if 'pyrag' in name})"
    outcome = await sandbox.run(source, {}, helpers=MODULE, policy=False)
    assert outcome.value == ["pyrag_helpers", "pyrag_sandbox"]


@pytest.mark.parametrize("name", HELPERS)
def test_helpers_call_none_of_their_arguments(name: str) -> None:
    """The analysis takes them for pure, so a callable argument must not run."""
    calls = []
    function: Any = HELPERS[name]
    for position in range(len(inspect.signature(function).parameters)):
        arguments = ["1901"] * len(inspect.signature(function).parameters)
        arguments[position] = lambda *args: calls.append(args)  # type: ignore[call-overload]
        with suppress(Exception):
            function(*arguments)
    assert calls == []


def test_the_error_of_unknown_answers_keeps_calls_overlapping() -> None:
    source = "try:\n    x = find('a')\nexcept UnknownAnswerError:\n    x = 'none'\ny = find('b')"
    units = {}
    for errors in (frozenset(ERRORS), frozenset[str]()):
        made = plan(ast.parse(source), frozenset({"find"}), frozenset(HELPERS), errors)
        units[bool(errors)] = [unit.early for unit in made.root.units]
    assert units[True] != units[False]


async def test_quantities_leave_a_program_as_numbers(sandbox: Sandbox) -> None:
    source = "final_answer = [parse_quantity('2 km'), {'a': parse_quantity('0.5 kg')}, parse_quantity('46 rooms')]"
    outcome = await finished(sandbox, source)
    assert outcome.value == [2000, {"a": 0.5}, 46]
    assert list(map(type, (outcome.value[0], outcome.value[2]))) == [int, int]


async def test_incomparable_quantities_are_an_error_of_values(sandbox: Sandbox) -> None:
    outcome = await finished(sandbox, "final_answer = parse_quantity('2 km') > parse_quantity('3 kg')")
    assert outcome.error is not None
    assert outcome.error.type == "ValueError"


def test_the_sandbox_lists_the_helpers_of_installed_packages() -> None:
    from pyrag_sandbox.helpers import HELPERS as LISTED

    assert {name: LISTED[name] for name in HELPERS} == HELPERS

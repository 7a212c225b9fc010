"""A value that was not found: each test of a program for it has the result that the program's author meant."""

from __future__ import annotations

from typing import Any

import pytest

from pyrag_sandbox import Absent, Call, Text

WORDS = ("N/A", "n/a", "Not found", "not found.", "none", "Unable to determine")
ABSENT = Absent(WORDS, (*WORDS, "not", "not found"), "LostError", "the value is unknown")


async def find(call: Call) -> Text:
    if call.args == ("found",):
        return Text("Not Found Records", {"known": True})
    return Text("unknown", {"known": False}, ABSENT)


TESTS = [
    "not x",
    "x == 'unknown'",
    "x == 'N/A'",
    "'N/A' == x",
    "not (x != 'Not found')",
    "x == None",
    "x is None",
    "not (x is not None)",
    "x == ''",
    "not x.strip()",
    "len(x) == 0",
    "len(x.strip()) < 1",
    "x.lower() == 'unknown'",
    "x.upper() == 'UNKNOWN'",
    "x.strip().lower() in ('unknown', 'none')",
    "x.strip('. ').lower() in ['n/a', 'none']",
    "x in {'n/a', 'none'}",
    "x.lower() in {'n/a': 1}",
    "x in frozenset(['Unable to determine'])",
    "not (x not in {'n/a'})",
    "'not found' in x",
    "'not' in x.lower()",
    "'unknown' in str(x).lower()",
    "any(word in x.lower() for word in ('unknown', 'not found'))",
    "any(x == word for word in ['none'])",
    "x.lower().startswith('unknown')",
    "x.lower().startswith(('not found', 'cannot'))",
    "x.find('not found') != -1",
    "x.find('not found') >= 0",
    "x.count('unknown') > 0",
    "x.split(' (')[0] == 'n/a'",
    "x.split(',')[0].strip() in ('none', 'n/a')",
    "x.replace('.', '').lower() == 'unknown'",
    "x[:200].lower() == 'unknown'",
    "x.title() == 'Unknown'",
    "f'{x}'.lower() == 'unknown'",
    "'{}'.format(x) == 'unknown'",
    "x.known is False",
    "not is_present(x)",
    "not is_present(x.strip())",
    "(x or 'fallback') == 'fallback'",
    "not any([x])",
    "list(filter(None, [x])) == []",
    "bool(x) is False",
    "isinstance(x, str)",
]
OTHERS = [
    "x == 'yes'",
    "x.lower() == 'paris'",
    "x in ('yes', 'no')",
    "x in {'yes', 'no'}",
    "'yes' in x.lower()",
    "', ' in x",
    "' ' in x",
    "x.startswith('Y')",
    "x == 7",
    "is_present(x)",
]


@pytest.mark.parametrize("test", TESTS)
async def test_tests_for_unknown_hold(run_anywhere: Any, test: str) -> None:
    outcome = await run_anywhere(f"x = find('lost')\nfinal_answer = {test}", {"find": find})
    assert (outcome.status, outcome.value) == ("ok", True), outcome.error


@pytest.mark.parametrize("test", OTHERS)
async def test_tests_for_something_else_fail(run_anywhere: Any, test: str) -> None:
    outcome = await run_anywhere(f"x = find('lost')\nfinal_answer = {test}", {"find": find})
    assert (outcome.status, outcome.value) == ("ok", False), outcome.error


async def test_a_found_value_of_such_words_is_one(run_anywhere: Any) -> None:
    source = (
        "x = find('found')\nfinal_answer = [bool(x), x is None, x == 'N/A', 'Not Found' in x, x in {'n/a'}, len(x)]"
    )
    outcome = await run_anywhere(source, {"find": find})
    assert outcome.value == [True, False, False, True, False, 17]


@pytest.mark.parametrize("test", ["match x:\n    case 'N/A':", "while not x:", "for _ in [1] if not x else []:"])
async def test_statements_branch_on_unknown(run_anywhere: Any, test: str) -> None:
    inside = "        " if "case" in test else "    "
    stop = f"\n{inside}break" if "while" in test else ""
    source = f"x = find('lost')\nfinal_answer = 'no'\n{test}\n{inside}final_answer = 'yes'{stop}"
    outcome = await run_anywhere(source, {"find": find})
    assert (outcome.status, outcome.value) == ("ok", "yes"), outcome.error


USES = [
    "x < y",
    "y > x",
    "max(x, y)",
    "sorted([y, x])",
    "x == y",
    "y == x",
    "x != y",
    "x == find('lost too')",
    "y in x",
    "x in y",
    "x in [y]",
    "len({x, find('lost too')}) == 1",
    "int(x)",
    "float(x)",
    "int(x[:4])",
    "int(x.split()[-1])",
    "range(x)",
    "shouted(x)",
    "shouted(x.strip())",
]


@pytest.mark.parametrize("use", USES)
async def test_uses_of_unknown_raise_its_error(run_anywhere: Any, use: str) -> None:
    source = f"x = find('lost')\ny = find('found')\nfinal_answer = {use}"
    outcome = await run_anywhere(source, {"find": find})
    assert outcome.status == "error"
    assert (outcome.error.type, outcome.error.line) == ("LostError", 3)


@pytest.mark.parametrize("caught", ["LostError", "ValueError", "Exception", "(LostError, TypeError)"])
@pytest.mark.parametrize("use", ["shouted(x)", "int(x)", "x < 'b'"])
async def test_the_error_can_be_caught(run_anywhere: Any, caught: str, use: str) -> None:
    source = f"x = find('lost')\ntry:\n    final_answer = {use}\nexcept {caught} as e:\n    final_answer = 'caught'"
    assert (await run_anywhere(source, {"find": find})).value == "caught"


async def test_a_primitives_error_of_that_name_is_the_same(run_anywhere: Any) -> None:
    from pyrag_sandbox import PrimitiveError

    async def refuse(call: Call) -> Any:
        raise PrimitiveError("not that", "LostError")

    source = "try:\n    refuse()\nexcept LostError as e:\n    final_answer = str(e)"
    assert (await run_anywhere(source, {"refuse": refuse})).value == "not that"


async def test_unknown_comes_back_as_the_very_object(run_anywhere: Any) -> None:
    given = Text("unknown", {"known": False}, ABSENT)
    seen: list[Any] = []

    async def give(call: Call) -> Text:
        return given

    async def take(call: Call) -> None:
        seen.append(call.args[0])

    source = "x = give()\ntake(x)\ntake(x.strip().lower())\ntake(f'{x}!')\nfinal_answer = f'{x}'"
    outcome = await run_anywhere(source, {"give": give, "take": take})
    assert seen[0] is given
    assert seen[1] is given
    assert seen[2] == "unknown!"
    assert outcome.value is given


@pytest.mark.parametrize(
    "theft", ["x._error", "x._mark(spellings=[])", "x._make(0, 'a', {})", "x.strip.__func__", "getattr(x, '_handle')"]
)
async def test_its_inside_is_out_of_reach(run_anywhere: Any, theft: str) -> None:
    outcome = await run_anywhere(f"x = find('lost')\nfinal_answer = {theft}", {"find": find})
    assert outcome.status == "blocked"


async def test_it_cannot_be_changed(run_anywhere: Any) -> None:
    outcome = await run_anywhere("x = find('lost')\nx.known = True\nfinal_answer = x", {"find": find})
    assert outcome.status != "ok"

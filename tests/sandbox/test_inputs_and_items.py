"""Inputs of a program, and the calls behind each item of its result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pyrag_sandbox import Call, Limits, Outcome, Sandbox, Text


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(prefork=1) as opened:
        yield opened


async def look_up(call: Call) -> Text:
    return Text(f"found {call.args[0]}")


async def run(sandbox: Sandbox, source: str, inputs: dict[str, Any], **more: Any) -> Outcome:
    return await sandbox.run(source, {"look_up": look_up}, inputs=inputs, **more)


@pytest.mark.parametrize(
    "value", ["", "ü\ud7ff", 0, -(10**30), 1.5, True, None, [], [[1], {"a": None}], {"$h": 1, "$T": [0]}, (1, "a")]
)
async def test_inputs_reach_the_program_unchanged(sandbox: Sandbox, value: Any) -> None:
    assert (await run(sandbox, "final_answer = x", {"x": value})).value == value


async def test_inputs_may_be_changed_and_are_reported_as_variables(sandbox: Sandbox) -> None:
    given = {"x": [1]}
    outcome = await run(sandbox, "x.append(2)\nfinal_answer = len(x)", given)
    assert (outcome.value, outcome.variables["x"], given) == (2, [1, 2], {"x": [1]})


@pytest.mark.parametrize("name", ["_x", "for", "a b", "1a", ""])
async def test_names_that_programs_cannot_use_are_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a name"):
        await run(sandbox, "final_answer = 1", {name: 1})


async def test_inputs_are_bounded_and_plain(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="larger than"):
        await run(sandbox, "final_answer = 1", {"x": "a" * 2000}, limits=Limits(value_bytes=1000))
    with pytest.raises(TypeError, match="cannot cross"):
        await run(sandbox, "final_answer = 1", {"x": object()})


async def test_loops_over_inputs_overlap_like_other_loops(sandbox: Sandbox) -> None:
    outcome = await run(sandbox, "final_answer = [look_up(x) for x in xs]", {"xs": ["a", "b"]})
    assert [item.text for item in outcome.value] == ["found a", "found b"]
    assert [call.depends_on for call in outcome.calls] == [(), ()]


@pytest.mark.parametrize("concurrent", [True, False])
@pytest.mark.parametrize(
    ("source", "items"),
    [
        ("final_answer = [look_up(x) for x in xs]", [{"a"}, {"b"}]),
        ("final_answer = [len(look_up(x)) for x in xs]", [{"a"}, {"b"}]),
        ("p = look_up('a')\nq = look_up(p)\nfinal_answer = [p + '!', q, 'k']", [{"a"}, {"a", "found a"}, set()]),
        ("r = [look_up('a')]\nr.append(look_up('b'))\nfinal_answer = r", []),
        ("final_answer = {'k': look_up('a')}", []),
        ("final_answer = look_up('a')", []),
        ("final_answer = [look_up('a')]\nfinal_answer = 3", []),
    ],
)
async def test_items_name_the_calls_behind_them(
    sandbox: Sandbox, source: str, items: list[set[str]], concurrent: bool
) -> None:
    outcome = await run(sandbox, source, {"xs": ["a", "b"]}, concurrent=concurrent)
    asked = {call.id: str(getattr(call.args[0], "text", call.args[0])) for call in outcome.calls}
    named = [{asked[call] for call in calls} for calls in outcome.items]
    assert named == items or (not concurrent and named == [])

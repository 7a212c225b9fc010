"""Effects happen once: whatever is repaired, retried or replayed, a call with effects is not repeated by mistake."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pyrag.episode.ledger import Recording
from pyrag.errors import ConfigError
from pyrag.tools import Tool, ToolError, tool
from tests.tools.conftest import Desk

FIRST = 'number = order("pen")\nfinal_answer = int(number)'  # fails after its call


class Shop:
    """Takes orders, and fails as it is told."""

    def __init__(self, *, repeatable: bool = False, failure: BaseException | None = None, result: Any = None) -> None:
        self.orders: list[tuple[str, int]] = []
        self.failure = failure
        self.result = result
        self.tool: Tool[..., str] = tool(effects=True, repeatable=repeatable, name="order")(self._order)

    def _order(self, item: str, count: int = 1) -> str:
        """Order an item."""
        if count > 10:
            raise ToolError("at most 10 of an item")
        self.orders.append((item, count))
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return self.result or f"N{len(self.orders)}"


async def test_the_same_call_is_answered_from_the_record(desk: Desk) -> None:
    shop = Shop()
    trace = await desk.ask(
        'a = order("pen")\nb = order("ink", count=2)\nfinal_answer = int(a + b)',
        'a = order("pen")\nb = order("ink", count=2)\nfinal_answer = f"{a} {b}"',
        tools=[shop.tool],
    )
    assert trace.answer.text == "N1 N2"
    assert shop.orders == [("pen", 1), ("ink", 2)]
    assert [(step.query, step.memo) for step in trace.steps] == [
        ("pen", False), ("'ink', count=2", False), ("pen", True), ("'ink', count=2", True)
    ]  # fmt: skip
    assert trace.usage.tool_calls == 2


async def test_the_author_is_shown_what_has_happened(desk: Desk) -> None:
    shop = Shop()
    await desk.ask(FIRST, 'final_answer = order("pen")', tools=[shop.tool])
    assert desk.model is not None
    assert "These calls have happened and are not made again." in desk.model.calls[-1][-1].content
    assert "order(pen) → 'N1'" in desk.model.calls[-1][-1].content


async def test_a_repair_goes_on_where_the_first_stopped(desk: Desk) -> None:
    shop = Shop()
    trace = await desk.ask(
        'for item in ["pen", "ink", "ink"]:\n    order(item)\nfinal_answer = int("x")',
        'got = [order(item) for item in ["pen", "ink", "ink", "cap"]]\nfinal_answer = " ".join(got)',
        tools=[shop.tool],
    )
    assert trace.answer.text == "N1 N2 N3 N4"
    assert shop.orders == [("pen", 1), ("ink", 1), ("ink", 1), ("cap", 1)]


@pytest.mark.parametrize(
    "repair",
    [
        'final_answer = order("pencil")',
        'final_answer = order("pen", 2)',
        'final_answer = order("pen", count=1)',
        'final_answer = order("pen") + order("pen")',
        'try:\n    a = order("pens")\nexcept Exception:\n    a = "caught"\nfinal_answer = a',
        'final_answer = order("ink") + order("pen")',
        'buy = order\nfinal_answer = [buy(x) for x in ["pens"]]',
    ],
)
async def test_any_other_call_stops_and_says_what_has_happened(desk: Desk, repair: str) -> None:
    shop = Shop()
    trace = await desk.ask(FIRST, repair, tools=[shop.tool], whole_question=True)
    assert shop.orders == [("pen", 1)]
    assert trace.error is not None
    assert trace.error.kind == "effects"
    assert "order(pen) → 'N1'" in trace.error.message
    assert "repeatable" in trace.error.message


async def test_a_repeatable_tool_is_called_again(desk: Desk) -> None:
    shop = Shop(repeatable=True)
    trace = await desk.ask(FIRST, 'final_answer = order("pens") + order("pen")', tools=[shop.tool])
    assert trace.answer.text == "N2N1"
    assert shop.orders == [("pen", 1), ("pens", 1)]


def test_only_effects_are_repeatable() -> None:
    with pytest.raises(ConfigError, match="has no effects: leave repeatable out"):
        tool(repeatable=True, name="order")(Shop()._order)


async def test_a_refused_call_has_not_happened(desk: Desk) -> None:
    shop = Shop()
    trace = await desk.ask(
        'final_answer = order("pen", 20)',
        "final_answer = order(3)",
        'final_answer = order("pen", 10)',
        tools=[shop.tool],
    )
    assert (trace.answer.text, shop.orders) == ("N1", [("pen", 10)])


@pytest.mark.parametrize("failure", [RuntimeError("reset"), KeyboardInterrupt(), StopIteration()])
async def test_a_failed_call_may_have_happened(desk: Desk, failure: BaseException) -> None:
    shop = Shop(failure=failure)
    trace = await desk.ask('final_answer = order("pen")', 'final_answer = order("pen")', tools=[shop.tool])
    assert shop.orders == [("pen", 1)]
    assert trace.error is not None
    assert "these calls have happened: order(pen) (failed, and may have taken effect" in trace.error.message


async def test_a_misshapen_result_has_happened(desk: Desk) -> None:
    shop = Shop(result=["no text"])
    await desk.ask('final_answer = order("pen")', 'final_answer = order("pen")', tools=[shop.tool])
    assert shop.orders == [("pen", 1)]


async def test_a_call_that_ran_out_of_time_has_happened(desk: Desk) -> None:
    begun: list[str] = []

    @tool(effects=True, timeout=0.05)
    async def order(item: str) -> str:
        """Order an item."""
        begun.append(item)
        await asyncio.sleep(30)
        return item

    trace = await desk.ask('final_answer = order("pen")', 'final_answer = order("pen")', tools=[order])
    assert begun == ["pen"]
    assert trace.error is not None
    assert "took longer" in trace.error.message


async def test_left_out_calls_are_a_warning(desk: Desk) -> None:
    shop = Shop()
    trace = await desk.ask(FIRST, "final_answer = 7", tools=[shop.tool])
    assert trace.answer.text == "7"
    assert any("not in the one that gave the answer: order(pen) → 'N1'" in one for one in trace.warnings)


async def test_a_killed_worker_repeats_no_effect(desk: Desk) -> None:
    shop, killed = Shop(), []

    async def look(name: str) -> str:
        """Look something up."""
        if not killed:
            (worker,) = desk.sandbox.zygotes[0].busy
            killed.append(worker)
            os.kill(worker, signal.SIGKILL)
            await asyncio.sleep(0.2)
        return name

    trace = await desk.ask('a = order("pen")\nfinal_answer = a + look("x")', tools=[shop.tool, look])
    assert (trace.answer.text, shop.orders) == ("N1x", [("pen", 1)])
    assert any("run again" in one and "killed from outside" in one for one in trace.warnings)


async def test_an_interrupted_call_is_not_made_again(desk: Desk) -> None:
    begun: list[str] = []

    @tool(effects=True)
    async def order(item: str) -> str:
        """Order an item."""
        begun.append(item)
        os.kill(desk.sandbox.zygotes[0].pid, signal.SIGKILL)
        await asyncio.sleep(30)
        return item

    trace = await desk.ask('final_answer = order("pen")', tools=[order])
    assert begun == ["pen"]
    assert trace.error is not None
    assert "order(pen) (interrupted: it may have taken effect)" in trace.error.message


async def test_a_killed_zygote_costs_no_question(desk: Desk) -> None:
    kills: list[int] = []

    async def look(name: str) -> str:
        """Look something up."""
        if len(kills) < 2:
            kills.append(desk.sandbox.zygotes[0].pid)
            os.kill(kills[-1], signal.SIGKILL)
            await asyncio.sleep(0.2)
        return name

    trace = await desk.ask('final_answer = look(look("a") + "b")', tools=[look])
    assert (trace.answer.text, trace.error) == ("ab", None)


async def test_a_program_that_is_always_killed_ends(desk: Desk) -> None:
    async def look(name: str) -> str:
        """Look something up."""
        (worker,) = desk.sandbox.zygotes[0].busy
        os.kill(worker, signal.SIGKILL)
        await asyncio.sleep(0.2)
        return name

    trace = await desk.ask('a = ""\nfor q in "abcdefgh":\n    a = look(a + q)\nfinal_answer = a', tools=[look])
    assert trace.error is not None
    assert "killed 4 times" in trace.error.message


@pytest.mark.parametrize(
    ("programs", "repeatable"),
    [
        ((FIRST, 'final_answer = order("pen")'), False),
        ((FIRST, 'final_answer = order("pens")'), False),
        ((FIRST, 'final_answer = order("pens")'), True),
        (
            (
                'order("pen")\norder("pen")\nfinal_answer = int("x")',
                'final_answer = order("pen") + order("pen") + order("ink")',
            ),
            False,
        ),
    ],
)
async def test_replays_end_alike(desk: Desk, programs: tuple[str, ...], repeatable: bool) -> None:
    shop = Shop(repeatable=repeatable)
    trace = await desk.ask(*programs, tools=[shop.tool], keep=True)
    orders = list(shop.orders)
    again = await desk.ask(*programs, recording=Recording(trace.exchanges), agents=None)
    assert shop.orders == orders
    assert (again.answer, again.error) == (trace.answer, trace.error)
    assert [step.memo for step in again.steps] == [step.memo for step in trace.steps]


async def test_streamed_programs_call_nothing_ahead(desk: Desk, tmp_path: Path) -> None:
    shop = Shop()
    trace = await desk.ask('a = order("pen")\nfinal_answer = a', tools=[shop.tool], stream=True)
    assert (trace.answer.text, shop.orders) == ("N1", [("pen", 1)])

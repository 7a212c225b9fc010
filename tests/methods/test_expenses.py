"""What a model server was asked and what it counted, compared with the trace: for every method, failures included."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from pyrag import PyRAG
from pyrag.llm.protocol import Message
from pyrag.trace.model import Trace
from tests.methods.conftest import ALL, QUESTION, SCRIPTS, World
from tests.server.conftest import ModelServer, serving

GARBAGE = "…"


@dataclass
class CountingServer(ModelServer):
    """Replies from a script; `paid` and `tokens` are what it answered, `arrived` the requests that it got."""

    script: list[str] = field(default_factory=list)
    act: Callable[[int], str] = lambda number: ""  # "refuse", "garbage" or "hang" for a request, counted from 1
    arrived: int = 0
    paid: int = 0
    tokens: int = 0
    ended: bool = False

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.arrived += 1
        action = self.act(self.arrived)
        if action == "refuse":
            await asyncio.sleep(0.1)  # calls sent beside this one have arrived before it ends the question
            return web.json_response({"error": {"message": "odd"}}, status=400)
        if action == "hang":
            while not self.ended:  # noqa: ASYNC110 (set in another thread)
                await asyncio.sleep(0.02)
        text = GARBAGE if action == "garbage" or not self.script else self.script.pop(0)
        self.paid += 1
        self.tokens += 110 + self.paid
        usage = {"prompt_tokens": 100, "completion_tokens": 10 + self.paid}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({"object": "chat.completion", "choices": [choice], "usage": usage})


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    with serving(CountingServer()) as server:
        assert isinstance(server, CountingServer)
        yield server
        server.ended = True
        time.sleep(0.1)  # for what still hangs


async def ask(server: CountingServer, world: World, method: str, **settings: Any) -> Trace:
    server.script = list(SCRIPTS[method])
    async with PyRAG(f"openai:tiny@{server.url}", retriever=world, method=method, topk=2, **settings) as rag:
        return await rag.aask(QUESTION)


def agrees(server: CountingServer, trace: Trace, *, cut_short: int = 0, in_flight: int = 0) -> None:
    """`in_flight`: calls that may count, since the question ended before their replies arrived."""
    spent = trace.usage
    assert server.paid + cut_short <= spent.model_calls <= server.paid + cut_short + in_flight
    assert spent.prompt_tokens + spent.completion_tokens == server.tokens


@pytest.mark.parametrize("method", ALL)
async def test_calls_and_tokens_are_those_of_the_server(counting: CountingServer, world: World, method: str) -> None:
    trace = await ask(counting, world, method)
    assert trace.error is None
    agrees(counting, trace)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("action", ["garbage", "refuse"])
async def test_failures_change_nothing_of_it(counting: CountingServer, world: World, method: str, action: str) -> None:
    for failing in ({1}, {2, 3}, set(range(2, 30))):
        counting.arrived = counting.paid = counting.tokens = 0
        counting.act = lambda number, failing=failing: action if number in failing else ""  # type: ignore[misc]
        trace = await ask(counting, world, method)
        refused = counting.arrived - counting.paid if action == "refuse" else 0
        agrees(counting, trace, in_flight=max(0, refused - 1))  # the first refusal ends the question


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("calls", [1, 2, 3, 4])
async def test_the_limit_holds_inside_of_retries(
    counting: CountingServer, world: World, method: str, calls: int
) -> None:
    counting.act = lambda _: "garbage"
    trace = await ask(counting, world, method, max_calls=calls, stream=False)
    assert counting.paid <= calls
    agrees(counting, trace)


@pytest.mark.parametrize("method", ["pyrag", "opera:full", "hera", "self-ask", "search-agent:search-r1"])
async def test_calls_before_a_deadline_are_counted(counting: CountingServer, world: World, method: str) -> None:
    counting.act = lambda number: "hang" if number == 3 else ""
    trace = await ask(counting, world, method, deadline=2.0)
    assert trace.error is not None
    assert trace.error.kind == "deadline"
    agrees(counting, trace, cut_short=counting.arrived - counting.paid)


async def test_a_deadline_inside_of_retries_counts_all(counting: CountingServer, world: World) -> None:
    counting.act = lambda number: {1: "", 5: "hang"}.get(number, "garbage")
    trace = await ask(counting, world, "pyrag", deadline=2.0)
    assert trace.error is not None
    assert (trace.error.kind, counting.arrived, trace.usage.model_calls) == ("deadline", 5, 5)
    agrees(counting, trace, cut_short=1)


async def test_a_joint_plan_and_a_follow_up_are_counted(counting: CountingServer, world: World) -> None:
    counting.act = lambda number: "garbage" if number == 1 else ""
    counting.script = [f"<question>{QUESTION}</question>", *SCRIPTS["pyrag"][1:]]
    async with PyRAG(f"openai:tiny@{counting.url}", retriever=world, joint=True, topk=2) as rag:
        trace = await rag.aask("When was she born?", earlier=[Message("user", "Who directed Alpha?")])
    assert (trace.question, trace.error) == (QUESTION, None)
    agrees(counting, trace)


async def test_cached_replies_cost_nothing_twice(counting: CountingServer, world: World, tmp_path: Any) -> None:
    first = await ask(counting, world, "pyrag", cache=str(tmp_path / "c.sqlite"))
    agrees(counting, first)
    again = await ask(counting, world, "pyrag", cache=str(tmp_path / "c.sqlite"), max_calls=1)
    assert (again.answer.text, again.usage.model_calls) == (first.answer.text, 0)
    assert again.usage.cached_calls == first.usage.model_calls
    agrees(counting, first)


async def test_a_refused_early_call_is_counted(counting: CountingServer, world: World) -> None:
    """Streaming begins calls ahead of the program; the budget may refuse the program's own."""
    for calls in (2, 3, 4):
        counting.arrived = counting.paid = counting.tokens = 0
        agrees(counting, await ask(counting, world, "pyrag", max_calls=calls, stream=True))

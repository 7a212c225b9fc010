"""Calls in flight of models that are no endpoint: objects of the caller, files, and the caller's Answer agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Reading
from pyrag.llm.limiter import BoundedChat
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage

PASSAGES = [Passage(f"p{number}", f"T{number}", f"Mill {number} was founded by Ann Lee.") for number in range(40)]
EACH = "final_answer = each(documents(), 'Who founded it?')"
LOOP = "final_answer = [answer(f'Who founded {mill}?', retrieve(mill)) for mill in mills]"


class Crowd:
    """Number of calls under way, and the most there were at the same time."""

    name = "crowd"

    def __init__(self) -> None:
        self.now = self.peak = 0

    async def call(self) -> None:
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await asyncio.sleep(0.005)
        finally:
            self.now -= 1

    async def aclose(self) -> None:
        pass


class Complete(Crowd):
    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        await self.call()
        return Reply("<answer>Ann Lee</answer>")


class Stream(Complete):
    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        on_text("<answer>Ann Lee</answer>")
        return await self.complete(messages, sampling)


class Answerer(Crowd):
    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        await self.call()
        return Reading("Ann Lee", known=True, citations=(0,))


@pytest.mark.parametrize("part", [Complete, Stream, Answerer])
@pytest.mark.parametrize("source", [EACH, LOOP])
async def test_bound_holds_over_all_programs(part: type[Crowd], source: str) -> None:
    crowd: Any = part()
    own: dict[str, Any] = {"answerer": crowd} if part is Answerer else {"llm": crowd}
    async with PyRAG(**own, retriever=InMemoryRetriever(PASSAGES), max_in_flight=3) as rag:
        inputs = {"mills": [f"Mill {number}" for number in range(20)]}
        traces = await asyncio.gather(*(rag.arun(source, inputs) for _ in range(3)))
    assert [trace.error for trace in traces] == [None] * 3
    assert crowd.peak == 3


class Failing(Complete):
    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        await self.call()
        raise ValueError("no reply")


async def test_failed_and_cancelled_calls_give_their_places_back() -> None:
    failing, working = Failing(), Complete()
    bounded = BoundedChat(failing, 2)
    assert all(map(_is_error, await asyncio.gather(*(bounded.complete(()) for _ in range(6)), return_exceptions=True)))
    bounded.model = working
    waiting = [asyncio.ensure_future(bounded.complete(())) for _ in range(6)]
    await asyncio.sleep(0)
    for task in waiting[:4]:
        task.cancel()
    replies = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(reply, Reply) for reply in replies] == [False] * 4 + [True] * 2
    assert (await bounded.complete(())).text == "<answer>Ann Lee</answer>"
    assert (failing.peak, working.peak) == (2, 2)


def _is_error(reply: object) -> bool:
    return isinstance(reply, ValueError)


class Asking(Crowd):
    """Answer agent and model that run a program of the same object inside a call."""

    rag: PyRAG

    async def ask(self, text: str) -> str:
        if "inner" in text:
            await self.call()
            return "Ann Lee"
        return str((await self.rag.arun("final_answer = answer('inner?', retrieve('Mill'))", {})).value)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        return Reading(await self.ask(query), known=True, citations=(0,))

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        return Reply(f"<answer>{await self.ask(messages[-1].content)}</answer>")


@pytest.mark.parametrize("part", ["answerer", "llm"])
async def test_calls_inside_a_call_do_not_wait_for_it(part: str) -> None:
    asking: Any = Asking()
    async with PyRAG(**{part: asking}, retriever=InMemoryRetriever(PASSAGES), max_in_flight=2, deadline=60) as rag:
        asking.rag = rag
        source = "final_answer = [answer(f'outer {n}?', retrieve('Mill')) for n in range(6)]"
        trace = await rag.arun(source, {})
    assert (trace.error, trace.value) == (None, ["Ann Lee"] * 6)
    assert asking.peak in (1, 2)  # inner programs need not overlap on a busy machine


async def test_what_a_shown_text_starts_waits_for_a_place() -> None:
    crowd = Stream()
    bounded: Any = BoundedChat(crowd, 1)
    started: list[asyncio.Future[Reply]] = []
    await bounded.stream((), Sampling(), lambda _: started.append(asyncio.ensure_future(bounded.complete(()))))
    await asyncio.gather(*started)
    assert (len(started), crowd.peak) == (1, 1)

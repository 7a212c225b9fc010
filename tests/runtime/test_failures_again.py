"""Failures that a method coped with, or that ended a question, come again in a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Agents, Reading, Rewritten
from pyrag.episode.ledger import Recording
from pyrag.errors import (
    BadOutputError,
    ContextLengthError,
    PermanentServiceError,
    RetryableServiceError,
)
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.runtime.answering import answer_question, exchanges_of
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.tools import tool
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Passage, Trace, Usage
from tests.runtime.conftest import World

PROGRAM = """d = retrieve("Where?")
place = answer("Where?", d)
final_answer = answer(f"Given: {place}. Answer the question: What?")
"""
FAILURES = [
    BadOutputError("no form", Usage(model_calls=3, prompt_tokens=30)),
    RetryableServiceError("late", service="m", timed_out=True, retry_after=1.5),
    PermanentServiceError("refused", service="m", status=400, detail="words"),
    ContextLengthError("too long", service="m"),
    TimeoutError("own"),
]


async def replayed(world: World, trace: Trace, **settings: Any) -> Trace:
    """The question answered from what a saved trace recorded."""
    saved = from_json(to_json(trace))
    return await world.ask(recording=Recording(exchanges_of(saved)), **settings)


def same(one: Trace, other: Trace) -> None:
    assert (one.answer, one.error, one.warnings) == (other.answer, other.error, other.warnings)
    assert [step.query for step in one.steps] == [step.query for step in other.steps]
    assert [step.error for step in one.steps] == [step.error for step in other.steps]
    assert (one.usage.model_calls, one.usage.prompt_tokens) == (other.usage.model_calls, other.usage.prompt_tokens)
    assert [one.reply for one in one.exchanges] == [one.reply for one in other.exchanges]


@pytest.mark.parametrize("failure", FAILURES, ids=[type(one).__name__ for one in FAILURES])
async def test_a_failing_agent_fails_again(world: World, monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    world.programs = [PROGRAM]

    async def fail(query: str, passages: Sequence[Passage] | None) -> Reading:
        raise failure

    monkeypatch.setattr(world, "answer", fail)
    trace = await world.ask(keep=True, stream=False)
    assert trace.error is not None
    assert trace.error.kind != "deadline"
    same(await replayed(world, trace), trace)


async def test_a_failure_that_was_coped_with_comes_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.programs, world.facts = [PROGRAM], {"Where?": ("Rome", 30)}
    calls = []

    async def rewrite(query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        calls.append(query)
        raise BadOutputError("no query", Usage(model_calls=2, prompt_tokens=7))

    class Rewriter:
        pass

    rewriter = Rewriter()
    rewriter.rewrite = rewrite  # type: ignore[attr-defined]
    engines = Engines(Agents("world", world, world, world, rewriter=rewriter), world, world.sandbox)  # type: ignore[arg-type]
    settings = Settings(recovery="rewrite", stream=False)
    trace = await answer_question("What?", engines, settings, keep=True)
    assert calls
    assert any("no rewritten query" in warning for warning in trace.warnings)
    asked = len(calls)
    again = await answer_question("What?", engines, settings, recording=Recording(exchanges_of(trace)))
    assert len(calls) == asked
    same(again, trace)


async def test_a_failing_retriever_fails_again(world: World) -> None:
    world.programs, world.fail = [PROGRAM], {"Where?": RetryableServiceError("busy", service="r")}
    trace = await world.ask(keep=True, stream=False)
    assert trace.error is not None
    world.fail = {}
    same(await replayed(world, trace), trace)


async def test_a_deadline_passes_again_without_the_wait(world: World) -> None:
    both = 'a = answer("Who?", retrieve("Who?"))\nb = retrieve("Where?")\nfinal_answer = answer("x", b)\n'
    world.programs, world.facts, world.hang = [both], {"Who?": ("Ada", 1)}, {"Where?"}
    trace = await world.ask(keep=True, deadline=2.0, stream=False)
    assert (trace.error and trace.error.kind, trace.answer.text) == ("deadline", "Ada")
    again = await replayed(world, trace, deadline=None)
    assert (again.error and again.error.kind, again.answer.text) == ("deadline", "Ada")
    assert [step.query for step in again.steps] == [step.query for step in trace.steps]


async def test_what_a_sibling_failure_cut_short_waits_for_it(world: World) -> None:
    both = 'a = retrieve("Who?")\nb = retrieve("Where?")\nfinal_answer = answer("x", a + b)\n'
    world.programs, world.hang = [both], {"Who?"}
    world.fail = {"Where?": PermanentServiceError("gone", service="r")}
    trace = await world.ask(keep=True, stream=False)
    assert trace.error is not None
    world.fail = {}
    again = await replayed(world, trace)
    assert again.error == trace.error


async def test_notes_of_a_retriever_come_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def retrieve(query: str, topk: int) -> list[Any]:
        return [Passage("a", "t", f"evidence for {query}"), {"no": "text"}]

    monkeypatch.setattr(world, "retrieve", retrieve)
    world.programs, world.facts = [PROGRAM], {"Where?": ("Rome", 0)}
    trace = await world.ask(keep=True, stream=False)
    assert any("left out" in warning for warning in trace.warnings)
    same(await replayed(world, trace), trace)


async def test_a_tool_that_fails_is_replayed_as_a_failure() -> None:

    asked: list[int] = []

    @tool
    def price(number: int) -> int:
        """Return a price."""
        asked.append(number)
        raise ValueError("no price")

    program = "```python\ntry:\n    x = price(1)\nexcept ValueError:\n    x = 7\nfinal_answer = str(x)\n```"

    model = ScriptedChat({"decompose": '["What?"]', "plan": program})
    async with PyRAG(model, tools=[price]) as rag:
        trace = await rag.aask("What?", keep=True)
        assert (trace.answer.text, asked) == ("7", [1])

        again = await answer_question(
            "What?", rag.engines, rag.settings, recording=Recording(exchanges_of(from_json(to_json(trace))))
        )
    assert (again.answer.text, asked) == ("7", [1])

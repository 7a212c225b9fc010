"""One owner of engines, one check and one bound per request: for PyRAG, the HTTP service and the rewards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import pyrag.runtime.engines
import pyrag.runtime.question_request
from pyrag import PyRAG
from pyrag.errors import UsageError
from pyrag.methods.own_program import MAX_CALLS, OwnProgram
from pyrag.runtime.engine_owner import EngineOwner
from pyrag.runtime.question_request import QuestionError, request_of
from pyrag.server.config import Access, ServerConfig
from pyrag.server.service import QuestionService
from pyrag.settings import Settings
from pyrag.trace.model import Trace
from pyrag_rl.config import load_config
from pyrag_rl.rewards.environment import RewardEnvironment

QUESTION = "Who directed The Seventh Seal?"


async def library() -> Trace:
    async with PyRAG() as rag:
        return await rag.aask(QUESTION)


async def service() -> Trace:
    served = QuestionService(Settings(), ServerConfig(indexes={"a": (), "b": ()}))
    try:
        accepted = served.accept(QUESTION, served.index("b", Access()), {"max_calls": 7})
        return (await accepted.task).trace
    finally:
        await served.aclose()


async def rewards() -> Trace:
    environment = RewardEnvironment(load_config("plan", runtime={"llm": "embedded", "retriever": None}))
    try:
        return await environment.ask(QUESTION, environment.engines.agents)
    finally:
        await environment.aclose()


@pytest.mark.parametrize("use", [library, service, rewards])
async def test_requests_open_check_and_bound_once(
    use: Callable[[], Awaitable[Trace]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counting(module: Any, name: str) -> None:
        real = getattr(module, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)

    counting(pyrag.runtime.engines, "open_engines")
    for name in ("checked_text", "_budget_of", "calls_for", "ladder_of"):
        counting(pyrag.runtime.question_request, name)
    trace = await use()
    assert (trace.error, trace.answer.text) == (None, "Ingmar Bergman")
    assert set(calls.values()) == {1}
    assert len(calls) == 5


async def test_owner_closes_the_engines_it_opened() -> None:
    owner = EngineOwner(Settings())
    await owner.answer(request_of(QUESTION, owner.settings))
    sandbox = owner.engines.sandbox
    owner.run(lambda report: owner.answer(request_of(QUESTION, owner.settings)))
    owner.close()
    await owner.aclose()
    assert owner.engines.sandbox is sandbox
    assert (await owner.answer(request_of(QUESTION, owner.settings))).answer.known
    await owner.aclose()


@pytest.mark.parametrize(
    ("question", "code"),
    [("", "empty_question"), (" ?! ", "empty_question"), ("\udc80 x", "not_text"), ("x " * 9_000, "question_too_long")],
)
def test_questions_without_an_answer_are_refused(question: str, code: str) -> None:
    with pytest.raises(QuestionError) as refused:
        request_of(question, Settings())
    assert refused.value.code == code
    assert isinstance(refused.value, UsageError)


def test_limits_of_a_request_are_lowered_or_replaced() -> None:
    settings = Settings(max_calls=30, deadline=60.0, topk=4, boost_topk=10)
    limits = {"max_calls": 50, "deadline": 90.0, "topk": 20, "max_tokens": None}
    lowered = request_of(QUESTION, settings, limits=limits, lowers=True)
    assert (lowered.budget.calls, lowered.budget.seconds, lowered.settings.topk) == (30, 60.0, 10)
    program = OwnProgram("final_answer = 1")
    assert request_of(program, settings, limits=limits).budget.calls == 50
    assert request_of(program, Settings()).budget.calls == MAX_CALLS
    assert request_of(program, Settings(), limits={"max_calls": 500}, lowers=True).budget.calls == MAX_CALLS


@pytest.mark.parametrize(
    ("settings", "limits", "gated"),
    [
        (Settings(), {}, False),
        (Settings(max_calls=9), {}, True),
        (Settings(max_cost=1.0, price_in=1.0), {"max_tokens": 5}, True),
        (Settings(max_calls=9), {"max_calls": 20}, False),  # a caller's own limit is spent as far as it goes
    ],
)
def test_settings_limits_gate_programs(settings: Settings, limits: dict[str, Any], gated: bool) -> None:
    assert request_of(OwnProgram("final_answer = 1"), settings, limits=limits).gated is gated
    assert request_of(QUESTION, settings, limits=limits).gated is (settings != Settings())
    assert not request_of(QUESTION, Settings(max_calls=9, method="vanilla")).gated


def test_waiting_costs_time_of_the_deadline() -> None:
    waited = request_of(QUESTION, Settings(deadline=10.0)).after(4.0)
    assert (waited.settings.deadline, waited.budget.seconds) == (6.0, 6.0)
    assert request_of(QUESTION, Settings(deadline=None)).after(4.0).budget.seconds is None

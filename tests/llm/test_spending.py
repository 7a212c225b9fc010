"""Model calls as they count for a request, and what a foreign model's errors become."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pyrag.errors import (
    BudgetExceededError,
    MalformedReplyError,
    PermanentServiceError,
    RetryableServiceError,
    ServiceError,
)
from pyrag.llm.cache import CachedChat, ReplyStore
from pyrag.llm.clients.scripted import DEFAULT_SAMPLING
from pyrag.llm.limiter import ModelGate, endpoint_gate
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.llm.spending import CountedChat, Spending, counted, spending, uncounted
from pyrag.llm.wrappers import ForeignChat, UnconstrainedChat
from pyrag.trace.model import Usage

ASKED = (Message("user", "Who?"),)


class Model:
    name = "own"

    def __init__(self, outcome: object = "hello", gate: ModelGate | None = None) -> None:
        self.outcome, self.gate = outcome, gate

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        ticket = await self.gate.enter() if self.gate else 0
        try:
            if isinstance(self.outcome, asyncio.Event):
                await self.outcome.wait()
            if isinstance(self.outcome, BaseException):
                raise self.outcome
            return Reply("hello", 7, 2)
        finally:
            if self.gate:
                self.gate.leave(ticket)

    async def aclose(self) -> None:
        return


def unlimited(_: Spending) -> None:
    return


async def spent_by(model: Model) -> tuple[Usage, BaseException | None]:
    own = Spending(unlimited)
    spending.set(own)
    try:
        await asyncio.wait_for(counted(model).complete(ASKED), 0.05)
    except Exception as error:
        return own.usage, error
    return own.usage, None


@pytest.mark.parametrize(
    ("outcome", "calls"),
    [
        ("hello", 1),
        (PermanentServiceError("refused", status=400), 0),
        (RetryableServiceError("busy"), 0),
        (RetryableServiceError("late", timed_out=True), 1),
        (MalformedReplyError("no JSON"), 1),
        (BudgetExceededError("spent"), 0),
        (KeyError("own"), 1),
    ],
)
async def test_a_call_counts_if_it_was_served(outcome: object, calls: int) -> None:
    usage, _ = await spent_by(Model(outcome))
    assert usage.model_calls == calls
    assert usage.prompt_tokens == (7 if outcome == "hello" else 0)


async def test_a_call_cut_short_counts_unless_it_waits() -> None:
    assert (await spent_by(Model(asyncio.Event())))[0].model_calls == 1
    gate = endpoint_gate("http://x", "m", 1)
    assert (await spent_by(Model(asyncio.Event(), gate)))[0].model_calls == 1
    ticket = await gate.enter()
    assert (await spent_by(Model("hello", gate)))[0].model_calls == 0
    gate.leave(ticket)


async def test_an_adopted_request_goes_on_counting() -> None:
    early, owner, ready = Spending(unlimited), Spending(unlimited), asyncio.Event()
    spending.set(early)
    task = asyncio.create_task(counted(Model(ready)).complete(ASKED))
    await asyncio.sleep(0)
    owner.adopt(early)
    assert (early.calls, owner.calls) == (0, 1)
    ready.set()
    await task
    assert (owner.usage.model_calls, owner.usage.prompt_tokens, owner.calls) == (1, 7, 1)


async def test_stored_replies_are_no_calls(tmp_path: object) -> None:
    chat = CachedChat(counted(Model()), ReplyStore(f"{tmp_path}/c.sqlite"))
    for expected in (Usage(1, 0, 7, 2), Usage(cached_calls=1, cached_tokens=9)):
        own = Spending(unlimited)
        spending.set(own)
        await chat.complete(ASKED)
        assert own.usage == expected


async def test_a_cache_inside_of_a_counted_model_counts_once(tmp_path: object) -> None:
    chat = counted(CachedChat(Model(), ReplyStore(f"{tmp_path}/c.sqlite")))
    for expected in (Usage(1, 0, 7, 2), Usage(cached_calls=1, cached_tokens=9)):
        own = Spending(unlimited)
        spending.set(own)
        await chat.complete(ASKED)
        assert own.usage == expected


def test_a_model_is_counted_once() -> None:
    model = counted(Model())
    assert isinstance(model, CountedChat)
    assert counted(UnconstrainedChat(model)).model is model  # type: ignore[attr-defined]
    assert isinstance(uncounted(model), Model)
    assert not hasattr(model, "stream"), "nothing is claimed that the model has not"


async def test_errors_of_foreign_models_name_them() -> None:
    with pytest.raises(RetryableServiceError, match=r"the model own failed \(TimeoutError\): allow") as late:
        await ForeignChat(Model(TimeoutError())).complete(ASKED)
    assert late.value.timed_out
    with pytest.raises(ServiceError, match=r"the model own failed \(KeyError: 'x'\): look into its code"):
        await ForeignChat(Model(KeyError("x"))).complete(ASKED)
    with pytest.raises(ServiceError, match="cancelled itself"):
        await ForeignChat(Model(asyncio.CancelledError())).complete(ASKED)
    with pytest.raises(BudgetExceededError):
        await ForeignChat(Model(BudgetExceededError("spent"))).complete(ASKED)

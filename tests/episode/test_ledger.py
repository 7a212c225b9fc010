"""The ledger: budgets hold for requests side by side, usage adds up, recordings replay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from pyrag.agents.protocol import Reading
from pyrag.episode.ledger import Ledger, QuestionBudget, Recording
from pyrag.episode.requests import request_key
from pyrag.errors import BadOutputError, BudgetExceededError, DataError, ReplayError
from pyrag.trace.model import Passage, Usage


async def reading(calls: int = 1, tokens: int = 10) -> Reading:
    await asyncio.sleep(0)
    return Reading("yes", known=True, usage=Usage(model_calls=calls, prompt_tokens=tokens))


async def ask(ledger: Ledger, query: str = "q") -> Reading:
    return await ledger.call("answer", {"query": query}, reading, Reading)


async def test_usage_adds_up() -> None:
    ledger = Ledger(QuestionBudget())
    await ledger.call("answer", {"query": "a"}, lambda: reading(calls=3), Reading)
    await ask(ledger)
    assert (ledger.usage.model_calls, ledger.usage.prompt_tokens) == (4, 20)


async def test_requests_side_by_side_cannot_overspend() -> None:
    ledger = Ledger(QuestionBudget(calls=3))
    done = await asyncio.gather(*(ask(ledger, str(n)) for n in range(5)), return_exceptions=True)
    assert sum(isinstance(one, Reading) for one in done) == 3
    assert sum(isinstance(one, BudgetExceededError) for one in done) == 2
    assert ledger.usage.model_calls == 3


async def test_a_failed_request_gives_its_reservation_back() -> None:
    async def fail() -> Reading:
        raise RuntimeError

    ledger = Ledger(QuestionBudget(calls=1))
    with pytest.raises(RuntimeError):
        await ledger.call("answer", {"query": "a"}, fail, Reading)
    assert (await ask(ledger)).known


async def test_replies_out_of_form_are_paid_for() -> None:
    async def fail() -> Reading:
        raise BadOutputError("no program", Usage(model_calls=3, prompt_tokens=30))

    ledger = Ledger(QuestionBudget(calls=3))
    with pytest.raises(BadOutputError):
        await ledger.call("plan", {"question": "a"}, fail, Reading)
    assert (ledger.usage.model_calls, ledger.usage.prompt_tokens) == (3, 30)
    with pytest.raises(BudgetExceededError):
        await ask(ledger)


async def test_tokens_stop_the_next_request() -> None:
    ledger = Ledger(QuestionBudget(tokens=15))
    await ask(ledger)
    await ask(ledger)
    with pytest.raises(BudgetExceededError, match="15 tokens"):
        await ask(ledger)


async def test_retrievals_have_a_budget_of_their_own() -> None:
    async def found() -> list[Passage]:
        return [Passage("1", "t", "x")]

    ledger = Ledger(QuestionBudget(calls=1, retrievals=1))
    await ledger.call("retrieve", {"query": "a"}, found, list[Passage])
    with pytest.raises(BudgetExceededError, match="1 retrievals"):
        await ledger.call("retrieve", {"query": "b"}, found, list[Passage])
    assert (await ask(ledger)).known


async def test_a_recording_answers_equal_requests_in_order(tmp_path: Path) -> None:
    kept = Ledger(QuestionBudget(), keep=True)
    for text in ("first", "second"):
        reply = Reading(text, known=True, citations=(1, 0), confidence=0.5)

        async def run(reply: Reading = reply) -> Reading:
            return reply

        await kept.call("answer", {"query": "q", "passages": None}, run, Reading)
    file = tmp_path / "recording.jsonl"
    file.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in kept.exchanges))
    replay = Ledger(QuestionBudget(), recording=Recording.load(file))

    async def never() -> Reading:
        raise AssertionError("a replay must not reach the engine")

    texts = [(await replay.call("answer", {"passages": None, "query": "q"}, never, Reading)) for _ in range(3)]
    assert [one.text for one in texts] == ["first", "second", "second"]
    assert texts[0].citations == (1, 0)
    with pytest.raises(ReplayError, match="no answer for 'other'"):
        await replay.call("answer", {"query": "other"}, never, Reading)


def test_a_broken_recording_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_text('{"role": "answer", "key": "k", "request": {}, "reply": {}}\n{"role": 1}\n')
    with pytest.raises(DataError, match="line 2"):
        Recording.load(file)
    file.write_bytes(b'{"role": "\xff"}\n')
    with pytest.raises(DataError, match="line 1 is not a recorded exchange"):
        Recording.load(file)
    with pytest.raises(DataError, match="cannot read"):
        Recording.load(tmp_path / "none")


def test_keys_ignore_the_order_of_fields() -> None:
    assert request_key("a", {"x": 1, "y": 2}) == request_key("a", {"y": 2, "x": 1})
    assert request_key("a", {"x": 1}) != request_key("b", {"x": 1})

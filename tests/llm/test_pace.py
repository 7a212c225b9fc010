"""What is measured of a slow model, and the messages that say it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from pyrag.errors import RetryableServiceError
from pyrag.llm import pace
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.pace import PacedChat
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.settings import Settings
from tests.llm.conftest import completion
from tests.llm.test_stream import USAGE, delta

ASKED = (Message("user", "Say it."),)
PIECE = f"data: {delta(content='slow')}\n\n".encode()
END = f"data: {delta('stop')}\n\ndata: {USAGE}\n\ndata: [DONE]\n\n".encode()


def streaming(pieces: int, pause: float, end: bytes) -> Any:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(pieces):
            await response.write(PIECE)
            await asyncio.sleep(pause)
        await response.write(end)
        if not end:
            await asyncio.sleep(60)
        return response

    return handler


def paced(server: Any, timeout: float) -> PacedChat:
    return PacedChat(OpenAIChat("tiny", server.url, timeout=timeout, retries=0))


class Timed:
    """A model whose replies have so many tokens and take so many seconds."""

    name = "m"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *replies: tuple[int, float] | Exception) -> None:
        self.now, self.replies = 0.0, list(replies)
        monkeypatch.setattr(pace.time, "perf_counter", lambda: self.now)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            self.now += 70
            raise reply
        self.now += reply[1]
        return Reply("x", completion_tokens=reply[0])


async def described(model: Timed, max_tokens: int = 1024) -> str:
    chat = PacedChat(model)  # type: ignore[arg-type]
    for _ in list(model.replies):
        with suppress(RetryableServiceError):
            await chat.complete(ASKED, Sampling(max_tokens=max_tokens))
    return chat.describe_pace()


async def test_a_fast_model_is_named_without_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await described(Timed(monkeypatch, (100, 2.0))) == "m writes 50 tokens a second"
    assert await described(Timed(monkeypatch, (5000, 1.0))) == ""


async def test_a_slow_model_is_described_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await described(Timed(monkeypatch, (10, 4.0), (10, 4.0))) == (
        "m writes 2.5 tokens a second, so that a reply of 1,024 tokens takes 410 s: "
        "ask for shorter ones with --request max_tokens=N"
    )


async def test_a_model_without_replies_is_described_by_its_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = RetryableServiceError("late", service="m", timed_out=True)
    assert await described(Timed(monkeypatch, (0, 5.0))) == ""
    assert await described(Timed(monkeypatch, refused)) == "a call to m had no reply after 70 s"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 60),
        ({"deadline": 20}, 60),
        ({"deadline": 600}, 300),
        ({"deadline": None}, 600),
        ({"deadline": 600, "call_timeout": 5}, 5),
    ],
)
def test_the_time_of_a_call_grows_with_the_deadline(given: dict[str, Any], seconds: float) -> None:
    assert Settings(**given).call_seconds == seconds


async def test_a_stream_may_take_longer_than_a_call(server: Any) -> None:
    server.script = [streaming(8, 0.25, END)]
    chat = paced(server, timeout=1.5)
    pieces: list[str] = []
    reply = await chat.stream(ASKED, Sampling(), pieces.append)
    await chat.aclose()
    assert reply.text == "slow" * 8
    assert chat.tokens == 3


async def test_a_stream_that_pauses_says_its_speed(server: Any) -> None:
    server.script = [streaming(8, 0.05, END), streaming(9, 0.01, b"")]
    chat = paced(server, timeout=0.5)
    await chat.stream(ASKED, Sampling(), lambda text: None)
    with pytest.raises(RetryableServiceError) as caught:
        await chat.stream(ASKED, Sampling(), lambda text: None)
    await chat.aclose()
    message = str(caught.value)
    assert "paused for 0.5 s in the middle of a reply" in message
    assert "--call-timeout or a longer --deadline" in message
    assert "tokens a second" in message


async def test_a_late_reply_says_the_speed_of_those_before(server: Any) -> None:
    async def late(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async def soon(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        return web.json_response(completion("hello"))

    server.script = [soon]
    chat = paced(server, timeout=3.0)
    assert (await chat.complete(ASKED)).completion_tokens == 2
    server.script = [late]
    with pytest.raises(RetryableServiceError, match=r"did not reply within .* writes .* tokens a second") as caught:
        await chat.complete(ASKED)
    await chat.aclose()
    assert caught.value.timed_out

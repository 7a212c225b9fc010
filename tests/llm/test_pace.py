"""What is measured of a slow model, and the messages that say it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from aiohttp import web

from pyrag.errors import RetryableServiceError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.pace import Pace, PacedChat
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


def test_a_fast_model_is_named_without_advice() -> None:
    pace = Pace(max_tokens=1024)
    pace.add_reply(100, 2.0)
    assert pace.said("m") == "m writes 50 tokens a second"


def test_a_slow_model_is_told_what_helps() -> None:
    pace = Pace(max_tokens=1024)
    pace.add_reply(10, 4.0)
    pace.add_reply(10, 4.0)
    assert pace.said("m") == (
        "m writes 2.5 tokens a second, so that a reply of 1,024 tokens takes 410 s: "
        "ask for shorter ones with --request max_tokens=N"
    )


def test_characters_stand_in_for_tokens() -> None:
    pace = Pace(max_tokens=100)
    pace.add_pieces(120, 10.0)
    assert pace.said("m").startswith("m writes 12 characters a second, so that a reply of 100 tokens takes 33 s")


def test_the_time_for_the_prompt_is_told_apart() -> None:
    pace = Pace(max_tokens=100, first_piece=30.0)
    assert pace.said("m") == "m took 30 s for the prompt: lower --topk, or use a smaller model"
    pace.add_pieces(40, 10.0)
    assert pace.said("m").startswith("m writes 4 characters a second after 30 s for the prompt, so that")


def test_nothing_measured_is_nothing_said() -> None:
    assert Pace().said("m") == ""
    assert Pace(unanswered=70.0).said("m") == "a call to m had no reply after 70 s"


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
    assert chat.pace.tokens == 3


async def test_a_stream_that_pauses_says_its_speed(server: Any) -> None:
    server.script = [streaming(9, 0.01, b"")]
    chat = paced(server, timeout=0.5)
    with pytest.raises(RetryableServiceError) as caught:
        await chat.stream(ASKED, Sampling(), lambda text: None)
    await chat.aclose()
    said = str(caught.value)
    assert "paused for 0.5 s in the middle of a reply" in said
    assert "--call-timeout or a longer --deadline" in said
    assert "characters a second" in said
    assert chat.pace.characters == 32  # after the first piece


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


async def test_a_local_model_is_measured_while_it_writes() -> None:
    class Local:
        name = "transformers:tiny"
        counts_pieces = True

        async def stream(self, messages: Sequence[Message], sampling: Sampling, say: Callable[[str], None]) -> Reply:
            for word in ["some ", *["words "] * 9]:
                say(word)
            await asyncio.sleep(60)
            return Reply("")

    chat = PacedChat(Local())  # type: ignore[arg-type]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(chat.complete(ASKED), 0.1)
    assert chat.pace.characters == 54
    assert chat.pace.tokens_a_second is not None

"""A refusal of one prompt that is dense in tokens does not shorten the replies to all later ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.clients.request_rules import RequestRules
from pyrag.llm.protocol import Message, Sampling
from tests.llm.conftest import ChatServer, completion

WINDOW = 4096
DENSE = "1 2 3 4 " * 950  # a token per two characters, which counts as one per four
PLAIN = "word " * 1200
SHORT = "word " * 200
FULL = Sampling(max_tokens=1024)


def tokens_of(body: dict[str, Any]) -> int:
    text = "".join(message["content"] for message in body["messages"])
    return len(text) // 2 if text.startswith("1") else len(text) // 4


@pytest.fixture
async def chat(server: ChatServer) -> AsyncIterator[OpenAIChat]:
    async def handler(_: web.Request) -> web.Response:
        body = server.bodies[-1]
        prompt, reply = tokens_of(body), body["max_tokens"]
        if prompt + reply <= WINDOW:
            whole = completion("hello")
            return web.json_response({**whole, "usage": {"prompt_tokens": prompt, "completion_tokens": 2}})
        words = (
            f"This model's maximum context length is {WINDOW} tokens. However, you requested {prompt + reply} tokens "
            f"({prompt} in the messages, {reply} in the completion). Please reduce the length of the messages."
        )
        return web.json_response({"error": {"message": words, "type": "BadRequestError"}}, status=400)

    server.script = [handler] * 40
    model = OpenAIChat("tiny", server.url)
    yield model
    await model.aclose()


def limits(server: ChatServer) -> list[int]:
    return [body["max_tokens"] for body in server.bodies]


async def test_later_replies_keep_their_room(server: ChatServer, chat: OpenAIChat) -> None:
    await chat.complete((Message("user", DENSE),), FULL)
    assert limits(server)[0] == 1024
    assert limits(server)[-1] < 300
    for text in (SHORT, PLAIN, SHORT, PLAIN):
        await chat.complete((Message("user", text),), FULL)
        assert limits(server)[-1] == 1024
    await chat.complete((Message("user", DENSE),), FULL)
    assert limits(server)[-1] < 300


async def test_each_dense_prompt_is_refused_at_most_once(server: ChatServer, chat: OpenAIChat) -> None:
    for number in range(1, 4):
        await chat.complete((Message("user", DENSE),), FULL)
        assert len(server.bodies) <= 2 * number


def test_a_guess_without_figures_holds_for_long_prompts() -> None:
    from pyrag.llm.clients.refusals import Refusal

    def body(text: str) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 1024}

    words = "please reduce the length of the messages or completion."
    learnt = RequestRules().after(Refusal(400, (), words), body(PLAIN), body(PLAIN))
    assert learnt is not None
    assert learnt.apply(body(PLAIN))["max_tokens"] == 256
    assert learnt.apply(body(SHORT))["max_tokens"] == 1024

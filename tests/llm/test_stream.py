"""Replies of OpenAI-compatible servers while they are written: over real HTTP, cut anywhere, with their faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from aiohttp import web

from pyrag.errors import ContextLengthError, MalformedReplyError, PermanentServiceError, RetryableServiceError
from pyrag.llm.cache import CachedChat, ReplyStore
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message, Reply, Sampling

ASKED = (Message("user", "Say it."),)
Handler = Callable[[web.Request], Any]


def delta(finish: str | None = None, **said: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": said, "finish_reason": finish}]})


USAGE = json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
WHOLE = (delta(role="assistant"), delta(content="Grü"), delta(content="ße\n"), delta("stop"), USAGE, "[DONE]")


def sending(events: Sequence[str], *, cut: int = 0, end: str = "\n", drop: bool = False) -> Handler:
    """Sends events in pieces of `cut` bytes (0: all at once); `drop` closes the connection in the middle."""

    async def handler(request: web.Request) -> web.StreamResponse:
        data = "".join(f"data: {event}{end}{end}" for event in events).encode()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for start in range(0, len(data), cut or len(data)):
            await response.write(data[start : start + (cut or len(data))])
            await asyncio.sleep(0)
        if drop and request.transport:
            request.transport.abort()
        return response

    return handler


@pytest.fixture
async def chat(server) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat("tiny", server.url, timeout=60.0)
    yield model
    await model.aclose()


async def streamed(chat: OpenAIChat | CachedChat) -> tuple[Reply, list[str]]:
    pieces: list[str] = []
    return await chat.stream(ASKED, Sampling(), pieces.append), pieces


@pytest.mark.parametrize("cut", [0, 1, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_pieces_are_shown_and_add_up(server, chat, cut: int, end: str) -> None:
    server.script = [sending(WHOLE, cut=cut, end=end)]
    reply, pieces = await streamed(chat)
    assert reply == Reply("Grüße\n", 7, 3)
    assert pieces == ["Grü", "ße\n"]
    assert (server.bodies[0]["stream"], server.bodies[0]["stream_options"]) == (True, {"include_usage": True})


async def test_the_official_client_reads_the_same(server, chat) -> None:
    openai = pytest.importorskip("openai")
    server.script = [sending(WHOLE), sending(WHOLE)]
    await streamed(chat)
    official = openai.AsyncOpenAI(base_url=server.url, api_key="sk-1")
    parts = await official.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "Say it."}],
        temperature=0.0,
        max_tokens=1024,
        stream=True,
        stream_options={"include_usage": True},
    )
    said = "".join([part.choices[0].delta.content or "" async for part in parts if part.choices])
    await official.close()
    assert said == "Grüße\n"
    assert server.bodies[0] == server.bodies[1]


async def test_pieces_come_before_the_end(server, chat) -> None:
    seen = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"data: {WHOLE[1]}\n\n".encode())
        await asyncio.wait_for(seen.wait(), 120)
        await response.write(f"data: {WHOLE[3]}\n\n".encode())
        return response

    server.script = [handler]
    assert (await chat.stream(ASKED, Sampling(), lambda _: seen.set())).text == "Grü"


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_server_that_refuses_is_asked_once(server, chat, status: int) -> None:
    server.say((status, {"error": {"message": "streaming is not served"}}))
    for _ in range(2):
        reply, pieces = await streamed(chat)
        assert (reply.text, pieces) == ("hello", ["hello"])
    assert ["stream" in body for body in server.bodies] == [True, False, False]
    assert not chat.streaming


async def test_another_refusal_comes_again(server, chat) -> None:
    refusal = (400, {"error": {"message": "maximum context length is 10 tokens"}})
    server.say(refusal, refusal)
    with pytest.raises(ContextLengthError):
        await streamed(chat)
    assert chat.streaming


async def test_a_server_that_replies_in_one_piece(server, chat) -> None:
    assert await streamed(chat) == (Reply("hello", 7, 2), ["hello"])


@pytest.mark.parametrize("first", [sending(WHOLE[:2]), sending(WHOLE[:2], drop=True)])
async def test_a_stream_that_breaks_off_begins_again_unseen(server, chat, first: Handler) -> None:
    server.script = [first, sending(WHOLE)]
    reply, pieces = await streamed(chat)
    assert (reply.text, pieces) == ("Grüße\n", ["Grü"])


PASSING = RetryableServiceError


@pytest.mark.parametrize(("code", "error"), [(500, PASSING), (None, PASSING), (401, PermanentServiceError)])
async def test_a_failure_in_the_middle_is_named(server, chat, code: int | None, error: type[Exception]) -> None:
    failure = json.dumps({"error": {"message": "out of memory", "code": code}})
    server.script = [sending([WHOLE[1], failure])] * 3
    with pytest.raises(error, match="out of memory"):
        await streamed(chat)


async def test_what_is_no_completion_is_malformed(server, chat) -> None:
    server.script = [sending(['{"choices": 3}'])]
    with pytest.raises(MalformedReplyError, match="model server http"):
        await streamed(chat)


async def test_reasoning_is_not_shown_unless_there_is_nothing_else(server, chat) -> None:
    server.script = [sending([delta(reasoning="hm"), *WHOLE]), sending([delta(reasoning_content="hm"), delta("stop")])]
    assert (await streamed(chat))[1] == ["Grü", "ße\n"]
    reply, pieces = await streamed(chat)
    assert (reply.text, pieces) == ("<think>hm", ["<think>hm"])


async def test_cancelling_reaches_the_server(server, chat) -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            for _ in range(1000):
                await response.write(f"data: {WHOLE[1]}\n\n".encode())
                await asyncio.sleep(0.01)
        except ConnectionError:
            gone.set()
        return response

    server.script = [handler]
    asking = asyncio.create_task(chat.stream(ASKED, Sampling(), lambda _: begun.set()))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.wait_for(gone.wait(), 120)


async def test_a_stored_reply_is_streamed_in_one_piece(server, chat, tmp_path) -> None:
    server.script = [sending(WHOLE)]
    cached = CachedChat(chat, ReplyStore(tmp_path / "replies.sqlite"))
    assert (await streamed(cached))[1] == ["Grü", "ße\n"]
    reply, pieces = await streamed(cached)
    assert (reply.cached, pieces, len(server.bodies)) == (True, ["Grüße\n"], 1)
    await asyncio.to_thread(cached.store.close)


async def test_a_model_that_cannot_stream_is_cached_all_the_same(tmp_path) -> None:
    cached = CachedChat(ScriptedChat(["once"]), ReplyStore(tmp_path / "replies.sqlite"))
    assert [(await streamed(cached))[1] for _ in range(2)] == [["once"], ["once"]]
    await cached.aclose()


@pytest.mark.parametrize("before", ["", ": ping\n\n", "event: error\n"])
@pytest.mark.parametrize(("code", "error"), [(401, PermanentServiceError), (429, RetryableServiceError)])
async def test_an_error_event_is_one_sentence_without_streaming(server, chat, before, code, error) -> None:
    failure = json.dumps({"error": {"message": "no such key", "code": code}})

    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=f"{before}data: {failure}\n\ndata: [DONE]\n\n", content_type="text/event-stream")

    server.script = [handler] * 9
    with pytest.raises(error, match=f"HTTP {code} .*no such key"):
        await chat.complete(ASKED, Sampling())

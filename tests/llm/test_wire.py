"""Replies of OpenAI-compatible servers in every shape: texts are found, odd side fields ignored, failures named."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web

from pyrag.errors import MalformedReplyError, PermanentServiceError, RetryableServiceError, ServiceError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.clients.openai_wire import decode_models
from pyrag.llm.protocol import MAX_REPLY_CHARS, Message, Reply, Sampling
from tests.llm.conftest import completion

ASKED = (Message("user", "?"),)
Body = dict[str, Any]


def reply(message: Any = None, /, **choice: Any) -> Body:
    message = {"role": "assistant", "content": "hi"} if message is None else message
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}]}


@pytest.fixture
async def chat(server) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat("tiny", server.url, timeout=5.0)
    yield model
    await model.aclose()


THOUGHT = [{"type": "reasoning.text", "text": "hm"}]
TEXTS: list[tuple[Any, str]] = [
    (reply({"content": None}), ""),
    (reply({"content": [{"type": "text", "text": "a"}, "b", {"type": "text", "text": None}, 3]}), "ab"),
    (reply({"content": {"type": "text", "text": "a"}}), "a"),
    (reply({"content": [{"type": "output_text", "text": {"value": "a", "annotations": []}}]}), "a"),
    # mistral's magistral
    (reply({"content": [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": "a"}]}), "a"),
    (reply({"content": "a", "reasoning": {"content": "hm"}, "tool_calls": []}), "a"),
    (reply({"content": "", "reasoning_content": "hm"}), "<think>hm"),
    (reply({"content": " \n", "reasoning": "hm"}), "<think>hm"),
    (reply({"content": None, "reasoning_details": THOUGHT}), "<think>hm"),
    (reply({"content": None, "thinking": "hm"}), "<think>hm"),
    (reply({"content": None, "thinking_blocks": [{"type": "thinking", "thinking": "hm"}]}), "<think>hm"),
    (reply({"content": None, "refusal": "I can't."}), "I can't."),
    (reply({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}), '{"a": 1}'),
    (reply({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}), '{"a": 1}'),
    (reply({"content": "", "function_call": {"name": "f", "arguments": '{"a": 1}'}}), '{"a": 1}'),
    (reply({"content": "a", "tool_calls": [{"function": {"arguments": "{}"}}, None, 3]}), "a"),
    (reply({"role": "model", "content": "a", "parts": 3}), "a"),
    (reply("a"), "a"),
    ({"choices": [{"text": "a", "index": 0}]}, "a"),
    ({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}, "a"),
    ({"choices": [None, {"message": {"content": "a"}}]}, "a"),
    ([reply({"content": "a"})], "a"),
    ({"model": "m", "message": {"role": "assistant", "content": "a"}, "done": True}, "a"),
    ({"response": "a", "done": True}, "a"),
    ({"generated_text": "a"}, "a"),
    ({**reply({"content": "a"}), "error": None}, "a"),
    (
        {**reply({"content": "a"}), "id": 7, "created": "now", "model": None, "object": [], "system_fingerprint": {}},
        "a",
    ),
    (reply({"content": "a"}, index="0", logprobs="none", finish_reason=1), "a"),
    (reply({"content": "a"}, finish_reason=["stop"]), "a"),
    (reply({"content": "a"}, finish_reason=""), "a"),
    ({**reply({"content": "a"}), "base_resp": {"status_code": 0, "status_msg": "success"}}, "a"),
    (reply({"content": 3}), ""),
]


@pytest.mark.parametrize(("body", "text"), TEXTS)
async def test_the_text_is_found(server, chat, body: Any, text: str) -> None:
    server.say((200, body))
    assert (await chat.complete(ASKED)).text == text


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + json.dumps(completion("a")).encode(),
        b"\n \n" + json.dumps(completion("a")).encode() + b"\n",
        b'{"choices": [{"message": {"content": "a"}, "logprob": NaN, "p": -Infinity}]}',
        b'{"choices": [{"message": {"content": "a", "raw": "two\nlines\tand a tab"}}]}',
        b'{"choices": [{"message": {"content": "a"}}], "created": 1' + b"0" * 5000 + b"}",
        b'{"choices": [{"message": {"content": "a", "odd": "\xff"}}]}',
    ],
)
async def test_json_is_read_leniently(server, chat, body: bytes) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/octet-stream")

    server.script = [handler]
    assert (await chat.complete(ASKED)).text == "a"


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        *[(one, "length") for one in ("length", "MAX_TOKENS", "max_tokens", "model_length", "incomplete")],
        *[(one, "content_filter") for one in ("content_filter", "SAFETY", "RECITATION", "guardrail_intervened")],
        *[(one, "stop") for one in ("stop", "end_turn", "eos_token", "stop_sequence", None, "", 7)],
        ("tool_calls", "tool_calls"),
    ],
)
async def test_the_reason_to_finish_is_read(server, chat, reason: Any, read: str) -> None:
    server.say((200, reply({"content": "a"}, finish_reason=reason)))
    assert (await chat.complete(ASKED)).finish_reason == read


COUNTS: list[tuple[Any, int]] = [
    (7, 7),
    (10.0, 10),
    ("12", 12),
    ("12.0", 12),
    (0, 1),
    (-1_000_000, 1),
    (1.5, 1),
    ("many", 1),
    (True, 1),
    (10**12, 1),
    (float("nan"), 1),
    (float("inf"), 1),
    ([3], 1),
    (None, 1),
]  # 1 is what the text of one character is estimated at


@pytest.mark.parametrize(("count", "read"), COUNTS)
async def test_counts_are_sane(server, chat, count: Any, read: int) -> None:
    server.say(*[(200, {**reply({"content": "a"}), "usage": {"prompt_tokens": count, "completion_tokens": count}})] * 2)
    replies = [await chat.complete(ASKED) for _ in range(2)]
    assert [(one.text, one.prompt_tokens, one.completion_tokens) for one in replies] == [("a", read, read)] * 2
    assert sum("token" in one.note for one in replies) <= 1


@pytest.mark.parametrize("usage", [None, [], "none", 3, {}, {"prompt_tokens": -1, "completion_tokens": 1e300}])
async def test_a_server_that_does_not_count_says_so_once(server, chat, usage: Any) -> None:
    server.say(*[(200, {**reply({"content": "abcde"}), "usage": usage})] * 2)
    replies = [await chat.complete(ASKED) for _ in range(2)]
    assert [(one.prompt_tokens, one.completion_tokens) for one in replies] == [(1, 2)] * 2
    assert [("they are estimated" in one.note) for one in replies] == [True, False]


def failing(message: str, **more: Any) -> Body:
    return {"error": {"message": message, **more}}


PASSING: list[Any] = [
    failing("Provider returned error", code=502, metadata={"provider_name": "x"}),
    failing("no", type="server_error"),
    failing("no", code="rate_limit_exceeded"),
    failing("no", code="503"),
    failing("Overloaded", type="overloaded_error"),
    failing("no"),
    {"error": "upstream connect error or disconnect/reset before headers"},
    {**failing("no", code=502), "choices": []},
    {**failing("no", code=502), "choices": None},
    {"choices": [{"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "no"}}]},
    {"object": "error", "message": "NETWORK ERROR DUE TO HIGH TRAFFIC", "code": 50001},
    {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "choices": None},
    {"code": 500, "msg": "internal error", "success": False},
    {"detail": "the engine died"},
    {"choices": None, "message": "the backend is gone"},
    [failing("no", code=503)],
]
FINAL: list[Any] = [
    failing("no such model", code=404),
    failing("no", type="invalid_request_error"),
    failing("no", type="authentication_error"),
    failing("no credits", code=402),
    failing("no", code="insufficient_quota", type="insufficient_quota"),
    failing("no", status="INVALID_ARGUMENT"),
    {"object": "error", "message": "no", "code": 400},
]


@pytest.mark.parametrize("body", PASSING)
async def test_a_failure_under_status_200_is_tried_again(server, chat, body: Any) -> None:
    server.say((200, body))
    assert (await chat.complete(ASKED)).text == "hello"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("body", FINAL)
async def test_a_final_failure_under_status_200_is_said_at_once(server, chat, body: Any) -> None:
    server.say((200, body))
    with pytest.raises(PermanentServiceError, match="no"):
        await chat.complete(ASKED)
    assert len(server.bodies) == 1


async def test_a_failure_that_stays_is_quoted(server, chat) -> None:
    server.say(*[(200, failing("out of memory"))] * 3)
    with pytest.raises(RetryableServiceError, match="out of memory"):
        await chat.complete(ASKED)


async def test_a_refusal_under_status_200_is_learnt(server, chat) -> None:
    server.say((200, failing("Unsupported parameter: 'seed'", code=400, param="seed")))
    assert (await chat.complete(ASKED, Sampling(seed=1))).text == "hello"
    assert "seed" not in server.bodies[-1]


# Streams


def sending(events: Sequence[Any]) -> Any:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            await response.write(f"data: {data}\n\n".encode())
        return response

    return handler


def chunk(delta: Any, finish: Any = None, **more: Any) -> Body:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


END = chunk({}, "stop")
COUNTED = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


async def streamed(chat: OpenAIChat) -> tuple[Reply, str]:
    pieces: list[str] = []
    said = await chat.stream(ASKED, Sampling(), pieces.append)
    return said, "".join(pieces)


@pytest.mark.parametrize(
    "events",
    [
        [chunk({"content": "a"}), chunk({"content": "b"}), END, COUNTED, "[DONE]"],
        [chunk({"content": "a"}, ""), chunk({"content": "b"}, ""), END, COUNTED, " [DONE] "],
        [{"choices": [], "prompt_filter_results": []}, chunk({"content": "ab"}), chunk(None, "stop"), COUNTED],
        [{**chunk({"content": "ab"}), "usage": None}, END, {**COUNTED, "choices": None}, "[DONE]"],
        [chunk({"content": [{"type": "text", "text": "a"}]}), chunk({"content": {"text": "b"}}), END, COUNTED],
        [chunk({"reasoning": "hm", "content": None}), chunk({"content": "ab"}), END, COUNTED],
        [chunk({"content": "ab"}, index="x", logprobs=3), {**END, "id": 3, "created": None}, COUNTED],
        [{"choices": [{"text": "a"}]}, {"choices": [{"text": "b", "finish_reason": "stop"}]}, COUNTED],
        [chunk({"content": "ab", "tool_calls": [None]}), END, {**COUNTED, "usage": {"prompt_tokens": "7",
         "completion_tokens": 3.0}}],
        [{"object": "ping"}, "", chunk({"content": "ab"}), END, COUNTED],
        [chunk({"content": "ab"}), chunk({}, "eos_token"), COUNTED],
    ],
)  # fmt: skip
async def test_pieces_in_every_shape_add_up(server, chat, events: list[Any]) -> None:
    server.script = [sending(events)]
    said, shown = await streamed(chat)
    assert said == Reply("ab", 7, 3)
    assert shown == "ab"


@pytest.mark.parametrize("failure", [failing("no", code=502), {"object": "error", "message": "no"}, {"error": "no"},
                                     chunk({"content": ""}, "error", error={"code": 502})])  # fmt: skip
async def test_a_failure_in_a_stream_is_tried_again(server, chat, failure: Any) -> None:
    server.script = [sending([chunk({"content": "a"}), failure]), sending([chunk({"content": "ab"}), END, COUNTED])]
    assert (await streamed(chat))[0].text == "ab"


async def test_a_failure_in_one_piece_instead_of_a_stream(server, chat) -> None:
    server.say((200, failing("no", code=503)))
    assert (await streamed(chat))[0].text == "hello"
    assert chat.streaming


async def test_a_stream_that_says_it_is_done_is(server, chat) -> None:
    server.script = [sending([chunk({"content": "ab"}), COUNTED, "[DONE]"])]
    assert (await streamed(chat))[0] == Reply("ab", 7, 3)


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "application/json"])
async def test_a_stream_under_another_content_type_is_read(server, chat, kind: str) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        events = [chunk({"content": "a"}), chunk({"content": "b"}), END, COUNTED, "[DONE]"]
        lines = [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in events]
        return web.Response(text=": keep-alive\n\n" + "".join(lines), content_type=kind)

    server.script = [handler, handler]
    assert await streamed(chat) == (Reply("ab", 7, 3), "ab")
    assert (await chat.complete(ASKED)).text == "ab"


@pytest.mark.parametrize("events", [['{"choices": 3}'], ["[1, 2]"], ["{"], ['"text"']])
async def test_what_is_no_piece_is_malformed(server, chat, events: list[str]) -> None:
    server.script = [sending(events)]
    with pytest.raises(MalformedReplyError):
        await streamed(chat)


async def test_a_reply_that_does_not_end_is_cut(server, chat) -> None:
    piece = "x" * 100_000
    server.script = [sending([*[chunk({"content": piece})] * 12, END, COUNTED])]
    said, shown = await streamed(chat)
    assert (len(said.text), len(shown), said.finish_reason) == (MAX_REPLY_CHARS, MAX_REPLY_CHARS, "length")
    server.say((200, completion(piece * 12)))
    said = await chat.complete(ASKED)
    assert (len(said.text), said.cut_off) == (MAX_REPLY_CHARS, True)


# Models


@pytest.mark.parametrize(
    "listed",
    [
        {"data": [{"id": "a", "max_model_len": 512}, {"id": None}, 3, {}]},
        [{"id": "a", "context_length": 512}],
        {"models": [{"id": "a", "max_context_length": 512, "parent": 7}]},
        {"data": [{"id": "a", "context_window": 512, "max_model_len": "long"}], "object": None},
    ],
)
def test_lists_of_models_are_read_leniently(listed: Any) -> None:
    (model,) = decode_models(json.dumps(listed).encode())
    assert (model.id, model.context_tokens, model.parent) == ("a", 512, None)


async def test_no_list_of_models_is_said(server, chat) -> None:
    server.say((200, {"data": 3}))
    with pytest.raises(ServiceError, match="no list of models"):
        await chat.models()

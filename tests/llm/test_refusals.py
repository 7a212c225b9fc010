"""Refusals of real servers, in their own words: what is asked again, and how.

`refusals.jsonl` holds one a line: the rule that a request may break, what the server says then, how often it may have
to say it, and the public thread that reports it. The server refuses for as long as its rule is broken, so a case passes
only where the resent request keeps it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pyrag.agents.schemas import SUB_QUERIES, TAGGED_ANSWER
from pyrag.errors import ContextLengthError, PermanentServiceError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.protocol import Message, Sampling
from tests.llm.conftest import completion

Body = dict[str, Any]
Broken = Callable[[Body], bool]

ASKED = (Message("system", "Be brief."), Message("user", "Where?"))
PREFILLED = (*ASKED, Message("assistant", "<think> Well, "))
AGAIN = (*ASKED, Message("assistant", "hm"), Message("user", "No."))
FULL = Sampling(max_tokens=16_384, stop=("\nQ:",), seed=7)
CASES = [json.loads(line) for line in Path(__file__).with_name("refusals.jsonl").read_text("utf-8").splitlines()]


def breaks(rule: str, value: Any, body: Body) -> bool:
    messages = body["messages"]
    match rule:
        case "has":
            return any(name in body for name in value)
        case "differs" | "zero":
            name, allowed = value if rule == "differs" else (value, None)
            return name in body and (body[name] == 0 if allowed is None else body[name] != allowed)
        case "above":
            return max(body.get("max_tokens", 0), body.get("max_completion_tokens", 0)) > value
        case "role":
            return any(one["role"] == value for one in messages)
        case "first_not_user":
            return messages[0]["role"] != "user"
        case "alternating":
            return any(one["role"] != ("user", "assistant")[at % 2] for at, one in enumerate(messages))
        case "last_assistant" | "no_prefix":
            return messages[-1]["role"] == "assistant" and not (rule == "no_prefix" and messages[-1].get("prefix"))
        case "trailing_space":
            return messages[-1]["content"].endswith(" ")
    raise ValueError(rule)


def has(*names: str) -> Broken:
    return lambda body: breaks("has", names, body)


def above(most: int) -> Broken:
    return lambda body: breaks("above", most, body)


def error(message: str, param: str | None = None, code: Any = None, kind: str = "invalid_request_error") -> Body:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def extra(*names: str) -> Body:
    """As FastAPI words it."""
    errors = [
        {"type": "extra_forbidden", "loc": ["body", one], "msg": "Extra inputs are not permitted"} for one in names
    ]
    return {"detail": [{**one, "input": {"messages": ["temperature stop seed"]}} for one in errors]}


@pytest.fixture
async def chat(server) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat("tiny", server.url, timeout=5.0)
    yield model
    await model.aclose()


def strict(server: Any, broken: Broken, status: int, said: Any) -> Callable[[], int]:
    """Has the server refuse what breaks its rule; the function counts its refusals."""
    refused: list[Body] = []

    async def handler(_: web.Request) -> web.Response:
        body = server.bodies[-1]
        if not broken(body):
            return web.json_response(completion("hello"))
        refused.append(body)
        words = said(body) if callable(said) else said
        text = words if isinstance(words, str) else json.dumps(words)
        return web.Response(status=status, text=text, content_type="application/json")

    server.script = [handler] * 30
    return lambda: len(refused)


def as_told(server: Any, case: Body) -> Callable[[], int]:
    ((rule, value),) = case["when"].items()
    return strict(server, lambda body: breaks(rule, value, body), case["status"], case["says"])


def cases(*kinds: str) -> Any:
    rows = [case for case in CASES if case["id"].startswith(kinds)]
    return pytest.mark.parametrize("case", rows, ids=[case["id"] for case in rows])


@cases("field", "limit", "role")
async def test_a_refusal_is_learnt_once(server, chat, case: Body) -> None:
    refusals = as_told(server, case)
    replies = [await chat.complete(asked, FULL) for asked in (ASKED, ASKED, AGAIN)]
    assert [reply.text for reply in replies] == ["hello"] * 3
    assert 1 <= refusals() <= case["refusals"]


@cases("prefill")
async def test_an_unfinished_message_finds_a_way(server, chat, case: Body) -> None:
    refusals = as_told(server, case)
    replies = [await chat.complete(PREFILLED, FULL) for _ in range(2)]
    assert [reply.text for reply in replies] == ["hello"] * 2
    assert 1 <= refusals() <= case["refusals"]
    assert all("<think> Well," in json.dumps(body) for body in server.bodies)  # nothing of it is lost


@cases("schema")
async def test_a_schema_that_is_refused_is_given_up(server, chat, case: Body) -> None:
    refusals = as_told(server, case)
    for _ in range(2):
        await chat.complete(ASKED, Sampling(schema=SUB_QUERIES))
    assert refusals() == case["refusals"]
    assert "temperature" in server.bodies[-1]


@cases("pattern")
async def test_a_pattern_is_given_up_where_nothing_is_said(server, chat, case: Body) -> None:
    refusals = as_told(server, case)
    for _ in range(2):
        await chat.complete(ASKED, Sampling(pattern=TAGGED_ANSWER))
    assert refusals() == case["refusals"]


@cases("field-o", "field-c", "role-g", "role-m")
async def test_a_stream_learns_the_same(server, chat, case: Body) -> None:
    refusals = as_told(server, case)
    replies = [await chat.stream(ASKED, FULL, lambda _: None) for _ in range(2)]
    assert [reply.text for reply in replies] == ["hello"] * 2
    assert 1 <= refusals() <= case["refusals"]
    assert chat.streaming


async def test_one_rule_after_the_other_is_learnt(server, chat) -> None:
    names = ("max_tokens", "temperature", "stop")

    def said(body: Body) -> Body:
        return error(f"Unsupported parameter: '{next(one for one in names if one in body)}' is not supported.")

    refusals = strict(server, has(*names), 400, said)
    for _ in range(2):
        await chat.complete(ASKED, FULL)
    assert refusals() == 3
    assert server.bodies[-1]["max_completion_tokens"] == 16_384


async def test_a_developer_message_that_is_refused_too_is_merged(server, chat) -> None:
    def said(body: Body) -> Body:
        name = body["messages"][0]["role"]
        return error(f"'{name}' is not supported" + (", use 'developer' instead" if name == "system" else " as a role"))

    refusals = strict(server, lambda body: breaks("first_not_user", True, body), 400, said)
    await chat.complete(ASKED)
    assert refusals() == 2


async def test_a_server_without_quirks_sees_one_request(server, chat) -> None:
    await chat.complete(PREFILLED, FULL)
    assert len(server.bodies) == 1
    assert server.bodies[0]["messages"] == [{"role": one.role, "content": one.content} for one in PREFILLED]


async def test_stream_options_alone_do_not_end_streaming(server, chat) -> None:
    refusals = strict(server, has("stream_options"), 422, extra("stream_options", "structured_outputs"))
    await chat.stream(ASKED, Sampling(), lambda _: None)
    assert (refusals(), chat.streaming, server.bodies[-1]["stream"]) == (1, True, True)


async def test_system_text_goes_before_the_users(server, chat) -> None:
    strict(server, lambda body: breaks("role", "system", body), 400, {"message": "System role not supported"})
    await chat.complete(AGAIN)
    said = server.bodies[-1]["messages"]
    assert [one["role"] for one in said] == ["user", "assistant", "user"]
    assert said[0]["content"] == "Be brief.\n\nWhere?"


async def test_what_is_given_up_is_told_once(server, chat) -> None:
    strict(
        server,
        has("stop", "max_tokens"),
        400,
        lambda body: error(f"Unsupported parameter: '{'stop' if 'stop' in body else 'max_tokens'}'"),
    )
    notes = [(await chat.complete(ASKED, FULL)).note for _ in range(2)]
    assert notes == [f"model server {server.url} refuses stop: requests are sent without from now on", ""]


async def test_a_stop_that_is_refused_is_kept_here(server, chat) -> None:
    said = "<think>x\nQ: y</think>one\nQ: two\nQ: three"
    server.say((400, error("Unsupported parameter: 'stop'", "stop")), *[(200, completion(said))] * 2)
    for _ in range(2):
        assert (await chat.complete(ASKED, FULL)).text == "<think>x\nQ: y</think>one"


async def test_of_two_samplers_the_second_goes(server, chat) -> None:
    chat._body = lambda messages, sampling: {**OpenAIChat._body(chat, messages, sampling), "top_p": 0.9}
    both = lambda body: "temperature" in body and "top_p" in body  # noqa: E731
    strict(server, both, 400, error("`temperature` and `top_p` cannot both be specified for this model."))
    await chat.complete(ASKED)
    assert "temperature" in server.bodies[-1]


async def test_a_model_that_only_streams_is_streamed(server, chat) -> None:
    said = error("This model only support stream mode, please enable the stream parameter to access the model.")
    refusals = strict(server, lambda body: not body.get("stream"), 400, said)
    assert [(await chat.complete(ASKED)).text for _ in range(2)] == ["hello"] * 2
    assert refusals() == 1


async def test_thinking_is_switched_off_where_it_must_be(server, chat) -> None:
    said = error(
        "parameter.enable_thinking must be set to false for non-streaming calls", None, "invalid_parameter_error"
    )
    refusals = strict(server, lambda body: body.get("enable_thinking") is not False, 400, said)
    await chat.complete(ASKED)
    assert refusals() == 1


async def test_a_window_once_learnt_is_kept_to(server, chat) -> None:
    said = error("maximum context length is 2000 tokens. However, you requested 16484 tokens (100 in the messages,"
                 " 16384 in the completion).")  # fmt: skip
    refusals = strict(server, above(1900), 400, said)
    for words in (10, 200, 400):
        await chat.complete((Message("user", "word " * words),), FULL)
    assert refusals() == 1
    limits = [body["max_tokens"] for body in server.bodies[1:]]
    assert limits == sorted(limits, reverse=True)


async def test_a_prompt_that_fills_the_window_is_too_long(server, chat) -> None:
    said = error("This model's maximum context length is 4096 tokens. However, you requested 5124 tokens (4100 in the"
                 " messages, 1024 in the completion).")  # fmt: skip
    strict(server, lambda body: True, 400, said)
    with pytest.raises(ContextLengthError):
        await chat.complete((Message("user", "word " * 4000),))
    assert len(server.bodies) == 1


async def test_rules_that_led_nowhere_are_forgotten(server, chat) -> None:
    server.say((400, error("Unsupported parameter: 'seed'")), (400, error("odd")))
    with pytest.raises(PermanentServiceError, match="odd"):
        await chat.complete(ASKED, FULL)
    await chat.complete(ASKED, FULL)
    assert "seed" in server.bodies[-1]


@pytest.mark.parametrize("status", [401, 403, 405, 409])
async def test_other_refusals_are_final(server, chat, status: int) -> None:
    server.say((status, error("Unsupported parameter: 'temperature'", "temperature")))
    with pytest.raises(PermanentServiceError):
        await chat.complete(ASKED)
    assert len(server.bodies) == 1


async def test_a_schema_refused_after_it_was_taken(server, chat) -> None:
    server.say((200, completion('{"sub_queries": []}')))
    await chat.complete(ASKED, Sampling(schema=SUB_QUERIES))
    strict(server, has("response_format"), 400, error("Structured outputs are not supported by this model"))
    assert "refuses JSON schemas" in (await chat.complete(ASKED, Sampling(schema=SUB_QUERIES))).note


@pytest.mark.parametrize(
    "said",
    [
        error("Unrecognized request argument supplied: structured_outputs"),
        error("guided decoding is not supported by this server"),
        extra("structured_outputs"),
        {"detail": "Extra inputs are not permitted"},
    ],
)
async def test_a_pattern_that_is_refused_is_given_up(server, chat, said: Any) -> None:
    refusals = strict(server, has("structured_outputs"), 400, said)
    for _ in range(2):
        await chat.complete(ASKED, Sampling(pattern=TAGGED_ANSWER))
    assert refusals() == 1

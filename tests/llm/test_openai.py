"""The OpenAI-compatible client against a real server on loopback: what it sends, reads, retries and says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from pyrag.errors import MalformedReplyError, PermanentServiceError, RetryableServiceError, ServiceError
from pyrag.llm.clients.openai import OpenAIChat, key_from_environment
from pyrag.llm.protocol import Message, Sampling

ASKED = (Message("system", "Be brief."), Message("user", "Grüße “{x}” $y?"))


def completion(text: str | None, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text, **message}, "finish_reason": "stop"}]}


@pytest.fixture
async def chat(server) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat("tiny", server.url, timeout=60.0)
    yield model
    await model.aclose()


async def test_reads_text_tokens_and_finish_reason(server, chat) -> None:
    reply = await chat.complete(ASKED)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens, reply.finish_reason) == ("hello", 7, 2, "stop")


async def test_sends_only_what_was_asked_for(server, chat) -> None:
    await chat.complete(ASKED)
    assert server.bodies == [
        {
            "model": "tiny",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Grüße “{x}” $y?"},
            ],
            "temperature": 0.0,
            "max_tokens": 1024,
        }
    ]
    assert "Authorization" not in server.headers[0]


async def test_official_client_sends_the_same(server, chat) -> None:
    openai = pytest.importorskip("openai")
    await chat.complete(ASKED, Sampling(temperature=0.7, max_tokens=99, stop=("END", "\n\n"), seed=3))
    official = openai.AsyncOpenAI(base_url=server.url, api_key="sk-1")
    reply = await official.chat.completions.create(
        model="tiny",
        messages=[{"role": message.role, "content": message.content} for message in ASKED],
        temperature=0.7,
        max_tokens=99,
        stop=["END", "\n\n"],
        seed=3,
    )
    await official.close()
    ours, theirs = server.bodies
    assert ours == theirs
    assert reply.choices[0].message.content == "hello"


async def test_official_client_authenticates_the_same(server) -> None:
    openai = pytest.importorskip("openai")
    model = OpenAIChat("tiny", server.url, api_key="sk-1")
    await model.complete(ASKED)
    await model.aclose()
    official = openai.AsyncOpenAI(base_url=server.url, api_key="sk-1")
    listed = [entry.id async for entry in official.models.list()]
    await official.close()
    assert server.headers[0]["Authorization"] == server.headers[1]["Authorization"] == "Bearer sk-1"
    assert listed == ["tiny", "b"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (completion("a", reasoning_content="hm", tool_calls=None), "a"),
        (completion([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab"),
        (completion(None, reasoning_content="hm <answer>x</answer>"), "<think>hm <answer>x</answer>"),
        (completion(None), ""),
        (completion("", refusal="no"), "no"),
        ({"choices": [{"message": {"content": "a"}, "finish_reason": None}], "usage": None}, "a"),
        ({"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": None}}, "a"),
    ],
)
async def test_tolerates_what_servers_send(server, chat, body: Any, text: str) -> None:
    server.say((200, body))
    assert (await chat.complete(ASKED)).text == text


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_survives_one_passing_fault(server, chat, status: int) -> None:
    server.say((status, {"error": {"message": "busy"}}, {"Retry-After": "0"}))
    assert (await chat.complete(ASKED)).text == "hello"
    assert len(server.bodies) == 2


async def test_gives_up_naming_the_service(server, chat) -> None:
    server.say(*[(500, {"error": {"message": "out of memory"}})] * 3)
    with pytest.raises(RetryableServiceError, match=r"^model server http://127.*out of memory.*log") as failed:
        await chat.complete(ASKED)
    assert failed.value.service.startswith("model server http://127.0.0.1:")
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("status", "said", "cure"),
    [
        (401, "Incorrect API key provided", "set OPENAI_API_KEY or PYRAG_API_KEY"),
        (404, "The model `tiny` does not exist.", "check the model's name"),
        (400, "This model's maximum context length is 4096 tokens", "lower --topk"),
    ],
)
async def test_permanent_faults_quote_the_server_and_cure(server, chat, status: int, said: str, cure: str) -> None:
    server.say((status, {"error": {"message": said, "type": "x"}}))
    with pytest.raises(PermanentServiceError) as failed:
        await chat.complete(ASKED)
    assert said in str(failed.value)
    assert cure in str(failed.value)
    assert "\n" not in str(failed.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize("body", ["{", "<html>", {"choices": []}, {"choices": [{}]}, []])
async def test_malformed_reply(server, chat, body: Any) -> None:
    server.say((200, body))
    with pytest.raises(MalformedReplyError, match="model server"):
        await chat.complete(ASKED)


async def test_hanging_server_ends_in_time(server) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        raise AssertionError

    server.script = [hang] * 3
    model = OpenAIChat("tiny", server.url, timeout=0.1, retries=1)
    async with asyncio.timeout(120):
        with pytest.raises(RetryableServiceError, match="did not reply within"):
            await model.complete(ASKED)
    await model.aclose()


async def test_empty_model_takes_the_first_on_offer(server) -> None:
    model = OpenAIChat("", server.url)
    assert model.name == f"openai:@{server.url}"
    await model.complete(ASKED)
    await model.complete(ASKED)
    await model.aclose()
    assert model.name == f"openai:tiny@{server.url}"
    assert [body["model"] for body in server.bodies] == ["tiny", "tiny"]
    assert len(server.headers) == 3


async def test_server_without_models(server) -> None:
    server.say((200, {"data": []}))
    model = OpenAIChat("", server.url)
    with pytest.raises(PermanentServiceError, match="offers no model"):
        await model.complete(ASKED)
    await model.aclose()


async def test_models(server, chat) -> None:
    assert await chat.models() == ["tiny", "b"]


async def test_key_appears_nowhere(server) -> None:
    key = "sk-planted-0123456789"
    model = OpenAIChat("tiny", server.url, api_key=key)
    server.say((401, {"error": {"message": f"bad key {key}"}}))
    with pytest.raises(ServiceError) as failed:
        await model.complete(ASKED)
    await model.aclose()
    assert key not in f"{failed.value}{failed.value!r}{failed.value.service}{model.name}{model!r}"


def test_password_in_the_url_is_not_shown() -> None:
    model = OpenAIChat("tiny", "http://me:secret@127.0.0.1:1/v1")
    assert model.name == "openai:tiny@http://127.0.0.1:1/v1"


def test_key_from_environment() -> None:
    assert key_from_environment({}) is None
    assert key_from_environment({"OPENAI_API_KEY": " a\n"}) == "a"
    assert key_from_environment({"OPENAI_API_KEY": "a", "PYRAG_API_KEY": "b"}) == "b"
    assert key_from_environment({"OPENAI_API_KEY": "a", "PYRAG_API_KEY": ""}) == "a"


def test_hosted_openai_gets_its_own_name_of_the_limit() -> None:
    assert OpenAIChat("m")._limit_name == "max_completion_tokens"


def test_import_is_light() -> None:
    code = (
        "import sys, pyrag.llm.clients.openai, pyrag.llm.spec, pyrag.llm.clients.scripted, pyrag.agents.llm;"
        "heavy = {'aiohttp', 'msgspec', 'openai', 'httpx'} & sys.modules.keys();"
        "sys.exit(str(sorted(heavy)) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


async def test_a_message_of_the_assistant_is_gone_on_from(server, chat) -> None:
    await chat.complete((*ASKED, Message("assistant", "<think>")))
    assert server.bodies[0]["messages"][-1] == {"role": "assistant", "content": "<think>"}
    assert server.bodies[0]["continue_final_message"] is True
    assert server.bodies[0]["add_generation_prompt"] is False


@pytest.mark.parametrize(("model", "window"), [("tiny", 4096), ("adapter", 4096), ("plain", None), ("unknown", None)])
async def test_window_as_the_server_tells(server, model: str, window: int | None) -> None:
    listed = [{"id": "tiny", "max_model_len": 4096}, {"id": "adapter", "parent": "tiny"}, {"id": "plain"}]
    server.say((200, {"data": listed}))
    chat = OpenAIChat(model, server.url)
    assert [await chat.context_tokens() for _ in range(2)] == [window] * 2
    await chat.aclose()
    assert len(server.headers) == 1


async def test_a_server_that_lists_nothing_tells_no_window(server, chat) -> None:
    server.say((404, {"error": "no such page"}))
    assert await chat.context_tokens() is None

"""The official OpenAI client against the service: models, chat, streams, follow-ups."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import openai

from tests.server.conftest import ModelServer
from tests.server.test_serve import QUESTION, SCRIPTED, running


def asking(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def test_models_are_the_indexes() -> None:
    async with running() as client, asking(client.url) as official:
        assert [one.id async for one in official.models.list()] == ["pyrag", "pyrag/default"]


async def test_chat_answers_with_numbered_citations() -> None:
    async with running() as client, asking(client.url) as official:
        reply = await official.chat.completions.create(model="pyrag", messages=said(QUESTION))
        message = reply.choices[0].message
        assert message.content.startswith("Uppsala [1]")
        cited = message.annotations[0].url_citation
        assert message.content[cited.start_index : cited.end_index] == "[1]"
        assert cited.url.startswith(f"{client.url}/v1/traces/")


async def test_a_stream_shows_progress_and_then_the_answer() -> None:
    async with running() as client, asking(client.url) as official:
        stream = await official.chat.completions.create(
            model="pyrag", messages=said(QUESTION), stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(one.content or "" for one in deltas).startswith("Uppsala [1]")
    assert "retrieve: " in "".join(getattr(one, "reasoning_content", None) or "" for one in deltas)
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens == 0


async def test_a_follow_up_becomes_a_question_of_its_own(server: ModelServer) -> None:
    server.replies["standalone"] = f"<question>{SCRIPTED}</question>"
    earlier = [*said("Tell me about Jed Hoyer."), {"role": "assistant", "content": "Which part?"}]
    async with running(llm=f"openai:tiny@{server.url}") as client, asking(client.url) as official:
        reply = await official.chat.completions.create(model="pyrag", messages=[*earlier, *said("Who is he?")])
        _, trace = await client.get(f"/v1/traces/{reply.id.removeprefix('chatcmpl-')}")
    assert reply.choices[0].message.content.startswith("an executive")
    assert trace["question"] == SCRIPTED
    assert trace["warnings"][0] == f"the follow-up was asked as: {SCRIPTED}"
    assert trace["usage"]["model_calls"] == 5
    assert "Tell me about Jed Hoyer." in str(server.bodies[0])


async def test_without_a_model_the_last_message_is_asked() -> None:
    async with running() as client, asking(client.url) as official:
        earlier = [*said("Hello"), {"role": "assistant", "content": "Hello"}]
        reply = await official.chat.completions.create(model="pyrag/default", messages=[*earlier, *said(QUESTION)])
        _, trace = await client.get(f"/v1/traces/{reply.id.removeprefix('chatcmpl-')}")
    assert trace["question"] == QUESTION
    assert trace["warnings"][0].startswith("earlier messages were not read")


async def test_refusals_are_the_clients_own_errors(server: ModelServer) -> None:
    server.refuse = lambda _: (400, {"error": {"message": "odd"}})
    async with running(llm=f"openai:tiny@{server.url}") as client, asking(client.url) as official:
        with pytest.raises(openai.NotFoundError, match="no model 'gpt'"):
            await official.chat.completions.create(model="gpt", messages=said(QUESTION))
        with pytest.raises(openai.BadRequestError, match="last message"):
            await official.chat.completions.create(model="pyrag", messages=[{"role": "system", "content": "x"}])
        with pytest.raises(openai.InternalServerError, match="odd"):
            await official.chat.completions.create(model="pyrag", messages=said(SCRIPTED))
        stream = await official.chat.completions.create(model="pyrag", messages=said(SCRIPTED), stream=True)
        with pytest.raises(openai.APIError, match="odd"):
            _ = [chunk async for chunk in stream]

"""The official OpenAI client against the service: models, chat, streams, follow-ups."""

from __future__ import annotations

import asyncio
import time

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
    assert trace["warnings"][-1] == f"the follow-up was asked as: {SCRIPTED}"
    assert trace["usage"]["model_calls"] == 5
    assert "Tell me about Jed Hoyer." in str(server.bodies[0])


async def test_without_a_model_the_last_message_is_asked() -> None:
    async with running() as client, asking(client.url) as official:
        earlier = [*said("Hello"), {"role": "assistant", "content": "Hello"}]
        reply = await official.chat.completions.create(model="pyrag/default", messages=[*earlier, *said(QUESTION)])
        _, trace = await client.get(f"/v1/traces/{reply.id.removeprefix('chatcmpl-')}")
    assert trace["question"] == QUESTION
    assert trace["warnings"][-1].startswith("earlier messages were not read")


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


async def test_responses_answer_with_citations_and_a_summary() -> None:
    async with running() as client, asking(client.url) as official:
        reply = await official.responses.create(model="pyrag", input=QUESTION)
    assert (reply.status, reply.output_text[:11]) == ("completed", "Uppsala [1]")
    thought, message = reply.output
    assert "retrieve: " in thought.summary[0].text
    cited = message.content[0].annotations[0]
    assert (cited.type, cited.index, bool(cited.filename)) == ("file_citation", 0, True)
    assert message.content[0].text[cited.start_index : cited.end_index] == "[1]"


async def test_a_streamed_response_ends_complete() -> None:
    async with running() as client, asking(client.url) as official:
        manager = official.responses.stream(model="pyrag", input=said(QUESTION))
        stream = await manager.__aenter__()
        events = [event async for event in stream]
        final = await stream.get_final_response()
        await manager.__aexit__(None, None, None)
    assert final.output_text.startswith("Uppsala [1]")
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")][:3] == [0, 1, 2]
    assert events[-1].type == "response.completed"
    assert any(event.type == "response.reasoning_summary_text.delta" for event in events)


async def test_a_response_that_fails_says_why(server: ModelServer) -> None:
    server.refuse = lambda _: (400, {"error": {"message": "odd"}})
    async with running(llm=f"openai:tiny@{server.url}") as client, asking(client.url) as official:
        stream = await official.responses.create(model="pyrag", input=SCRIPTED, stream=True)
        events = [event async for event in stream]
        assert events[-1].type == "response.failed"
        assert "odd" in events[-1].response.error.message
        with pytest.raises(openai.BadRequestError, match="there is no response"):
            await official.responses.create(model="pyrag", input="x", previous_response_id="resp_1")


async def test_a_vanished_client_leaves_no_model_call(server: ModelServer) -> None:
    begun, calls = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def slow(body):
        calls.append(body)
        loop.call_soon_threadsafe(begun.set)
        time.sleep(0.3)
        return

    server.refuse = slow
    async with running(llm=f"openai:tiny@{server.url}") as client:
        asking_one = asyncio.create_task(client.post("/v1/ask", {"question": SCRIPTED}))
        await asyncio.wait_for(begun.wait(), 60)
        asking_one.cancel()
        async with asyncio.timeout(60):
            while client.service.gauges["pyrag_questions_running"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        seen = len(calls)
        await asyncio.sleep(1)
        assert len(calls) == seen < 4

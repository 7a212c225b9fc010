"""The official OpenAI client against the service: models, chat, streams, follow-ups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import openai

from pyrag.server.config import ServerConfig, read_keys
from pyrag.server.openai_api.outcome import cited_text, file_citation, url_citation
from pyrag.trace.model import Answer, Citation, Passage, Trace
from tests.server.conftest import ModelServer
from tests.server.live import Live, live
from tests.server.test_serve import QUESTION, SCRIPTED, running


def asking(url: str, key: str = "unused") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


@pytest.fixture(scope="module")
def served() -> Iterator[Live]:
    with live() as one:
        yield one


@pytest.fixture
async def official(served: Live) -> AsyncIterator[openai.AsyncOpenAI]:
    async with asking(served.url) as client:
        yield client


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def test_models_are_the_indexes(official: openai.AsyncOpenAI) -> None:
    assert [one.id async for one in official.models.list()] == ["pyrag", "pyrag/default"]


async def test_chat_answers_with_numbered_citations(served: Live, official: openai.AsyncOpenAI) -> None:
    reply = await official.chat.completions.create(model="pyrag", messages=said(QUESTION))
    message = reply.choices[0].message
    assert message.content.startswith("Uppsala [1]")
    cited = message.annotations[0].url_citation
    assert message.content[cited.start_index : cited.end_index] == "[1]"
    assert cited.url.startswith(f"{served.url}/v1/traces/")


async def test_a_stream_shows_progress_and_then_the_answer(official: openai.AsyncOpenAI) -> None:
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
    assert trace["said"] == "Who is he?"
    assert trace["usage"]["model_calls"] == 5
    assert "Tell me about Jed Hoyer." in str(server.bodies[0])


async def test_without_a_model_rules_make_the_follow_up() -> None:
    async with running() as client, asking(client.url) as official:
        earlier = [*said("Who directed The Seventh Seal?"), {"role": "assistant", "content": "Ingmar Bergman [1]"}]
        asked = [*earlier, *said("Where was he born?")]
        reply = await official.chat.completions.create(model="pyrag/default", messages=asked)
        _, trace = await client.get(f"/v1/traces/{reply.id.removeprefix('chatcmpl-')}")
    assert trace["question"] == "Where was Ingmar Bergman born?"
    assert reply.choices[0].message.content.startswith("Uppsala")


async def test_refusals_are_the_clients_own_errors(server: ModelServer) -> None:
    server.refuse = lambda _: (400, {"error": {"message": "odd"}})
    async with running(llm=f"openai:tiny@{server.url}") as client, asking(client.url) as official:
        with pytest.raises(openai.NotFoundError, match="no model 'gpt'"):
            await official.chat.completions.create(model="gpt", messages=said(QUESTION))
        with pytest.raises(openai.BadRequestError, match="last message"):
            await official.chat.completions.create(model="pyrag", messages=[{"role": "system", "content": "x"}])
        with pytest.raises(openai.InternalServerError, match="replied HTTP 400"):
            await official.chat.completions.create(model="pyrag", messages=said(SCRIPTED))
        stream = await official.chat.completions.create(model="pyrag", messages=said(SCRIPTED), stream=True)
        with pytest.raises(openai.APIError, match="replied HTTP 400"):
            _ = [chunk async for chunk in stream]


async def test_responses_answer_with_citations_and_a_summary(official: openai.AsyncOpenAI) -> None:
    reply = await official.responses.create(model="pyrag", input=QUESTION)
    assert (reply.status, reply.output_text[:11]) == ("completed", "Uppsala [1]")
    thought, message = reply.output
    assert "retrieve: " in thought.summary[0].text
    cited = message.content[0].annotations[0]
    assert (cited.type, cited.index, bool(cited.filename)) == ("file_citation", 0, True)
    assert message.content[0].text[cited.start_index : cited.end_index] == "[1]"


async def test_a_streamed_response_ends_complete(official: openai.AsyncOpenAI) -> None:
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
        assert "replied HTTP 400 (…)" in events[-1].response.error.message
        with pytest.raises(openai.BadRequestError, match="there is no response"):
            await official.responses.create(model="pyrag", input="x", previous_response_id="resp_1")


async def test_a_model_is_found_by_its_name() -> None:
    async with running() as client, asking(client.url) as official:
        assert (await official.models.retrieve("pyrag/default")).id == "pyrag/default"
        with pytest.raises(openai.NotFoundError, match="no model 'pyrag/nope'") as refused:
            await official.models.retrieve("pyrag/nope")
        assert (refused.value.code, refused.value.param) == ("model_not_found", "model")


IMAGE = [{"type": "image_url", "image_url": {"url": "data:,x"}}]


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"messages": [{"role": "user", "content": IMAGE}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "messages"),
    ],
)
async def test_options_that_change_the_reply_are_refused(
    official: openai.AsyncOpenAI, more: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await official.chat.completions.create(**{"model": "pyrag", "messages": said(QUESTION), **more})
    assert refused.value.param == param
    if "messages" not in more and param != "logprobs":
        given = {"text": {"format": more["response_format"]}} if "response_format" in more else more
        if "n" not in given:
            with pytest.raises(openai.BadRequestError):
                await official.responses.create(model="pyrag", input=QUESTION, **given)


async def test_options_without_meaning_here_are_ignored(official: openai.AsyncOpenAI) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    messages = [{"role": "system", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    reply = await official.chat.completions.create(
        model="pyrag", messages=messages, temperature=0.5, max_tokens=5, seed=1, tools=[tool], n=1, store=False,
        response_format={"type": "text"},
    )  # fmt: skip
    assert reply.choices[0].message.content.startswith("Uppsala [1]")
    assert reply.choices[0].message.annotations[0].url_citation.url.startswith("urn:pyrag:passage:")


NULLS = [
    ("chat/completions", {"stream_options": {"include_usage": None}}),
    ("chat/completions", {"response_format": {"type": "text", "json_schema": None}}),
    (
        "chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "refusal", "text": None}]}, *said(QUESTION)]},
    ),
    ("chat/completions", {"messages": [{"role": "user", "type": None, "content": QUESTION}]}),
    ("responses", {"input": QUESTION, "text": {"format": {"type": "text", "schema": None}}}),
    ("responses", {"input": [{"role": "user", "type": None, "content": QUESTION}], "metadata": None}),
]


@pytest.mark.parametrize(("path", "options"), NULLS)
async def test_null_is_as_if_left_out(official: openai.AsyncOpenAI, path: str, options: dict[str, Any]) -> None:
    body = ({"messages": said(QUESTION)} if path.startswith("chat") else {}) | options
    reply = await official.post(f"/{path}", body={"model": "pyrag", **body}, cast_to=dict[str, Any])
    assert "Uppsala" in str(reply)


async def test_a_response_goes_on_from_a_kept_one(server: ModelServer, tmp_path: Path) -> None:
    server.replies["standalone"] = f"<question>{SCRIPTED}</question>"
    keys = tmp_path / "keys"
    keys.write_text("key-of-one-caller\nkey-of-the-other\n")
    config = ServerConfig(keys=read_keys(keys, {}), traces=tmp_path / "t.sqlite")
    async with running(config, llm=f"openai:tiny@{server.url}") as client:
        one, other = (asking(client.url, key) for key in keys.read_text().split())
        async with one, other:
            first = await one.responses.create(model="pyrag", input="Tell me about Jed Hoyer.", metadata={"a": "b"})
            second = await one.responses.create(model="pyrag", input="Who is he?", previous_response_id=first.id)
            unkept = await one.responses.create(
                model="pyrag", input="Who?", previous_response_id=second.id, store=False
            )
            for official, previous in ((other, first.id), (one, unkept.id), (one, "resp_none")):
                with pytest.raises(openai.BadRequestError) as refused:
                    await official.responses.create(model="pyrag", input="x", previous_response_id=previous)
                assert refused.value.code == "previous_response_not_found"
    assert (first.metadata, second.previous_response_id, unkept.store) == ({"a": "b"}, first.id, False)
    asked = [body for body, role in zip(server.bodies, server.roles, strict=True) if role == "standalone"]
    assert "Tell me about Jed Hoyer." in str(asked[0])
    assert "Who is he?" in str(asked[1])


async def test_responses_are_read_and_deleted_by_their_key(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("key-of-one-caller\nkey-of-the-other\n")
    config = ServerConfig(keys=read_keys(keys, {}), traces=tmp_path / "t.sqlite")
    async with running(config) as client:
        one, other = (asking(client.url, key) for key in keys.read_text().split())
        async with one, other:
            made = await one.responses.create(model="pyrag", input=QUESTION, metadata={"a": "b"})
            stream = await one.responses.create(model="pyrag", input=QUESTION, stream=True)
            streamed = [event async for event in stream][-1].response
            for reply in (made, streamed):
                assert await one.responses.retrieve(reply.id) == reply
            unkept = await one.responses.create(model="pyrag", input=QUESTION, store=False)
            trace = made.id.removeprefix("resp_")
            for official, name in ((other, made.id), (one, unkept.id), (one, trace), (one, f"resp_{made.id}")):
                for act in (official.responses.retrieve, official.responses.delete):
                    with pytest.raises(openai.NotFoundError, match="there is no response") as refused:
                        await act(name)
                    assert refused.value.code == "response_not_found"
            await one.responses.delete(made.id)
            with pytest.raises(openai.NotFoundError):
                await one.responses.retrieve(made.id)
            with pytest.raises(openai.BadRequestError, match="there is no response"):
                await one.responses.create(model="pyrag", input="Who?", previous_response_id=made.id)
            assert (await one.responses.retrieve(streamed.id)).id == streamed.id
        assert (await client.get(f"/v1/traces/{trace}", Authorization="Bearer key-of-one-caller"))[0] == 404


async def test_a_failed_response_is_read_again_as_such(server: ModelServer) -> None:
    server.refuse = lambda _: (400, {"error": {"message": "odd"}})
    async with running(llm=f"openai:tiny@{server.url}") as client, asking(client.url) as official:
        stream = await official.responses.create(model="pyrag", input=SCRIPTED, stream=True)
        failed = [event async for event in stream][-1].response
        assert await official.responses.retrieve(failed.id) == failed
        assert failed.status == "failed"


async def test_kept_responses_are_documented_and_not_streamed(served: Live, official: openai.AsyncOpenAI) -> None:
    made = await official.responses.create(model="pyrag", input=QUESTION)
    with pytest.raises(openai.BadRequestError) as refused:
        await official.responses.retrieve(made.id, stream=True)
    assert refused.value.param == "stream"
    described = served.send("/openapi.json").json["paths"]["/v1/responses/{response_id}"]
    assert set(described) == {"get", "delete"}
    assert {"200", "404"} <= set(described["get"]["responses"]) & set(described["delete"]["responses"])
    deleted = served.send(f"/v1/responses/{made.id}", method="DELETE")
    assert (deleted.status, deleted.json) == (200, {"id": made.id, "object": "response", "deleted": True})


async def test_the_rewriting_of_a_follow_up_counts_towards_limits(server: ModelServer) -> None:
    server.replies["standalone"] = f"<question>{SCRIPTED}</question>"
    earlier = [*said("Tell me about Jed Hoyer."), {"role": "assistant", "content": "Which part?"}]
    async with running(llm=f"openai:tiny@{server.url}", max_calls=1) as client, asking(client.url) as official:
        reply = await official.chat.completions.create(model="pyrag", messages=[*earlier, *said("Who is he?")])
        _, trace = await client.get(f"/v1/traces/{reply.id.removeprefix('chatcmpl-')}")
    assert (trace["error"]["kind"], trace["usage"]["model_calls"]) == ("budget", 1)
    assert server.roles == ["standalone"]


def test_places_of_citations_count_characters() -> None:
    sources = ("https://example.org/a", "notes/b.md")
    passages = {one: Passage(one, "", "text", source=source) for one, source in zip("xy", sources, strict=True)}
    citations = (Citation(1, "x", 0), Citation(2, "y", 0))
    trace = Trace(
        "?", Answer("\U0001f9d1\u200d\U0001f33e naïve", citations=("x", "y")), citations=citations, passages=passages
    )
    text, cited = cited_text(trace)
    assert [text[one.start : one.end] for one in cited] == ["[1]", "[2]"]
    assert url_citation(cited[0], "")["url"] == "https://example.org/a"
    file = file_citation(cited[1])
    assert (file["type"], file["file_id"], file["filename"], file["index"]) == ("file_citation", "y", "notes/b.md", 1)


ORDER = [
    "response.created", "response.in_progress", "response.output_item.added", "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done", "response.output_item.done", "response.output_item.added",
    "response.content_part.added", "response.output_text.delta", "response.output_text.annotation.added",
    "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
]  # fmt: skip


async def test_events_of_a_response_come_in_the_official_order(official: openai.AsyncOpenAI) -> None:
    stream = await official.responses.create(model="pyrag", input=QUESTION, stream=True)
    events = [event async for event in stream]
    assert [kind for kind, _ in groupby(event.type for event in events)] == ORDER
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert all(type(event).__name__.startswith("Response") for event in events)
    assert events[-1].response.output_text.startswith("Uppsala [1]")
    assert events[-1].response.usage.total_tokens == 0

"""JSON schemas: what is asked for, and how servers that do not keep to them are noticed."""

from __future__ import annotations

import asyncio

import pytest

from pyrag.agents.llm import SUB_QUERIES, make_llm_agents
from pyrag.agents.schemas import TAGGED_ANSWER
from pyrag.errors import ContextLengthError, PermanentServiceError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.protocol import Message, Sampling
from pyrag.llm.schema import constraint_of, fits, matches, response_format
from tests.llm.conftest import completion

ASKED = (Message("user", "?"),)
WANTED = Sampling(schema=SUB_QUERIES)
TAGGED = Sampling(pattern=TAGGED_ANSWER)
KEPT = '{"sub_queries": ["a?", "b?"]}'


@pytest.fixture
async def chat(server):
    model = OpenAIChat("tiny", server.url)
    yield model
    await model.aclose()


async def test_a_server_that_keeps_to_it_goes_on_being_asked(server, chat) -> None:
    server.say(*[(200, completion(KEPT))] * 2)
    replies = [await chat.complete(ASKED, WANTED) for _ in range(2)]
    assert [reply.note for reply in replies] == ["", ""]
    assert [body["response_format"] for body in server.bodies] == [response_format(SUB_QUERIES)] * 2


async def test_the_official_client_sends_the_same(server, chat) -> None:
    openai = pytest.importorskip("openai")
    await chat.complete(ASKED, WANTED)
    async with openai.AsyncOpenAI(base_url=server.url, api_key="x") as official:
        await official.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": "?"}],
            temperature=0.0,
            max_tokens=1024,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "sub_queries", "strict": True, "schema": SUB_QUERIES},
            },
        )
    assert server.bodies[0] == server.bodies[1]


async def test_a_server_that_ignores_it_is_noticed_and_asked_once(server, chat) -> None:
    server.say(*[(200, completion('["a?", "b?"]'))] * 2)
    first = await chat.complete(ASKED, WANTED)
    second = await chat.complete(ASKED, WANTED)
    assert first.text == second.text == '["a?", "b?"]'
    assert "ignores JSON schemas" in first.note
    assert second.note == ""
    assert ["response_format" in body for body in server.bodies] == [True, False]


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_refuses_it_is_asked_without(server, chat, status: int) -> None:
    server.say((status, {"error": {"message": "no such field"}}))
    first = await chat.complete(ASKED, WANTED)
    second = await chat.complete(ASKED, WANTED)
    assert "refuses JSON schemas" in first.note
    assert second.note == ""
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


async def test_a_refusal_for_another_reason_stays_one(server, chat) -> None:
    server.say(*[(400, {"error": {"message": "bad temperature"}})] * 2, (200, completion(KEPT)))
    with pytest.raises(PermanentServiceError, match="bad temperature"):
        await chat.complete(ASKED, WANTED)
    await chat.complete(ASKED, WANTED)
    assert ["response_format" in body for body in server.bodies] == [True, False, True]
    server.say((400, {"error": {"message": "bad temperature"}}))
    with pytest.raises(PermanentServiceError):  # it has kept to a schema before: not the reason
        await chat.complete(ASKED, WANTED)
    assert len(server.bodies) == 4


async def test_too_long_a_prompt_is_not_taken_for_a_refusal(server, chat) -> None:
    server.say((400, {"error": {"code": "context_length_exceeded"}}))
    with pytest.raises(ContextLengthError):
        await chat.complete(ASKED, WANTED)
    assert len(server.bodies) == 1


async def test_a_reply_that_was_cut_off_proves_nothing(server, chat) -> None:
    cut = completion('{"sub_queries": ["a')
    cut["choices"][0]["finish_reason"] = "length"
    server.say((200, cut))
    assert (await chat.complete(ASKED, WANTED)).note == ""
    await chat.complete(ASKED, WANTED)
    assert "response_format" in server.bodies[1]


async def test_many_at_once_say_it_once(server, chat) -> None:
    replies = await asyncio.gather(*(chat.complete(ASKED, WANTED) for _ in range(10)))
    assert sum(bool(reply.note) for reply in replies) == 1


@pytest.mark.parametrize("text", [KEPT, '["a?", "b?"]', f"<think>hm</think>\n```json\n{KEPT}\n```"])
async def test_the_decompose_agent_reads_either(server, chat, text: str) -> None:
    server.say((200, completion(text)))
    found = await make_llm_agents(chat).decomposer.decompose("q?")
    assert found.sub_queries == ("a?", "b?")
    assert (found.note == "") == (text == KEPT)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (KEPT, True),
        ('{"sub_queries": []}', True),
        ('{"sub_queries": [1]}', False),
        ('{"sub_queries": ["a"], "more": 1}', False),
        ('{"queries": ["a"]}', False),
        ('["a"]', False),
        ("hello", False),
        ("", False),
        (f"{KEPT} and so on", False),
    ],
)
def test_fits(text: str, kept: bool) -> None:
    assert fits(text, SUB_QUERIES) is kept


def test_fits_types() -> None:
    assert fits("true", {"type": "boolean"})
    assert not fits("true", {"type": "integer"})
    assert not fits("1", {"type": "boolean"})
    assert fits("null", {"type": "null"})
    assert not fits('"c"', {"enum": ["a", "b"]})
    assert not fits("[]", {"type": "array", "minItems": 1})
    assert fits("1", {})


async def test_a_pattern_is_sent_as_vllm_takes_it(server, chat) -> None:
    server.say(*[(200, completion("<think>hm</think><answer>x</answer>"))] * 2)
    replies = [await chat.complete(ASKED, TAGGED) for _ in range(2)]
    assert [reply.note for reply in replies] == ["", ""]
    assert [body["structured_outputs"] for body in server.bodies] == [{"regex": TAGGED_ANSWER}] * 2


async def test_a_server_that_ignores_patterns_is_noticed(server, chat) -> None:
    server.say(*[(200, completion("x"))] * 2, (200, completion(KEPT)))
    assert "ignores patterns" in (await chat.complete(ASKED, TAGGED)).note
    assert (await chat.complete(ASKED, TAGGED)).note == ""
    assert ["structured_outputs" in body for body in server.bodies] == [True, False]
    await chat.complete(ASKED, WANTED)
    assert "response_format" in server.bodies[2]  # of schemas it has said nothing yet


async def test_a_server_that_refuses_the_field_is_asked_without(server, chat) -> None:
    server.say((422, {"detail": "Unexpected fields in the request: {'structured_outputs'}"}))
    assert "refuses patterns" in (await chat.complete(ASKED, TAGGED)).note
    await chat.complete(ASKED, TAGGED)
    assert ["structured_outputs" in body for body in server.bodies] == [True, False, False]


async def test_a_refusal_without_the_field_is_not_retried(server, chat) -> None:
    server.say((400, {"error": {"message": "bad temperature"}}))
    with pytest.raises(PermanentServiceError, match="bad temperature"):
        await chat.complete(ASKED, TAGGED)
    assert len(server.bodies) == 1


def test_the_hosted_server_is_asked_for_schemas_only() -> None:
    hosted, schema, pattern = OpenAIChat("m"), constraint_of(WANTED), constraint_of(TAGGED)
    assert schema
    assert pattern
    assert (hosted._may_ask_for(schema), hosted._may_ask_for(pattern)) == (True, False)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<answer>x</answer>", True),
        ("<think>Is it <answer>y</answer>? No.</think>\n<answer>x < y</answer>", True),
        ("[THINK]a[/THINK]<answer>a\nb</answer>", True),
        ("<answer>x", False),
        ("x", False),
    ],
)
def test_the_pattern_of_answers(text: str, kept: bool) -> None:
    constraint = constraint_of(TAGGED)
    assert constraint
    assert constraint.is_satisfied_by(text) is kept


@pytest.mark.parametrize("text", ["<answer>" * 100_000, "</answer>" * 100_000, "<answer></answer>x" * 50_000])
def test_repeated_marks_are_judged_at_once(text: str) -> None:
    assert matches(text, TAGGED_ANSWER) is ("</answer>x" in text)


def test_a_pattern_with_more_to_it_counts_as_kept() -> None:
    assert matches("x", r"\d+")
    assert matches("[1]", r"\[\d\]")

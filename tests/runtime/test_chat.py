"""Conversations: follow-ups become questions of their own, in the trace and within the question's limits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import UsageError
from pyrag.llm.protocol import Message
from pyrag.runtime.answering import exchanges_of
from pyrag.runtime.chat import Chat
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.event_codec import events_of
from pyrag.trace.events import AgentFinished, Event, FollowUp, QuestionStarted
from pyrag.trace.reducer import state_of
from tests.server.conftest import ModelServer, server

__all__ = ["server"]
ALONE = "Who is Jed Hoyer?"  # which the model server has replies for
EARLIER = [Message("user", "Tell me about Jed Hoyer."), Message("assistant", "Which part?")]


def spec(server: ModelServer, alone: str = f"<question>{ALONE}</question>") -> str:
    server.replies["standalone"] = alone
    return f"openai:tiny@{server.url}"


def test_follow_ups_of_the_embedded_engine_name_their_subject() -> None:
    with PyRAG() as rag:
        chat = rag.chat()
        assert chat.ask("Who directed The Seventh Seal?").answer.text == "Ingmar Bergman"
        trace = chat.ask("Where was he born?")
        assert (trace.question, trace.said) == ("Where was Ingmar Bergman born?", "Where was he born?")
        assert (trace.answer.text, trace.warnings) == ("Uppsala", ())
        assert [turn.content for turn in chat.turns[2:]] == ["Where was he born?", "Uppsala"]
        chat.clear()
        assert chat.ask("Where was he born?").said == ""


async def test_the_agents_call_is_part_of_trace_and_cost(server: ModelServer) -> None:
    seen: list[Event] = []
    async with PyRAG(spec(server)) as rag:
        trace = await rag.aask("Who is he?", observer=seen.append, earlier=EARLIER)
    assert (trace.question, trace.said, trace.answer.text) == (ALONE, "Who is he?", "an executive")
    assert trace.roles["standalone"].requests == 1
    assert trace.usage.model_calls == len(server.bodies) == 5
    assert "Tell me about Jed Hoyer." in str(server.bodies[0])
    followed = next(event for event in seen if isinstance(event, FollowUp))
    assert followed.asked == ALONE
    assert next(event.role for event in seen if isinstance(event, AgentFinished)) == "standalone"

    saved = events_of(from_json(to_json(trace)))
    assert isinstance(saved[0], QuestionStarted)
    assert saved[0].question == "Who is he?"
    assert [event.asked for event in saved if isinstance(event, FollowUp)] == [ALONE]
    assert state_of(saved).question == ALONE


async def test_its_call_counts_against_the_limit(server: ModelServer) -> None:
    async with PyRAG(spec(server), max_calls=1) as rag:
        trace = await rag.aask("Who is he?", earlier=EARLIER)
    assert trace.error
    assert trace.error.kind == "budget"
    assert (trace.question, len(server.bodies)) == (ALONE, 1)


async def test_a_reply_out_of_form_leaves_the_question(server: ModelServer) -> None:
    async with PyRAG(spec(server, "he is")) as rag:
        trace = await rag.aask(ALONE, earlier=EARLIER)
    assert (trace.question, trace.said, trace.answer.text) == (ALONE, "", "an executive")
    assert any("asked as it is" in warning for warning in trace.warnings)


async def test_a_failing_agent_fails_the_question_and_no_turn(server: ModelServer) -> None:
    server.refuse = lambda _: (400, {"error": {"message": "odd"}})
    async with PyRAG(spec(server)) as rag:
        chat = Chat(rag.ask, rag.aask, turns=EARLIER)
        trace = await chat.aask("Who is he?")
        assert trace.error
        assert trace.error.kind == "service"
        assert chat.turns == tuple(EARLIER)
        with pytest.raises(UsageError, match="empty"):
            await chat.aask(" ")


async def test_a_kept_follow_up_replays_without_its_conversation(server: ModelServer) -> None:
    async with PyRAG(spec(server)) as rag:
        trace = await rag.aask("Who is he?", keep=True, earlier=EARLIER)
    assert next(exchange.role for exchange in exchanges_of(trace)) == "standalone"
    assert trace.question == ALONE


def fitting(server: ModelServer, window: int) -> None:
    """Have the server refuse prompts that its window, in tokens of four characters, has no room for."""

    def refuse(body: dict[str, Any]) -> tuple[int, Any] | None:
        prompt = sum(len(message["content"]) for message in body["messages"]) // 4
        if prompt + body["max_tokens"] <= window:
            return None
        words = f"This model's maximum context length is {window} tokens. Your prompt has {prompt} input tokens."
        return 400, {"error": {"message": words, "type": "BadRequestError"}}

    server.refuse = refuse


LONG = [Message(role, f"{role} says {'much ' * 700}") for _ in range(30) for role in ("user", "assistant")]  # type: ignore[arg-type]


@pytest.mark.parametrize("known", [None, 2048])
async def test_a_long_conversation_fits_a_small_window(server: ModelServer, known: int | None) -> None:
    fitting(server, 2048)
    earlier = [*LONG, *EARLIER]
    async with PyRAG(spec(server), context_tokens=known, request={"max_tokens": 256}) as rag:
        trace = await rag.aask("Who is he?", earlier=earlier)
    assert (trace.error, trace.question, trace.answer.text) == (None, ALONE, "an executive")
    assert any(re.search(r"the Standalone agent read parts of \d+ of 62 messages", one) for one in trace.warnings)
    asked = next(body for body in server.bodies if server.refuse(body) is None)
    assert "Tell me about Jed Hoyer." in str(asked), "the end of the conversation is what counts"


async def test_without_any_room_the_question_is_asked_as_it_is(server: ModelServer) -> None:
    def refuse(body: dict[str, Any]) -> tuple[int, Any] | None:
        words = "This model's maximum context length is 10 tokens."
        return (400, {"error": {"message": words}}) if "Standalone" in str(body) else None

    server.refuse = refuse
    async with PyRAG(spec(server)) as rag:
        trace = await rag.aask(ALONE, earlier=LONG)
    assert (trace.error, trace.question, trace.answer.text) == (None, ALONE, "an executive")
    assert any("window is too small for more" in warning for warning in trace.warnings)

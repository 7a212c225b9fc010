"""`structured = false`: no request holds a schema or pattern, streamed or not."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.protocol import Message, Sampling
from pyrag.llm.wrappers import UnconstrainedChat
from tests.llm.conftest import ChatServer

ASKED = (Message("user", "hello"),)
CONSTRAINED = (Sampling(schema={"type": "object"}), Sampling(pattern="a+"))


async def test_requests_hold_no_schema_and_no_pattern(server: ChatServer) -> None:
    model = UnconstrainedChat(OpenAIChat("tiny", server.url))
    for sampling in CONSTRAINED:
        await model.complete(ASKED, sampling)
        await model.stream(ASKED, sampling, lambda text: None)
    assert len(server.bodies) == 4
    assert not any({"response_format", "structured_outputs"} & body.keys() for body in server.bodies)
    assert [bool(body.get("stream")) for body in server.bodies] == [False, True, False, True]
    await model.aclose()


@pytest.mark.parametrize("structured", [True, False])
async def test_the_setting_decides_for_a_question(server: ChatServer, structured: bool) -> None:
    async with PyRAG(f"openai:tiny@{server.url}", structured=structured) as rag:
        await rag.aask("Who is Jed Hoyer?")
    assert any("response_format" in body for body in server.bodies) is structured

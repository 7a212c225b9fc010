"""What a model server refuses for good, from the request to the trace."""

from __future__ import annotations

import time

from pyrag import PyRAG
from tests.server.conftest import ModelServer, role_in

QUESTION = "Who is Jed Hoyer?"


async def test_too_long_a_prompt_is_trimmed_once_and_said(server: ModelServer) -> None:
    def refuse(body):
        if role_in(body) == "answer" and "[Doc 2]" in body["messages"][-1]["content"]:
            return 400, {"error": {"message": "too long", "code": "context_length_exceeded"}}
        return None

    server.refuse = refuse
    async with PyRAG(f"openai:tiny@{server.url}") as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error is None
    assert trace.answer.text == "an executive"
    said = trace.warnings[-1]
    assert "read 1 of 2 passages" in said
    assert server.roles == ["decompose", "plan", "answer", "answer", "answer"]  # refused, trimmed, aggregation
    assert said in trace.steps[1].rationale
    assert trace.programs[0].error == ""  # no repair prompt came of it


async def test_a_prompt_that_stays_too_long_is_a_named_error(server: ModelServer) -> None:
    said = {"error": {"message": "This model's maximum context length is 10 tokens."}}
    server.refuse = lambda body: (400, said) if role_in(body) == "answer" else None
    async with PyRAG(f"openai:tiny@{server.url}") as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert (trace.error.kind, trace.error.exit_code) == ("service", 3)
    assert "maximum context length" in trace.error.message
    assert server.roles == ["decompose", "plan", "answer", "answer"]


async def test_nothing_else_asks_again_after_a_400(server: ModelServer) -> None:
    server.refuse = lambda body: (400, {"error": {"message": "odd"}}) if role_in(body) == "answer" else None
    async with PyRAG(f"openai:tiny@{server.url}") as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert server.roles == ["decompose", "plan", "answer"]


async def test_a_passed_deadline_says_how_fast_the_model_writes(server: ModelServer) -> None:
    def refuse(body):
        time.sleep(3.5 if role_in(body) == "plan" else 0.1)  # in the server's thread
        return

    server.refuse = refuse
    async with PyRAG(f"openai:tiny@{server.url}", deadline=3.0, stream=False) as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert trace.error.kind == "deadline"
    assert "raise --deadline or look at that service; openai:tiny@http" in trace.error.message
    assert "tokens a second" in trace.error.message

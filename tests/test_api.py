"""The Python interface over the embedded engine and the bundled corpus."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

import pyrag.runtime.question_request
from pyrag import Answered, Event, Passage, PyRAG, StepFinished
from pyrag.errors import ConfigError, UsageError
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.codec import from_json, to_json

QUESTION = "Who is older, Jed Hoyer or John William Henry II?"


def test_ask_without_a_loop_twice_and_after_close() -> None:
    rag = PyRAG()
    assert rag.ask(QUESTION).answer.text == rag.ask(QUESTION).answer.text == "John William Henry II"
    rag.close()
    assert rag.ask(QUESTION).answer.known
    rag.close()


def test_a_pyrag_that_is_dropped_cleans_up() -> None:
    PyRAG().ask(QUESTION)
    gc.collect()


async def test_ask_works_where_a_loop_runs() -> None:
    async with PyRAG() as rag:
        assert rag.ask(QUESTION).answer.text == (await rag.aask(QUESTION)).answer.text == "John William Henry II"


async def test_a_batch_keeps_its_order_around_a_bad_question() -> None:
    async with PyRAG() as rag:
        asked = [QUESTION, " ", "Who directed Gravity?"]
        traces = [trace async for trace in rag.aask_many(asked, concurrency=2)]
    assert [trace.question for trace in traces] == asked
    assert [trace.error is None for trace in traces] == [True, False, True]


async def test_leaving_a_batch_early_cancels_the_rest() -> None:
    async with PyRAG() as rag:
        traces = rag.aask_many([QUESTION] * 20, concurrency=4)
        async for trace in traces:
            assert trace.answer.known
            break
        await traces.aclose()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_retriever_of_the_users_own() -> None:
    passages = [Passage("1", "Lantern Street", "Lantern Street is a 1987 film directed by Ada Quill.")]
    async with PyRAG(retriever=InMemoryRetriever(passages)) as rag:
        trace = await rag.aask("Who directed Lantern Street?")
    assert trace.answer.text == "Ada Quill"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ValueError("no disk"), r"the retriever mine failed \(ValueError: no disk\)"),
        (None, "the retriever mine returned None: it must return a list"),
        (["text"], r"the retriever mine returned \['text'\]"),
    ],
)
async def test_a_retriever_breaking_the_protocol_fails_the_question(found: Any, said: str) -> None:
    class Mine(InMemoryRetriever):
        name = "mine"

        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            if isinstance(found, Exception):
                raise found
            return found  # type: ignore[no-any-return]

    async with PyRAG(retriever=Mine([])) as rag:
        error = (await rag.aask(QUESTION)).error
    assert error is not None
    assert error.kind == "service"
    assert re.search(said, error.message)


async def test_an_internal_error_ends_one_question_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    real = pyrag.runtime.question_request.get_method

    def method(name: str) -> Any:
        async def answer(episode: Any, settings: Any) -> Any:
            if "Gravity" in episode.question:
                raise KeyError("oops")
            return await real(name).answer(episode, settings)

        return replace(real(name), answer=answer)

    monkeypatch.setattr(pyrag.runtime.question_request, "get_method", method)
    async with PyRAG() as rag:
        traces = [trace async for trace in rag.aask_many([QUESTION, "Who directed Gravity?", QUESTION])]
    assert [trace.answer.known for trace in traces] == [True, False, True]
    assert traces[1].error is not None
    assert "KeyError: 'oops'" in traces[1].error.message


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (None, "must be a text, not NoneType"),
        (b"Who?", "must be a text, not bytes"),
        (["Who?"], "must be a text, not list"),
        (" \n", "the question is empty"),
        ("x" * 1_000_000, r"too long: it has 1,000,000 bytes, and at most 6,144"),
    ],
)
def test_what_is_no_question_is_refused(question: Any, said: str) -> None:
    with PyRAG() as rag, pytest.raises(UsageError, match=said):
        rag.ask(question)


async def test_what_is_no_question_fails_alone_in_a_batch() -> None:
    asked: list[Any] = [QUESTION, None, "x" * 10_000, "Who directed Gravity?"]
    async with PyRAG() as rag:
        traces = [trace async for trace in rag.aask_many(asked)]
    assert [trace.answer.known for trace in traces] == [True, False, False, True]
    assert [trace.error and trace.error.kind for trace in traces] == [None, "usage", "usage", None]


@pytest.mark.parametrize(
    ("questions", "more", "said"),
    [
        ("Who?", {}, "one text"),
        (7, {}, "not int"),
        ([QUESTION], {"concurrency": 0}, "above 0, not 0"),
        ([QUESTION], {"concurrency": "3"}, "above 0, not '3'"),
        ([QUESTION], {"observer": None}, "an observer is a function that takes an event, not NoneType"),
    ],
)
async def test_a_batch_says_what_it_takes(questions: Any, more: dict[str, Any], said: str) -> None:
    async with PyRAG() as rag:
        with pytest.raises(UsageError, match=said):
            await anext(rag.aask_many(questions, **more))


async def test_questions_are_answered_before_the_next_ones_come() -> None:
    answered = asyncio.Event()

    async def questions() -> AsyncIterator[str]:
        yield QUESTION
        await answered.wait()
        yield "Who directed Gravity?"

    found = []
    async with PyRAG() as rag:
        async for trace in rag.aask_many(questions()):
            found.append(trace.question)
            answered.set()
    assert found == [QUESTION, "Who directed Gravity?"]


async def test_events_of_a_batch_name_their_question() -> None:
    events: list[Event] = []
    asked = ["Who directed Gravity?", QUESTION, QUESTION]
    async with PyRAG() as rag:
        traces = [trace async for trace in rag.aask_many(asked, observer=events.append)]
    answers = {event.number: (event.question, event.answer) for event in events if isinstance(event, Answered)}
    assert answers == {number: (trace.question, trace.answer) for number, trace in enumerate(traces)}
    steps = [event.number for event in events if isinstance(event, StepFinished)]
    assert {number: steps.count(number) for number in range(3)} == {
        number: len(trace.steps) for number, trace in enumerate(traces)
    }


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="did you mean 'topk'"):
        PyRAG(top_k=3)


def test_a_trace_survives_its_file() -> None:
    with PyRAG() as rag:
        trace = rag.ask(QUESTION, keep=True)
    again = from_json(to_json(trace))
    assert to_json(again) == to_json(trace)
    assert (again.steps, again.answer, again.passages) == (trace.steps, trace.answer, trace.passages)

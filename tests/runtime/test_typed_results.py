"""Answers of a requested type through the Python class: values, one repair, unknowns, traces and replays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from pyrag import PyRAG
from pyrag.cli.traces import replay_trace
from pyrag.errors import UsageError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Passage

BORN = "When was Ingmar Bergman born?"
DIRECTOR = "Who directed The Seventh Seal?"
PASSAGES = [
    Passage("alpha", "Alpha (film)", "Alpha is a film of 1985 that was directed by Ada Berg."),
    Passage("ada", "Ada Berg", "Ada Berg (born 1 May 1950) is a director of films."),
]
QUESTION = "Who directed Alpha, and when was she born?"


@dataclass
class Person:
    name: str
    born: date


class Birthday(BaseModel):
    born: date


@pytest.fixture(scope="module")
def rag() -> Iterator[PyRAG]:
    with PyRAG() as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "returns", "value"),
    [
        ("In what year was Ingmar Bergman born?", int, 1918),
        ("In what year was Ingmar Bergman born?", "number", 1918),
        (BORN, date, date(1918, 7, 14)),
        (BORN, Birthday, Birthday(born=date(1918, 7, 14))),
        (DIRECTOR, str, "Ingmar Bergman"),
        (DIRECTOR, list[str], ["Ingmar Bergman"]),
        ("Is Jed Hoyer older than John William Henry II?", bool, False),
        ("Who directed Foobar Xyzzy?", int, None),
    ],
)
def test_plain_answers_need_no_model(rag: PyRAG, question: str, returns: Any, value: Any) -> None:
    trace = rag.ask(question, returns=returns)
    assert (trace.value, trace.error, trace.answer.known) == (value, None, value is not None)
    assert type(trace.value) is type(value)
    read = from_json(to_json(trace))
    assert read.value == json.loads(to_json(trace))["value"]
    assert read.returns is not None


def test_a_text_that_does_not_fit_is_unknown(rag: PyRAG) -> None:
    trace = rag.ask(DIRECTOR, returns=int)
    assert trace.error is not None
    assert (trace.value, trace.answer.text, trace.answer.known) == (None, "unknown", False)
    assert (trace.error.kind, trace.error.exit_code, trace.error.cause) == ("program", 1, "returns")
    assert "'Ingmar Bergman'" in trace.error.message
    trace = rag.ask(DIRECTOR, returns=Person)
    assert trace.error is not None
    assert (trace.value, trace.error.exit_code, trace.steps) == (None, 2, ())
    assert "cannot fill several fields" in trace.error.message


def test_types_are_checked_before_anything_runs(rag: PyRAG) -> None:
    for ask in (rag.ask, rag.run):
        with pytest.raises(UsageError, match="returns must be"):
            ask(DIRECTOR, returns="decimal")


def test_a_program_of_the_caller_is_held_to_the_type(rag: PyRAG) -> None:
    source = 'final_answer = {"name": "Ada", "born": answer("When was Jed Hoyer born?", retrieve("Jed Hoyer"))}'
    assert rag.run(source, returns=Person).value == Person("Ada", date(1973, 12, 7))
    trace = rag.run('final_answer = {"name": "Ada"}', returns=Person)
    assert trace.error is not None
    assert (trace.value, trace.error.cause, trace.answer.known) == (None, "returns", False)
    assert "lacks 'born'" in trace.error.message


SUB = ("Who directed Alpha?", "When was Ada Berg born?")
HEAD = "".join(f"d{n} = retrieve({query!r})\na{n} = answer({query!r}, d{n})\n" for n, query in enumerate(SUB))
FITTING = HEAD + 'final_answer = {"name": a0, "born": a1}'
LACKING = HEAD + 'final_answer = {"name": a0, "birth": a1}'


def scripted(*programs: str) -> ScriptedChat:
    return ScriptedChat(
        {
            "decompose": json.dumps(SUB),
            "plan": [f"```python\n{program}\n```" for program in programs],
            "answer": [
                {"reply": "<answer>1 May 1950</answer> [2]", "match": "QUESTION|When was Ada", "repeat": True},
                {"reply": "<answer>Ada Berg</answer> [1]", "repeat": True},
            ],
        }
    )


def asked(model: ScriptedChat, returns: Any = Person, **more: Any) -> Any:
    with PyRAG(llm=model, retriever=InMemoryRetriever(PASSAGES), stream=False) as rag:
        return rag.ask(QUESTION, returns=returns, **more)


def prompts_of(model: ScriptedChat, word: str) -> list[str]:
    texts = ["\n".join(message.content for message in messages) for messages in model.calls]
    return [text for text in texts if word in text]


def test_the_planner_is_told_the_type() -> None:
    model = scripted(FITTING)
    trace = asked(model)
    assert trace.error is None, trace.error
    assert trace.value == Person("Ada Berg", date(1950, 5, 1))
    assert trace.answer.text == '{"name": "Ada Berg", "born": "1950-05-01"}'
    assert set(trace.item_citations) == {"name", "born"}
    assert len(prompts_of(model, '"born": {"type": "string", "format": "date"}')) == 1


def test_one_repair_says_what_does_not_fit() -> None:
    model = scripted(LACKING, FITTING)
    trace = asked(model)
    assert (trace.value, trace.error, trace.repairs) == (Person("Ada Berg", date(1950, 5, 1)), None, 1)
    assert len(prompts_of(model, "final_answer lacks 'born'. The value was")) == 1
    model = scripted(LACKING, LACKING + "\n", LACKING.replace("birth", "day"), FITTING)
    trace = asked(model)
    assert (trace.value, trace.answer.known, trace.error.cause) == (None, False, "returns")
    assert "lacks 'born'" in trace.error.message
    assert len(prompts_of(model, "You are the Plan Agent")) == 2


def test_without_a_type_prompts_are_unchanged() -> None:
    model = scripted(FITTING)
    asked(model, returns=None)
    assert not prompts_of(model, "The caller needs final_answer")


def test_programs_may_ask_for_values() -> None:
    source = 'final_answer = answer("When was Ada Berg born?", retrieve("Ada Berg"), returns="date")'
    with PyRAG(llm=scripted(source), retriever=InMemoryRetriever(PASSAGES), plan_checks=False) as rag:
        assert rag.ask(QUESTION, returns=date).value == date(1950, 5, 1)


def test_a_saved_trace_replays_with_its_type(tmp_path: Path) -> None:
    trace = asked(scripted(LACKING, FITTING), keep=True)
    saved = from_json(to_json(trace))
    assert saved.value == {"name": "Ada Berg", "born": "1950-05-01"}
    assert asyncio.run(replay_trace(saved)) == []


def test_methods_without_planner_give_values_too() -> None:
    model = ScriptedChat({"answer": "<answer>1 May 1950</answer> [1]"})
    with PyRAG(llm=model, retriever=InMemoryRetriever(PASSAGES), method="vanilla") as rag:
        assert rag.ask("When was Ada Berg born?", returns=date).value == date(1950, 5, 1)
        trace = rag.ask("Who is Ada Berg?", returns=Person)
    assert trace.error is not None
    assert "the method vanilla answers with one short text" in trace.error.message


async def test_many_questions_share_a_type(rag: PyRAG) -> None:
    traces = [trace async for trace in rag.aask_many([BORN, "", DIRECTOR], returns=date)]
    assert [trace.value for trace in traces] == [date(1918, 7, 14), None, None]
    assert [trace.error is None for trace in traces] == [True, False, False]

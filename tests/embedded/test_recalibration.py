"""Answers of the shipped reader whose confidence the recalibration changes."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Reading
from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.neural.recalibration import RESTATED, recalibrated
from pyrag.testing import InMemoryRetriever
from pyrag.trace.model import Passage


@pytest.mark.parametrize(
    ("question", "text", "is_weak"),
    [
        ("Where was Ada Berg born?", "Ada Berg was born in Uppsala.", False),
        ("Who founded the mill of Alpha?", "The mill of Alpha was founded by Ada Berg.", False),
        ("What is Peter's occupation?", "Peter was a nationalist politician.", True),
    ],
)
def test_plain_statement_about_a_full_name_is_sure(question: str, text: str, is_weak: bool) -> None:
    with PyRAG(llm="embedded", retriever=InMemoryRetriever([Passage("1", "note", text)])) as rag:
        trace = rag.ask(question)
    assert trace.answer.text.lower() in text.lower()
    assert trace.weak is is_weak


NOTES = [
    Passage("1", "note", "The mill of Alpha was founded by Ada Berg."),
    Passage("2", "note", "Ada Berg was born in Uppsala."),
    Passage("3", "note", "The mayor of Uppsala is Nils Roth."),
    Passage("4", "note", "Nils Roth was born in 1950."),
]


@pytest.mark.parametrize(
    ("question", "answer", "steps"),
    [
        ("Where was the founder of the mill of Alpha born?", "Uppsala", 2),
        ("Who is the mayor of the city where the founder of the mill of Alpha was born?", "Nils Roth", 3),
        ("When was the mayor of the city where the founder of the mill of Alpha was born born?", "1950", 4),
    ],
)
def test_several_steps_over_plain_notes_are_sure(question: str, answer: str, steps: int) -> None:
    with PyRAG(llm="embedded", retriever=InMemoryRetriever(NOTES)) as rag:
        trace = rag.ask(question)
    assert trace.answer.text == answer
    assert trace.answer.confidence == round(RESTATED**steps, 4)
    assert not trace.weak


@pytest.mark.parametrize(
    ("text", "is_restated"),
    [
        ("The deputy of the mayor of Uppsala is Nils Roth.", True),
        ("The deputy is Nils Roth.", False),
        ("Nils Roth, who was born in 1950 and studied law, is the deputy of the mayor of Uppsala.", False),
    ],
)
def test_only_short_sentences_with_all_words_restate_a_question(text: str, is_restated: bool) -> None:
    reading = Reading("Nils Roth", True, (0,), "found", 0.6)
    question = analyse("Who is the deputy of the mayor of Uppsala?")
    sure = recalibrated(reading, question, "network", [Passage("1", "note", text)])
    assert sure.confidence == (RESTATED if is_restated else 0.6)

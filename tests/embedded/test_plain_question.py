"""A question is read alike however it is typed."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.embedded.plain_question import plain_question

PLAIN = "Where was Lodestar held?"


@pytest.mark.parametrize(
    "typed",
    [
        PLAIN,
        "Where was Lodestar held",
        "where was Lodestar held ?  ",
        "  Where   was\nLodestar held??",
        "Please, where was Lodestar held?",
        "where was Lodestar held, please?",
        "Where was Lodestar held? Thank you!",
        "Could you please tell me where was Lodestar held?",
        "Hello, do you know where was Lodestar held?",
    ],
)
def test_every_spelling_is_the_same_question(typed: str) -> None:
    assert plain_question(typed) == PLAIN


@pytest.mark.parametrize("text", ["Alpha >> director", "Given: a is 1. Answer the question: is it?", "", "?"])
def test_other_forms_stay_as_they_are(text: str) -> None:
    assert plain_question(text) == text


def test_an_indirect_question_becomes_a_claim() -> None:
    assert plain_question("do you know whether the plan was approved") == "Is it true that the plan was approved?"


async def test_a_question_mark_changes_no_answer() -> None:
    questions = ["Where was Toshiro Mifune born?", "Who directed The Seventh Seal?", "When did Ingmar Bergman die?"]
    async with PyRAG() as rag:
        for question in questions:
            typed = (question, question.rstrip("?"), f"please {question[0].lower()}{question[1:]} ")
            answers = [(await rag.aask(form)).answer for form in typed]
            assert answers[0].known
            assert len({(answer.text, answer.confidence) for answer in answers}) == 1

"""Descriptions in the place of names: one more search, steps that still fit, and programs that still run."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag_rl.data.decompositions.nesting import Nesting
from pyrag_rl.data.decompositions.program_checks import ProgramCheck
from pyrag_rl.data.decompositions.programs import program_of
from pyrag_rl.data.decompositions.source import GoldQuestion, GoldStep
from pyrag_rl.data.decompositions.wording import asked_of

BRIDGE = GoldQuestion(
    id="b", source="toy", question="Where was the spouse of Ann Lee born?", answers=("Kyiv",), hops=2, type="2hop",
    sub_questions=(
        GoldStep(question="Ann Lee >> spouse", answer="Bo Ray"),
        GoldStep(question="Where was #1 born?", answer="Kyiv", depends_on=(1,)),
    ),
    supporting=("p1", "p2"),
)  # fmt: skip
FILM = GoldQuestion(
    id="f", source="toy", question="When was the director of film Dracula (1931 film) born?", answers=("1880",), hops=2,
    sub_questions=(
        GoldStep(question="Who directed Dracula?", answer="Tod Browning", triple=("Dracula", "director", "")),
        GoldStep(question="When was #1 born?", answer="1880", depends_on=(1,)),
    ),
)  # fmt: skip

OTHERS = replace(
    BRIDGE, sub_questions=tuple(
        GoldStep(question=f"{name} >> {relation}", answer="x")
        for name, relation in (("Cy Poe", "father"), ("Help!", "performer"), ("Emma", "author"), ("Ford", "founded by"))
    ),
)  # fmt: skip


def nested(question: GoldQuestion, seed: int = 0) -> GoldQuestion:
    made = Nesting([BRIDGE, FILM, OTHERS], seed).nested(question)
    assert made is not None
    return made


def test_a_description_stands_for_the_name() -> None:
    made = nested(BRIDGE)
    described = made.question.removeprefix("Where was the spouse of ").removesuffix(" born?")
    assert described != "Ann Lee"
    name = made.sub_questions[0].triple[0]
    assert name in {"Dracula", "Cy Poe", "Help!", "Emma", "Ford"}
    assert name in described
    assert name in made.sub_questions[0].question
    assert [asked_of(step) for step in made.sub_questions][1:] == ["What is the spouse of #1?", "Where was #2 born?"]
    assert made.sub_questions[0].gold == "Ann Lee"
    assert [step.depends_on for step in made.sub_questions] == [(), (1,), (2,)]
    assert (made.hops, made.kind, made.answers) == (3, "3", ("Kyiv",))


def test_words_that_say_what_a_name_is_go_with_it() -> None:
    made = nested(FILM)
    assert re.fullmatch(
        r"When was the director of the film (starring (Ann Lee|Cy Poe)|that (Ann Lee|Cy Poe) starred in) born\?",
        made.question,
    )
    assert asked_of(made.sub_questions[1]) == "Who directed #1?"


@given(seed=st.integers(0, 200))
def test_steps_of_any_nested_question_depend_on_earlier_ones(seed: int) -> None:
    once = nested(BRIDGE, seed)
    assert "the the" not in once.question
    assert all(max(step.depends_on, default=0) <= number for number, step in enumerate(once.sub_questions))


@pytest.mark.parametrize(
    "question",
    [
        replace(BRIDGE, question="Where was her spouse born?"),
        replace(BRIDGE, form="qdmr"),
        replace(BRIDGE, sub_questions=(GoldStep(question="Who is it?", answer="x"), *BRIDGE.sub_questions[1:])),
        replace(BRIDGE, sub_questions=(*BRIDGE.sub_questions, GoldStep(question="Given #1", answer="x", op="compare"))),
    ],
    ids=["other words", "noun phrases", "no name", "comparison"],
)
def test_other_questions_stay_as_they_are(question: GoldQuestion) -> None:
    assert Nesting([BRIDGE, FILM, OTHERS], 0).nested(question) is None


async def test_the_program_of_a_nested_question_runs() -> None:
    check = ProgramCheck({})
    try:
        for one in (BRIDGE, FILM):
            made = nested(one)
            program = program_of(made.question, made.sub_questions)
            assert await check.fault(made, program) == ""
            assert len(program.questions) == 3
    finally:
        await check.aclose()

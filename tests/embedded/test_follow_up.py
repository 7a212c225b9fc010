"""Follow-ups of the embedded engine: names for pronouns, by rules."""

from __future__ import annotations

import asyncio

import pytest

from pyrag.embedded.follow_up import EmbeddedFollowUp
from pyrag.llm.protocol import Message

FILM = ("Who directed The Seventh Seal?", "Ingmar Bergman")
BORN = ("Where was he born?", "Uppsala")


def resolved(question: str, *turns: tuple[str, str]) -> tuple[str, str]:
    said = [Message(role, text) for turn in turns for role, text in zip(("user", "assistant"), turn, strict=True)]
    found = asyncio.run(EmbeddedFollowUp().standalone(said, question))
    return found.question, found.note


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("Where was he born?", "Where was Ingmar Bergman born?"),
        ("When was it released?", "When was The Seventh Seal released?"),
        ("And Wild Strawberries?", "Who directed Wild Strawberries?"),
        ("What about Dracula?", "Who directed Dracula?"),
        ("Who was his wife?", "Who was Ingmar Bergman's wife?"),
        ("When did she marry her?", "When did Ingmar Bergman marry Ingmar Bergman?"),
        ("Who wrote its script?", "Who wrote The Seventh Seal's script?"),
        ("Who wrote Dracula?", "Who wrote Dracula?"),
    ],
)
def test_pronouns_become_names(question: str, alone: str) -> None:
    assert resolved(question, FILM) == (alone, "")


def test_names_are_carried_through_several_turns() -> None:
    assert resolved("When did he die?", FILM, BORN) == ("When did Ingmar Bergman die?", "")
    assert resolved("Which river flows there?", FILM, BORN) == ("Which river flows in Uppsala?", "")
    assert resolved("How old is that city?", FILM, BORN) == ("How old is Uppsala?", "")
    marked = ("Where was he born?", "Uppsala [1] [2]")
    assert resolved("Which river flows there?", FILM, marked) == ("Which river flows in Uppsala?", "")


def test_a_conversation_made_to_grow_stays_small() -> None:
    turn = ("Where is he and it and her? " * 3_000, "Ann Bell " * 9_000)
    for question in ("Was he born there?", "And " + "X" * 4_000 + "?", "What about " + "it. " * 1_500 + "?"):
        assert len(resolved(question, *[turn] * 200)[0]) < 400_000
        assert len(resolved(question, ("Who is A?" * 500, "A"), *[("And A A?", "B")] * 30)[0]) < 400_000


def test_an_unknown_answer_names_nobody() -> None:
    question, note = resolved("Where was he born?", ("Who made the film?", "unknown"))
    assert question == "Where was he born?"
    assert "nothing before it says what 'he' stands for" in note
    assert resolved("And Dracula?")[1]


def test_questions_of_their_own_stay() -> None:
    for question in ("Is there a zoo in Uppsala?", "And when was Uppsala founded?", "Who is Jed Hoyer?"):
        assert resolved(question, FILM) == (question, "")

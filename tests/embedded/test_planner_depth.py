"""A question keeps as many steps as its descriptions have: grammars of our own make them, the planner counts them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyrag.embedded.planner.goals import goals_of
from pyrag.embedded.planner.planner import note_of, parse
from pyrag.embedded.planner.program_text import sub_queries, write_program
from pyrag.episode.plan_checks import check_plan
from pyrag_helpers import HELPERS

NAMES = {
    "person": ("Ada Quill", "Bo Lind"),
    "place": ("Ashton", "Norland"),
    "group": ("Kell Motors", "the Ashton Foxes"),
    "work": ("Copper Moon", "The Glass Harbour"),
}
# What a description gives, and what of
DESCRIPTIONS = {
    "person": {
        "the spouse of {}": "person", "the father of {}": "person", "the director of {}": "work",
        "the person who wrote {}": "work", "the mayor of {}": "place", "the founder of {}": "group",
        "the woman who founded {}": "group", "the actor who starred in {}": "work", "the captain of {}": "group",
    },
    "place": {
        "the city where {} was born": "person", "the birthplace of {}": "person",
        "the country {} is a citizen of": "person", "the country that contains {}": "place",
        "the state where {} is located": "place", "the capital of {}": "place", "the county containing {}": "place",
        "the country bordering {}": "place", "the city where {} is headquartered": "group",
        "the river that flows through {}": "place", "the country whose capital is {}": "place",
    },
    "group": {
        "the university attended by {}": "person", "the university that {} attended": "person",
        "the team {} plays for": "person", "the company founded by {}": "person", "the band that recorded {}": "work",
        "the company that published {}": "work", "the club based in {}": "place",
    },
    "work": {
        "the film directed by {}": "person", "the book that {} wrote": "person", "the album released by {}": "group",
        "the film starring {}": "person", "the novel on which {} is based": "work",
    },
}  # fmt: skip
QUESTIONS = {
    "place": ("What is the population of {}?", "Which river flows through {}?", "How many people live in {}?"),
    "person": ("When was {} born?", "What did {} win in 1990?", "Where is {} buried?"),
    "group": ("When was {} founded?", "How many students does {} have?", "What is the motto of {}?"),
    "work": ("When was {} released?", "What genre is {}?"),
}
JOINED = {
    "How many cities in {} were visited by {}?": ("place", "person"),
    "What did {} say about {}?": ("person", "work"),
    "How many times did {} beat {}?": ("group", "group"),
    "In {}, how many fans does {} have?": ("place", "group"),
}


@st.composite
def described(draw: st.DrawFn, kind: str, steps: int) -> str:
    """A name that takes so many steps to find."""
    if steps == 0:
        return draw(st.sampled_from(NAMES[kind]))
    template, of = draw(st.sampled_from(sorted(DESCRIPTIONS[kind].items())))
    return template.format(draw(described(of, steps - 1)))


@st.composite
def questions(draw: st.DrawFn, steps: int) -> str:
    kind = draw(st.sampled_from(sorted(QUESTIONS)))
    return draw(st.sampled_from(QUESTIONS[kind])).format(draw(described(kind, steps)))


def planned(question: str) -> int:
    return len(sub_queries(question, parse(question)))


@pytest.mark.parametrize("steps", range(4))
@given(data=st.data())
def test_no_hop_of_a_chain_is_cut_or_added(steps: int, data: st.DataObject) -> None:
    question = data.draw(questions(steps))
    meaning = parse(question)
    assert len(sub_queries(question, meaning)) == steps + 1
    assert len(goals_of(question, meaning)) == steps + 1
    assert not check_plan(
        write_program(question, meaning), sub_queries(question, meaning), ("retrieve", "answer"), tuple(HELPERS)
    )


@given(data=st.data())
def test_two_branches_are_joined_by_the_question(data: st.DataObject) -> None:
    template, (first, second) = data.draw(st.sampled_from(sorted(JOINED.items())))
    steps = data.draw(st.sampled_from(((1, 1), (1, 0), (0, 1))))
    one, other = data.draw(described(first, steps[0])), data.draw(described(second, steps[1]))
    assume(one != other)  # the same thing is asked for once
    question = template.format(one, other)
    assert planned(question) == 1 + sum(steps)


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Norland?",
        "Who won the Kell Prize in 1964?",
        "When was Ada Quill born?",
        "Where are the headquarters of Kell Motors?",
        "What is the name of the book written by Ada Quill about Norland?",
        "Who was the actor who played Bo Lind?",
        "What percentage of the population of Norland speaks Danish?",
        "When was the treaty signed in Ashton?",
        "How do the engines used by Kell Motors differ from those used by its rivals?",
        "Which of these is a fruit: apple, carrot or onion?",
        "What do you call a person who studies birds?",
        "Why does the Charter state that treaties must be registered in Ashton?",
        "Who said that cranes travelled from Norland to Ashton?",
        "What artist released the best selling album of the 1970s?",
        "Is it longer than a week?",
    ],
)
def test_a_question_about_one_thing_is_not_taken_apart(question: str) -> None:
    assert planned(question) == 1


@pytest.mark.parametrize(
    ("question", "sure"),
    [
        ("What do pandas eat?", False),
        ("What is the capital of Norland?", True),
        ("When was the club based in the birthplace of Ada Quill founded?", True),
    ],
)
def test_a_fallback_says_so_and_a_reading_does_not(question: str, sure: bool) -> None:
    assert ("one step" in note_of(question, parse(question))) is not sure

"""Comparisons with "than" and "before": both values are looked up and compared, in any unit."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.embedded.planner.planner import read_question
from pyrag.embedded.planner.program_text import write_program
from pyrag.embedded.reader.reader import read
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage

THINGS = (
    Passage("1", "Zephyr 200", "The Zephyr 200 is a fan. It weighs 2.4 kg, costs 89 dollars and was released in 2021."),
    Passage("2", "Zephyr 300", "The Zephyr 300 is a fan. It weighs 900 g, costs 120 dollars and was released in 2023."),
    Passage("3", "Brook House", "Brook House is a hotel with 40 rooms. It is quieter than Hill House."),
    Passage("4", "Hill House", "Hill House is a hotel with 64 rooms."),
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Is the Zephyr 200 heavier than the Zephyr 300?", "Is the Zephyr 300 heavier than the Zephyr 200?"),
        ("Is the Zephyr 300 lighter than the Zephyr 200?", "Is the Zephyr 200 lighter than the Zephyr 300?"),
        ("Does the Zephyr 200 weigh more than the Zephyr 300?", "Does the Zephyr 200 weigh less than the Zephyr 300?"),
        ("is the Zephyr 200 cheaper than the Zephyr 300", "is the Zephyr 300 cheaper than the Zephyr 200"),
        ("Was the Zephyr 200 released before the Zephyr 300?", "Was the Zephyr 300 released before the Zephyr 200?"),
        ("Does Hill House have more rooms than Brook House?", "Does Brook House have more rooms than Hill House?"),
        ("Is Hill House louder than Brook House?", "Is Brook House louder than Hill House?"),
    ],
)
async def test_a_comparison_and_its_reverse_differ(first: str, second: str) -> None:
    async with PyRAG(retriever=InMemoryRetriever(THINGS)) as rag:
        assert [(await rag.aask(question)).answer.text for question in (first, second)] == ["yes", "no"]


def test_two_values_are_looked_up() -> None:
    question = "Is the A heavier than the B?"
    program = write_program(question, read_question(question))
    assert 'answer("How heavy is the A?"' in program
    assert 'answer("How heavy is the B?"' in program
    assert "parse_quantity(heavy_1) > parse_quantity(heavy_2)" in program


def test_the_age_of_a_thing_counts_from_its_founding() -> None:
    question = "Was the Kell Bridge older than the Otter Tower?"
    program = write_program(question, read_question(question))
    assert 'answer("When was the Kell Bridge founded?"' in program
    assert 'answer("When was the Otter Tower founded?"' in program
    assert "parse_date(founding_date_1) < parse_date(founding_date_2)" in program


def test_the_age_of_people_counts_from_their_birth() -> None:
    question = "Is the painter Ada Lind younger than Ben Ortiz?"
    assert "When was Ada Lind born?" in write_program(question, read_question(question))


@pytest.mark.parametrize(
    "question",
    [
        "Is the tower higher than 80 metres?",
        "Does the club have more than forty members?",
        "Was Ada Lind born before 1950?",
        "Was the hall built after 3 May 1912?",
        "Was the fee higher than usual?",
        "Was the plan for a new hall put off?",
    ],
)
def test_limits_and_plain_statements_are_asked_in_one_step(question: str) -> None:
    assert write_program(question, read_question(question)).count("answer(") == 1


MEASURED = (
    Passage("1", "Bell Alma", "The bell Alma weighs 3 tonnes."),
    Passage("2", "Bell Nora", "The bell Nora weighs 1,150 kg."),
    Passage("3", "Pier Vik", "The Vik pier is 1,900 feet long."),
    Passage("4", "Pier Lund", "The Lund pier is 720 m long."),
    Passage("5", "Ring Ada", "The ring Ada costs 89 dollars."),
    Passage("6", "Ring Eva", "The ring Eva costs 70 euros."),
    Passage("7", "Opera Sol", "The opera Sol runs for 3 hours."),
    Passage("8", "Opera Luna", "The opera Luna runs for 110 minutes."),
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which bell is heavier, the bell Alma or the bell Nora?", "Alma"),
        ("Which pier is longer, the Vik pier or the Lund pier?", "Lund"),
        ("Which opera is longer, Sol or Luna?", "Sol"),
        ("Which ring is cheaper, the ring Ada or the ring Eva?", "unknown"),
        ("Is the ring Ada cheaper than the ring Eva?", "unknown"),
    ],
)
async def test_measures_in_different_units_are_never_mixed_up(question: str, answer: str) -> None:
    async with PyRAG(retriever=InMemoryRetriever(MEASURED)) as rag:
        assert answer in (await rag.aask(question)).answer.text


@pytest.mark.parametrize(
    ("question", "winner"),
    [
        ("Which boat draws less water, Kestrel or Petrel?", "Petrel"),
        ("Which firm raised more money, Kiln or Loomly?", "Kiln"),
        ("Which firm has more people, Kiln or Loomly?", "Kiln"),
        ("Which firm has more tables, Kiln or Loomly?", ""),  # neither text says it
        ("Which hall seats more people, Bay or Aspen?", "Bay"),
    ],
)
def test_only_the_quantity_of_the_question_is_compared(question: str, winner: str) -> None:
    texts = {
        "Bay": "The hall Bay seats 513 people, is 5 m high and cost 80 euros.",
        "Aspen": "The hall Aspen seats 96 people, is 9 m high and cost 120 euros.",
        "Kestrel": "Kestrel is 9.2 metres long. She draws 1.6 metres.",
        "Petrel": "Petrel is 31 feet long. She draws 1.4 metres.",
        "Kiln": "Kiln was founded in 2017. Kiln raised 2.4 million dollars in 2019. It has 18 people.",
        "Loomly": "Loomly was founded in 2020. Loomly raised 900,000 dollars in 2021. It has 7 people.",
    }
    passages = [Passage(name, name, text) for name, text in texts.items()]
    reading = read(question, passages)
    assert reading.text == winner if winner else (reading.confidence or 0) < 0.5

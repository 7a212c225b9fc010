"""Answers that fall short of their question are weak: one operand, one name for all, another unit."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Reading
from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.belief import FALLS_SHORT, believable
from pyrag.embedded.reader.checks.shortfall import shortfall
from pyrag.embedded.reader.rows import narrowed
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage

NOTES = """The mill Orra has 64 sacks. The mill Tolv has 51 sacks.
The Nor canal is 1.4 km long. It was opened in 1902.
Plan Auk is led by Siv Dahl. It is finished. Plan Bun is led by Per Aune."""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many sacks do the mills Orra and Tolv have together?", "64"),
        ("How many sacks do Orra and Tolv have?", "64"),
        ("What is the total number of sacks?", "51"),
        ("Altogether, how many sacks are there on the two mills?", "64"),
        ("What is the sum of the sacks of Orra and Tolv?", "64"),
        ("How many sacks do we have?", "64"),
        ("What is the total length of the canal and the mill?", "1.4 km"),
        ("How many sacks does the mill Orra have?", "64 sacks. The mill Tolv has 51"),
        ("How long is the Nor canal?", "1.4 km long and 12 m"),
        ("How many more sacks does Orra have than Tolv?", "64"),
        ("By how many sacks is Orra ahead of Tolv?", "64"),
        ("What is the difference between the sacks of Orra and Tolv?", "64"),
        ("How much longer is the Nor canal than the Sor canal?", "1.4 km"),
        ("What is the average number of sacks?", "64"),
        ("What percentage of the plans is finished?", "64"),
        ("How long is the Nor canal in metres?", "1.4 km"),
        ("How many miles long is the Nor canal?", "1.4"),
        ("How many plans are finished?", "64"),
        ("Who leads neither Auk nor Bun?", "Siv Dahl"),
        ("Who leads a plan besides Siv Dahl?", "Siv Dahl"),
        ("Who leads all plans?", "Siv Dahl"),
        ("Who leads both plans?", "Per Aune"),
        ("Which plans are led by Siv Dahl?", "Plan Auk"),
        ("List the plans of Siv Dahl.", "Plan Auk"),
        ("Which plan is not finished?", "Plan Auk"),
        ("Which mill has the most sacks?", "Tolv"),
        ("Are all plans finished?", "yes"),
        ("Is every plan finished?", "no"),
        ("Does the mill Orra or the mill Tolv have more sacks?", "no"),
    ],
)
def test_parts_of_an_answer_fall_short(question: str, answer: str) -> None:
    assert shortfall(analyse(question), NOTES, answer)
    page = Passage("notes", "Mills and plans", NOTES)
    weak = believable(Reading(answer, True, (0,), "found", 0.9), analyse(question), [page])
    assert weak.confidence == FALLS_SHORT


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many sacks does Orra have?", "64"),
        ("How many sacks does the mill Tolv have?", "51"),
        ("How long is the Nor canal?", "1.4 km"),
        ("How many kilometres long is the Nor canal?", "1.4 km"),
        ("When was the Nor canal opened?", "1902"),
        ("Who leads plan Auk?", "Siv Dahl"),
        ("Is plan Auk finished?", "yes"),
    ],
)
def test_whole_answers_are_left_as_they_are(question: str, answer: str) -> None:
    assert shortfall(analyse(question), NOTES, answer) == ""


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("How many sacks do Orra and Tolv have together?", "Orra and Tolv have 115 sacks together.", "115"),
        ("What is the total number of sacks?", "The total number of sacks is 115.", "115"),
        ("How many more sacks does Orra have than Tolv?", "Orra has 13 more sacks than Tolv.", "13"),
        ("What is the average number of sacks?", "A mill has 57 sacks on average.", "57"),
        ("Which mill has the most sacks?", "Orra has the most sacks.", "Orra"),
        ("Which plans are led by Siv Dahl?", "Siv Dahl leads the plans Auk and Crake.", "Auk and Crake"),
        ("Which plan is not finished?", "The plan Bun is not finished.", "Bun"),
        ("Are all plans finished?", "All plans are finished.", "yes"),
        ("How many sacks do all the mills have?", "All mills have 115 sacks, and sails.", "115"),
        ("How many sacks does each mill have?", "There are 50 sacks per mill, and sails.", "50"),
        ("How many people live in Velm?", "The population of Velm is 4,200.", "4,200"),
        ("How many pupils does the school have?", "| School | Pupils |\n|---|---|\n| Nacre | 300 |", "300"),
        ("How many kilograms does the bell weigh?", "Bell: Greta; Weight (kg): 120", "120"),
    ],
)
def test_results_that_a_passage_states_are_kept(question: str, text: str, answer: str) -> None:
    assert shortfall(analyse(question), text, answer) == ""


@pytest.mark.parametrize("asked", ["do all mills", "do all of the mills", "does every mill"])
def test_the_number_of_one_thing_is_doubted_for_all(asked: str) -> None:
    text = "The mill Orra has 64 sacks, and belongs to Ann."
    assert "may be the number of one" in shortfall(analyse(f"How many sacks {asked} have?"), text, "64")


@pytest.mark.parametrize(
    ("question", "text", "answer", "whole"),
    [
        ("What is the e-mail address of the agent?", "The agent is Jan: jan@b.example", "Jan", "jan@b.example"),
        ("What is the phone number of the owner?", "The owner is Ada Lind, phone 0113 496.", "Ada Lind", "0113 496"),
        ("Until when does the guarantee run?", "It runs for 10 years, until May 2031.", "10 years", "May 2031"),
        ("How old was Ada Lind when she died?", "Ada Lind, born in 1840, died at 72.", "1840", "72"),
        ("How much do three nights cost?", "A night costs 118 euros.", "118 euros", ""),
        ("How much do three nights cost?", "Three nights cost 330 euros.", "", "330 euros"),
        ("How many eggs does the rye bread need?", "The rye bread needs 500 g of flour and 4 eggs.", "500 g", "4"),
        ("Where does the person the recipe comes from live?", "The recipe comes from Ada Lind.", "Ada Lind", ""),
        ("When did the manager sell the house?", "The manager sold the house in 1990.", "", "1990"),
        ("What is the price of the lamp of the shop?", "The price of the lamp is 3 euros.", "", "3 euros"),
    ],
)  # fmt: skip
def test_answers_of_another_form_are_doubted(question: str, text: str, answer: str, whole: str) -> None:
    assert not answer or shortfall(analyse(question), text, answer)
    assert not whole or not shortfall(analyse(question), text, whole)


def test_passages_without_the_questions_names_are_doubted() -> None:
    page = Passage("jade", "depots: Jade", "Depot: Jade; Pallets: 6608")
    reading = Reading("6608", True, (0,), "found", 0.7)
    assert believable(reading, analyse("How many pallets does the depot Sand hold?"), [page]).confidence == FALLS_SHORT
    assert believable(reading, analyse("How many pallets does the depot Jade hold?"), [page]) == reading


def test_tables_are_narrowed_to_the_named_row() -> None:
    table = (
        "Our plans.\n| Plan | Lead | State |\n|---|---|---|\n| Auk | Siv Dahl | open |\n| Bun | Per Aune | finished |"
    )
    page = Passage("plans", "Plans", table)
    (narrow,) = narrowed(analyse("Is the plan Bun finished?"), [page])
    assert narrow.text == "Our plans.\nPlan: Bun; Lead: Per Aune; State: finished"
    assert narrowed(analyse("Are the plans Auk and Bun finished?"), [page]) == [page]
    assert narrowed(analyse("Who leads the plan Crake?"), [page]) == [page]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How many sacks do the mills Orra and Tolv have together?", "115"),
        ("How many more sacks does the mill Orra have than the mill Tolv?", "13"),
        ("What is the length of the Nor canal in metres?", "1400"),
        ("Are all plans finished?", "no"),
    ],
)
def test_the_engine_is_right_unsure_or_silent(question: str, right: str) -> None:
    with PyRAG(retriever=InMemoryRetriever([Passage("notes", "Mills, canals and plans", NOTES)])) as rag:
        trace = rag.ask(question)
    assert trace.weak or not trace.answer.known or right in trace.answer.text

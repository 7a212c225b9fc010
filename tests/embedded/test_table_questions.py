"""Wordings of questions that are computed over tables, and the programs that are written for them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.embedded.planner.program_text import whole_program
from pyrag.embedded.planner.table_patterns import TableQuestion
from pyrag.embedded.planner.table_questions import read_table_question, with_table

NASTY = st.sampled_from(['"', "'", "\\", "{x}", "\n", "\u2028", "\x00", "'''", '"; import os #', "of", "price", "the"])
NAMES = {
    "tables",
    "docs",
    "final_answer",
    "retrieve",
    "read_tables",
    "table_value",
    "answer",
    "ValueError",
    "TableError",
    "error",
}


@pytest.mark.parametrize(
    ("question", "reading"),
    [
        ("How many employees are in Berlin?", TableQuestion("count", where="employees are in Berlin")),
        ("How many products do we sell?", TableQuestion("count", where="products")),
        ("What is the number of lamps in stock?", TableQuestion("count", where="lamps in stock")),
        ("Which product has the highest price?", TableQuestion("highest", "price", show="product")),
        ("Which of our products costs the least?", TableQuestion("lowest", "price", show="products")),
        ("Who earns the most?", TableQuestion("highest", "salary", show="name")),
        ("What is the lowest price?", TableQuestion("lowest", "price")),
        ("What is the total of amount for 2025?", TableQuestion("sum", "amount", "2025")),
        ("What is the average salary in Oslo?", TableQuestion("average", "salary", "Oslo")),
        ("How much do Ada and Ben earn together?", TableQuestion("sum", "salary", "Ada and Ben")),
        ("How much more does Ada earn than Ben?", TableQuestion("difference", "salary", ("Ada", "Ben"))),
        ("How many more cows does Lia have than Moen?", TableQuestion("difference", "cows", ("Lia", "Moen"))),
        ("How much heavier is Greta than Mina?", TableQuestion("difference", "weight", ("Greta", "Mina"))),
        ("What is the average price per night?", TableQuestion("average", "price per night")),
        ("What is the average pieces a box?", TableQuestion("average", "pieces a box")),
        ("What is the total number of goals for?", TableQuestion("sum", "goals for")),
        ("How many pets does Ann own?", TableQuestion("count", where="pets owned by Ann")),
        ("What is the average number of credits per teacher?", TableQuestion("average", "credits", by="teacher")),
        ("On how many days is the hall open?", TableQuestion("count", where="days is the hall open")),
        ("Which crews won no gold?", TableQuestion("list", where="crews won no gold", show="crews")),
        ("How many parts have the colour red?", TableQuestion("count", where="parts have the colour red")),
        ("How many hours did Ida work in week 2?", TableQuestion("sum", "hours", "Ida in week 2")),
        ("Which post had the highest 2023?", TableQuestion("highest", "2023", show="post")),
        ("What is the difference in price between A1 and B2?", TableQuestion("difference", "price", ("A1", "B2"))),
        ("Which trams depart before 12:00?", TableQuestion("list", where="trams depart before 12:00", show="trams")),
        (
            "Which hall has a capacity below 90?",
            TableQuestion("list", where="hall has a capacity below 90", show="hall"),
        ),
        ("What is the earliest departure time?", TableQuestion("earliest", "departure")),
        ("Which tram leaves Ulm first?", TableQuestion("earliest", "leaves", "Ulm", "tram")),
        ("When does the last tram to Ulm leave?", TableQuestion("latest", "leave", "tram to Ulm")),
        ("Which tram has the latest arrival?", TableQuestion("latest", "arrival", show="tram")),
        ("Which play is the longest?", TableQuestion("highest", "long", show="play")),
        ("Which play took the shortest?", TableQuestion("lowest", "duration", show="play")),
        ("Which mill is the oldest?", TableQuestion("earliest", "origin", show="mill")),
        ("What are the two newest mills?", TableQuestion("latest", "addition", show="mills", top=2)),
        ("Who is the author of the longest play?", TableQuestion("highest", "long", "play", "author")),
        ("How old is the heaviest dog?", TableQuestion("highest", "weight", "dog", "age")),
        ("Name the cheapest kite", TableQuestion("lowest", "price", show="kite")),
        ("Which is the dearest steel pot?", TableQuestion("highest", "price", "steel pot", "name")),
        ("What is the total pay earned by the guards?", TableQuestion("sum", "pay earned", "by the guards")),
    ],
)
def test_computations_are_read(question: str, reading: TableQuestion) -> None:
    assert reading in read_table_question(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who directed Alien?",
        "When was the bridge opened?",
        "How many children did Ada Lind have?",
        "How many times did he win?",
        "Which film came out first, Alien or Heat?",
        "How long is the Nor canal?",
        "Is the Nor canal longer than the Sor canal?",
    ],
)
def test_other_questions_keep_their_program(question: str) -> None:
    program = whole_program(question)
    assert with_table(question, program, 5) == program


@given(
    st.sampled_from(
        [
            "How many {} are in {}?",
            "Which {} has the highest {}?",
            "What is the total of {} for {}?",
            "How much more does {} cost than {}?",
            "What is the average {} of {}?",
        ]
    ),
    st.one_of(st.text(max_size=12), NASTY),
    st.one_of(st.text(max_size=12), NASTY),
)
def test_text_of_questions_stays_inside_literals(form: str, first: str, second: str) -> None:
    question = form.format(first, second)
    tree = ast.parse(with_table(question, whole_program(question), 5))
    assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= NAMES
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.Attribute | ast.Subscript)]

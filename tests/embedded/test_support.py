"""Objections to answers whose sentence is about another thing than the question."""

from __future__ import annotations

import pytest

from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
from pyrag.embedded.reader.neural.objections import names_of_question, objection
from pyrag.embedded.reader.view import views
from pyrag.trace.model import Passage

HARBOUR = (
    "Harbour office",
    "The office was led by Greta Lindqvist until 2017. She was born on 3 May 1961 in Visby. "
    "Her successor is Tomas Abel, who took over in 2018.",
)
CELLAR = (
    "Cellar",
    "We have 12 bottles of the Quinta Alta and 6 of the Monte Brevo. The Monte Brevo comes from Umbria.",
)
WALL = ("Watch tower", "The north tower of the Marlow wall is 18 metres high. The south tower fell in 1822.")
BAND = ("The Tin Larks", "Their second album came out in 2016. Their first album was Low Tide.")
WATCH = ("TW-5 trail watch", "The TW-5 is for hikers. Its battery lasts 14 days.")
SINGER = ("Maeve Orr", "Maeve Orr was born in Galway. Her brother Declan Orr is a boat builder.")
FERRY = ("Timetable", "The ferry from Marlow to Stenby takes 55 minutes.")

OBJECTED = [
    ("When was Tomas Abel born?", HARBOUR, "3 May 1961"),
    ("When was the successor of Greta Lindqvist born?", HARBOUR, "3 May 1961"),
    ("Where does the Quinta Alta come from?", CELLAR, "Umbria"),
    ("How high is the south tower of the Marlow wall?", WALL, "18 metres"),
    ("What was the third album of the Tin Larks?", BAND, "Low Tide"),
    ("How long does the battery of the TW-7 last?", WATCH, "14 days"),
    ("Where was Declan Orr born?", SINGER, "Galway"),
    ("How long does the ferry from Stenby to Oslo take?", FERRY, "55 minutes"),
]
SUPPORTED = [
    ("When was Greta Lindqvist born?", HARBOUR, "3 May 1961"),
    ("Who is the successor of Greta Lindqvist?", HARBOUR, "Tomas Abel"),
    ("Where does the Monte Brevo come from?", CELLAR, "Umbria"),
    ("How high is the northern tower of the Marlow wall?", WALL, "18 metres"),
    ("What was the 1st album of the Tin Larks?", BAND, "Low Tide"),
    ("How long does the battery of the TW-5 last?", WATCH, "14 days"),
    ("Where was Maeve Orr born?", SINGER, "Galway"),
    ("Who is the brother of Maeve Orr?", SINGER, "Declan Orr"),
    ("How long does the ferry from Marlow to Stenby take?", FERRY, "55 minutes"),
    ("How high is the tower?", WALL, "18 metres"),
]


def said(question: str, page: tuple[str, str], answer: str) -> str:
    analysis = analyse(question)
    return objection(analysis, views(analysis, [Passage("p", *page)])[0], answer)


@pytest.mark.parametrize(("question", "page", "answer"), OBJECTED)
def test_an_answer_about_another_thing_is_objected_to(question: str, page: tuple[str, str], answer: str) -> None:
    assert answer in page[1]
    assert said(question, page, answer)


@pytest.mark.parametrize(("question", "page", "answer"), SUPPORTED)
def test_an_answer_about_the_thing_itself_stands(question: str, page: tuple[str, str], answer: str) -> None:
    assert answer in page[1]
    assert said(question, page, answer) == ""


@pytest.mark.parametrize(("question", "page", "answer"), OBJECTED)
def test_the_reader_does_not_give_such_an_answer(question: str, page: tuple[str, str], answer: str) -> None:
    reading = NeuralAnswerer().read(question, [Passage("p", *page)])
    assert not reading.known or reading.text != answer


def test_names_are_found_without_opening_words() -> None:
    assert names_of_question("Where was Ann Lee of Dorn born?") == ["Ann Lee of Dorn"]
    assert names_of_question("what is it?") == []


def test_an_answer_that_no_sentence_holds_is_not_objected_to() -> None:
    assert said("When was Tomas Abel born?", HARBOUR, "1 June 1970") == ""

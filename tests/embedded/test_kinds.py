"""Answers of another kind, year, version or table row than the question asks for."""

from __future__ import annotations

import pytest

from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
from pyrag.embedded.reader.neural.decode import trim
from pyrag.embedded.reader.neural.doubts import doubt
from pyrag.embedded.reader.neural.objections import objection
from pyrag.embedded.reader.tables import by_table, cells_of, other_label, other_row
from pyrag.embedded.reader.view import View, view, views
from pyrag.trace.model import Passage

STAFF = Passage(
    "1",
    "Staff",
    "# Staff\n\n| name | role | phone |\n| --- | :--- | --- |\n| Mira Holt | director | 4410 |\n"
    "| Ben Ode | clerk | 4417 |\n\nThe office is closed on Fridays.",
)


def page(text: str, question: str, title: str = "Notes") -> View:
    return view(0, Passage("1", title, text), analyse(question))


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("Who founded Corvex?", "Corvex was founded in Ghent in 1998.", "Ghent"),
        ("Who founded Corvex?", "Corvex comes from Norway.", "Norway"),
        ("Who founded Corvex?", "Corvex was founded in March 1998.", "March 1998"),
        ("Who founded Corvex?", "Corvex has 820 people.", "820"),
        ("What is the title of the report?", "The report by Anna Berg came out in May.", "Anna Berg"),
        ("What is the title of her book?", "Anna Berg wrote the book in Ghent.", "Anna Berg"),
        ("When did the hall open?", "The hall was opened by Anna Berg.", "Anna Berg"),
        ("How many people came?", "The people came from Ghent.", "Ghent"),
        ("How heavy is the pump?", "The pump is 62 cm high.", "62 cm"),
        ("How much does the pump cost?", "The pump weighs 12 kg.", "12 kg"),
        ("Where was the meeting held?", "The meeting was held on 12.", "12"),
    ],
)
def test_an_answer_of_another_kind_is_refused(question: str, text: str, answer: str) -> None:
    assert objection(analyse(question), page(text, question), answer)


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("Who founded Corvex?", "Corvex was founded by Ida Lind in Ghent.", "Ida Lind"),
        ("Who won the cup?", "The cup was won by Ajax in 1995.", "Ajax"),
        ("Who took part in Ghent?", "In Florence was found the maker.", "Florence was"),
        ("What is the title of the report?", 'The report "Anna Berg" came out in May.', "Anna Berg"),
        ("What is the title of her book?", "She wrote Silent Harbour in 1990.", "Silent Harbour"),
        ("When did the hall open?", "The hall was opened last spring.", "last spring"),
        ("How many people came?", "About forty people came.", "forty"),
        ("How much does the pump cost?", "The pump costs 12 euros.", "12 euros"),
        ("How long is the pipe?", "The pipe is 12 m long.", "12 m"),
        ("How long did it take?", "It took 95 minutes.", "95 minutes"),
        ("When American makers sold cars, which policy ended?", "The open import policy ended.", "open import policy"),
    ],
)
def test_an_answer_of_the_kind_asked_for_stands(question: str, text: str, answer: str) -> None:
    assert objection(analyse(question), page(text, question), answer) == ""


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("Where was Lodestar 2024 held?", "Lodestar 2025 was held in Porto.", "Porto"),
        ("What did version 3.0 drop?", "Version 2.0 dropped the old format.", "the old format"),
        ("What is in room 12?", "Room 14 holds the archive.", "the archive"),
        ("What does Python 3.8 lack?", "Python 3.13 lacks the module cgi.", "the module cgi"),
    ],
)
def test_another_number_of_the_same_name_is_refused(question: str, text: str, answer: str) -> None:
    assert objection(analyse(question), page(text, question), answer)


@pytest.mark.parametrize(
    ("question", "text", "answer", "doubtful"),
    [
        ("What caused the failure of 2023?", "The failure of May 2024 was caused by rust.", "rust", True),
        ("How many staff did it have in 2015?", "The staff in 2023 was 820 people.", "820", True),
        ("What caused the failure of 2024?", "The failure of May 2024 was caused by rust.", "rust", False),
        ("Who was the chair in 2015?", "The chair from 2010 to 2019 was Ida Lind.", "Ida Lind", False),
        ("What failed after 2015?", "The valve failed in 2020.", "The valve", False),
        ("Who maintains the tool?", "The tool was started by Ida Lind.", "Ida Lind", True),
        ("Who maintains the tool?", "Its maintainer is Ida Lind.", "Ida Lind", False),
        ("Who wrote Nine Winters?", "The book is Nine Winters by Ida Lind.", "Ida Lind", False),
    ],
)
def test_another_year_or_deed_makes_an_answer_weak(question: str, text: str, answer: str, doubtful: bool) -> None:
    assert bool(doubt(analyse(question), page(text, question), answer)) == doubtful


def test_the_right_year_is_preferred_to_another() -> None:
    passages = [
        Passage("1", "Lodestar 2025", "Lodestar 2025 was held in Porto. It had 425 participants."),
        Passage("2", "Lodestar 2024", "Lodestar 2024 was held in Ghent. It had 310 participants."),
    ]
    reader = NeuralAnswerer()
    assert reader.read("Where was Lodestar 2024 held?", passages).text == "Ghent"
    assert reader.read("Where was Lodestar 2025 held?", passages).text == "Porto"
    assert not reader.read("Where was Lodestar 2023 held?", passages).known


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the phone number of Mira Holt?", "4410"),
        ("What is the phone of Ben Ode?", "4417"),
        ("What is the role of Ben Ode?", "clerk"),
        ("What is the phone number of Ola Ree?", None),
        ("What is the age of Ben Ode?", None),
    ],
)
def test_a_cell_answers_by_its_row_and_column(question: str, answer: str | None) -> None:
    analysis = analyse(question)
    reading = by_table(analysis, views(analysis, [STAFF]), [STAFF])
    assert (reading.text if reading else None) == answer


def test_a_mark_in_another_row_is_refused() -> None:
    analysis = analyse("What is the phone number of Mira Holt?")
    assert other_row(analysis, STAFF, STAFF.text.index("4417"))
    assert not other_row(analysis, STAFF, STAFF.text.index("4410"))
    assert not other_row(analysis, STAFF, STAFF.text.index("Fridays"))


def test_a_mark_under_another_label_is_refused() -> None:
    notes = Passage("1", "Minutes", "Present: Ida Lind, Ben Ode.\nAbsent: Ola Ree.")
    analysis = analyse("Who was absent from the meeting?")
    assert other_label(analysis, notes, notes.text.index("Ben"))
    assert not other_label(analysis, notes, notes.text.index("Ola"))


@pytest.mark.parametrize(
    ("question", "text", "marked", "answer"),
    [
        ("Where does the club meet?", "We meet in the library on Bridge Street.", "in the library", "the library"),
        ("Where was it started?", "Started by Ida Lind in 2019 in Ghent.", "Ida Lind in 2019 in Ghent", "Ghent"),
        ("What is the version?", "The version is 3.4.1. Version 2.0 is old.", "3.4.1. Version 2.0", "3.4.1"),
        ("Who wrote it?", "It is by J. K. Rowan of Kent.", "J. K. Rowan", "J. K. Rowan"),
        ("What is the address?", "It is ida.l+x@north-port.example.", "north", "ida.l+x@north-port.example"),
        ("What is the page?", "See https://a.example/b-c?d=1/. Ask us.", "a.example", "https://a.example/b-c?d=1/"),
        ("When was it sold?", "Sold 22.03.1979. Ida left.", "22.03", "22.03.1979"),
        ("When was it sold?", "| Sold | 2019-08-07 |", "2019", "2019-08-07"),
        ("Which year was it sold?", "| Sold | 2019-08-07 |", "2019", "2019"),
        ("What is the deadline?", "The deadline is 7/8/2019.", "7/8", "7/8/2019"),
    ],
)
def test_edges_of_an_answer_are_put_right(question: str, text: str, marked: str, answer: str) -> None:
    start = text.index(marked)
    assert trim(text, start, start + len(marked), analyse(question)) == answer


def test_tables_end_with_their_last_line() -> None:
    assert [cell.text for cell in cells_of(STAFF.text)] == ["director", "4410", "clerk", "4417"]
    assert not list(cells_of("no | table\n\nno | row"))

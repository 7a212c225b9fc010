"""The embedded reader end to end: questions over passages written for these tests."""

from __future__ import annotations

import pytest

from pyrag.embedded.reader.reader import read
from pyrag.trace.model import Passage

IDA = Passage(
    "ida",
    "Ida Brandt",
    "Ida Marie Brandt (14 March 1881 in Odense, Denmark – 2 June 1950) was a Danish painter and sculptor. She was the "
    "daughter of the merchant Jens Brandt and his wife Karen Holm. She studied at the Royal Danish Academy of Fine "
    "Arts. In 1905 she married the composer Carl Lund. She died of pneumonia in Aarhus.",
)
LEO = Passage(
    "leo",
    "Leo Costa",
    "Leo Costa (born 3 May 1922) is a retired Brazilian politician and lawyer who served as mayor of Niterói. He "
    "was born in Rio de Janeiro, Brazil.",
)
KITE = Passage(
    "kite",
    "The Blue Kite (1954 film)",
    "The Blue Kite is a 1954 French drama film written and directed by the Belgian filmmaker Ana Petit and starring "
    "Max Roy. The music was composed by Jean Duval. It was released on 3 June 1954.",
)
DORN = Passage(
    "dorn",
    "Dorn, Wexland",
    "Dorn is a town in Hale County, Ohio, United States. It lies on the Brack River, and its population was 45,210 "
    "in 2010. The town was founded in 1821 by settlers from Norway.",
)
BAND = Passage(
    "band",
    "Tin Lantern",
    "Tin Lantern is a Swedish punk rock band formed in Malmö in 1998. Their first album was released by Harbour "
    "Records. The group was named after a café in Lund.",
)
ALL = (IDA, LEO, KITE, DORN, BAND)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who directed The Blue Kite?", "Ana Petit"),
        ("The director of The Blue Kite is who?", "Ana Petit"),
        ("The Blue Kite >> composer", "Jean Duval"),
        ("When was The Blue Kite released?", "3 June 1954"),
        ("What is the country of origin of The Blue Kite?", "French"),
        ("What genre is The Blue Kite?", "drama"),
        ("When was Ida Brandt born?", "14 March 1881"),
        ("In what year was Ida Brandt born?", "1881"),
        ("What is the date of death of Ida Brandt?", "2 June 1950"),
        ("Where was Ida Brandt born?", "Odense"),
        ("In what country was Ida Brandt born?", "Denmark"),
        ("Where did Ida Brandt die?", "Aarhus"),
        ("How did Ida Brandt die?", "pneumonia"),
        ("Who is the father of Ida Brandt?", "Jens Brandt"),
        ("Who was Ida Brandt's mother?", "Karen Holm"),
        ("Who did Ida Brandt marry?", "Carl Lund"),
        ("Where did Ida Brandt study?", "Royal Danish Academy of Fine Arts"),
        ("What is the nationality of Ida Brandt?", "Danish"),
        ("What is Leo Costa's occupation?", "politician"),
        ("In what city was Leo Costa born?", "Rio de Janeiro"),
        ("In which country is Dorn located?", "United States"),
        ("In which state is Dorn located?", "Ohio"),
        ("In which county is Dorn located?", "Hale County"),
        ("What is the population of Dorn?", "45,210"),
        ("When was Dorn founded?", "1821"),
        ("What record label released Tin Lantern?", "Harbour Records"),
        ("Which river does Dorn lie on?", "Brack River"),
    ],
)
def test_short_answer_from_the_right_page(question: str, answer: str) -> None:
    reading = read(question, ALL)
    assert reading.known
    assert reading.text == answer
    assert len(reading.citations) == 1
    assert answer in ALL[reading.citations[0]].text
    assert reading.rationale


@pytest.mark.parametrize(
    "question",
    [
        "Who directed The Red Kite?",
        "When was Anton Brandt born?",
        "Who is the spouse of Leo Costa?",
        "Where did Leo Costa die?",
        "What is the boiling point of mercury?",
        "Who won the chess championship of Peru?",
    ],
)
def test_unknown_where_the_passages_do_not_say(question: str) -> None:
    reading = read(question, ALL)
    assert not reading.known
    assert reading.text == "unknown"
    assert reading.citations == ()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is older, Ida Brandt or Leo Costa?", "Ida Brandt"),
        ("Who was born later, Ida Brandt or Leo Costa?", "Leo Costa"),
        ("Between Ida Brandt and Leo Costa, who was born first?", "Ida Brandt"),
        ("Is Ida Brandt older than Leo Costa?", "yes"),
        ("Is Leo Costa older than Ida Brandt?", "no"),
        ("Are Ida Brandt and Leo Costa from the same country?", "no"),
        ("Was Leo Costa a politician?", "yes"),
        ("Was Leo Costa a painter?", "no"),
        ("Are Ida Brandt and Leo Costa both painters?", "no"),
        ("Was Ida Brandt a painter or a singer?", "painter"),
    ],
)
def test_two_things_are_compared(question: str, answer: str) -> None:
    assert read(question, ALL).text == answer


@pytest.mark.parametrize(
    ("facts", "question", "answer"),
    [
        ("Ann Lee was born on May 7, 1973 and Bo Rask on June 3, 1949", "Who is older, Ann Lee or Bo Rask?", "Bo Rask"),
        ("Ann Lee: 1973; Bo Rask: 1949", "Who was born later, Ann Lee or Bo Rask?", "Ann Lee"),
        ("Dorn has 45,000 people and Fell has 30,000 people", "Which town has more people, Dorn or Fell?", "Dorn"),
        ("Ann Lee is British; Bo Rask is Indian", "Are Ann Lee and Bo Rask from the same country?", "no"),
        ("Ann Lee is from the U.S.; Bo Rask is American", "Are Ann Lee and Bo Rask of the same nationality?", "yes"),
        (
            "The director of Rain is Ana Petit. Ana Petit was born in Lyon",
            "Where was the director of Rain born?",
            "Lyon",
        ),
        (
            "The capital of Wex is Dorn. The population of Dorn is 45,000",
            "What is the population of the capital?",
            "45,000",
        ),
        ("1984", "When was the company founded?", "1984"),
    ],
)
def test_aggregation_answers_from_the_facts(facts: str, question: str, answer: str) -> None:
    reading = read(f"Given: {facts}. Answer the question: {question}", None)
    assert reading.known
    assert reading.text == answer
    assert reading.citations == ()


def test_a_wh_question_is_never_answered_by_yes_or_no() -> None:
    reading = read("Given: Ann Lee is British. Answer the question: Where does Ann Lee come from?", None)
    assert reading.text not in ("yes", "no")


def test_confidence_and_eagerness() -> None:
    reading = read("Who directed The Blue Kite?", ALL)
    assert reading.text == "Ana Petit"
    assert reading.confidence is not None
    assert 0.0 <= reading.confidence <= 1.0
    assert not read("Who directed The Blue Kite?", ALL, eagerness=0.0).known


def test_no_passages_and_no_question() -> None:
    assert not read("Who directed The Blue Kite?", ()).known
    assert not read("", ALL).known
    assert not read("", None).known


def test_reading_is_deterministic() -> None:
    question = "Which river does Dorn lie on?"
    assert read(question, ALL) == read(question, ALL)

"""Relations, periods, measures and countries; every sentence was written for these tests."""

from __future__ import annotations

import pytest

from pyrag.embedded.reader.reader import read
from pyrag.trace.model import Passage

ORA = Passage(
    "ora",
    "Ora Lindqvist",
    "Ora Lindqvist (4 May 1890 – 7 June 1961) was a Swedish acrobat. She was active in the travelling circus from 1911 "
    "to 1934. Her father was the clown Nils Lindqvist.",
)
KING = Passage(
    "king",
    "Hakul of Norland",
    "Hakul of Norland was king of Norland from 1303 until his death on 5 May 1321. He was the younger son of Ivar I, "
    "Duke of Saltmark, and Runa.",
)
TEACHER = Passage(
    "teacher",
    "Emil Vortmann",
    "Emil Vortmann (born 1870) was a German chemist at Bergstadt. Pia Keller and Jon Aske were among his doctoral "
    "students.",
)
PUPIL = Passage(
    "pupil",
    "Pia Keller",
    "Pia Keller (born 1901) was a Swiss chemist. She took her doctorate in Bergstadt in 1927 under Emil Vortmann.",
)
TOWN = Passage(
    "town", "Mellby", "Mellby is a town in Ostria. It lies on the Torn River, not far from where this joins the Great."
)
RIVER = Passage(
    "river",
    "Torn River",
    "The Torn River is a river in Ostria, 212 kilometres long. It flows north and passes Ulm Hill and Mellby before it "
    "joins the Great River.",
)
LAND = Passage(
    "land",
    "Ostria",
    "Ostria is a country in the north. Its capital is Hafenstad, and the currency is the Ostrian crown.",
)
PEAK = Passage("peak", "Mount Kell", "Mount Kell is the highest mountain of Ostria, with a height of 2,310 metres.")
POEM = Passage("poem", "Winterlied", "Winterlied is a tone poem for orchestra by Alva Brandt, first heard in 1902.")
SCRIBE = Passage("scribe", "Lin Bao", "Lin Bao (born 1931) is a Chinese poet and translator.")
ISLE = Passage("isle", "Skarv", "Skarv is a small island in the Baltic Sea. It belongs to Sweden.")
ALL = (ORA, KING, TEACHER, PUPIL, TOWN, RIVER, LAND, PEAK, POEM, SCRIBE, ISLE)


def answer(question: str, *pages: Passage) -> str:
    return read(question, pages or ALL).text


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("During which years was Ora Lindqvist active in the circus?", "1911–1934"),
        ("When was Ora Lindqvist active?", "1911–1934"),
        ("When was Hakul of Norland king of Norland?", "1303–1321"),
        ("When did Hakul of Norland reign?", "1303–1321"),
    ],
)
def test_a_time_in_office_is_the_whole_period(question: str, period: str) -> None:
    assert answer(question) == period


def test_the_dates_of_a_life_are_no_period_of_activity() -> None:
    page = Passage("x", "Ada Mohn", "Ada Mohn (1880 – 1950) was a Danish actress.")
    assert answer("When was Ada Mohn active?", page) != "1880–1950"


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("Olm reigned 1689–1702.", "1689–1702"),
        ("Olm was king from 1914 to 44.", "1914–1944"),
        ("Olm has been active since 1990.", "1990–present"),
    ],
)
def test_a_period_is_read_however_it_is_written(text: str, period: str) -> None:
    question = "When did Olm reign?" if "active" not in text else "When was Olm active?"
    assert answer(question, Passage("olm", "Olm", text)) == period


@pytest.mark.parametrize(
    "question",
    [
        "Who taught Pia Keller as a doctoral student?",
        "Who supervised Pia Keller?",
        "Who was the doctoral advisor of Pia Keller?",
        "Who was the doctoral adviser of Pia Keller?",
        "Under whom did Pia Keller study?",
    ],
)
def test_a_teacher_is_found_on_the_pupils_page(question: str) -> None:
    assert answer(question, PUPIL) == "Emil Vortmann"


def test_a_towns_river_is_not_the_one_downstream() -> None:
    assert answer("Which river runs through Mellby?", TOWN) == "Torn River"


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is the currency of Ostria?", "Ostrian crown"),
        ("How high is Mount Kell?", "2,310 metres"),
        ("How long is the Torn River?", "212 kilometres"),
        ("Who is the father of Ora Lindqvist?", "Nils Lindqvist"),
        ("Who is the mother of Hakul of Norland?", "Runa"),
        ("Who composed Winterlied?", "Alva Brandt"),
        ("Which country does the island of Skarv belong to?", "Sweden"),
    ],
)
def test_plain_relations_are_read(question: str, value: str) -> None:
    assert answer(question) == value


def test_only_a_question_for_a_country_gets_the_country() -> None:
    assert answer("Which country is Lin Bao from?", SCRIBE) == "China"
    assert answer("What is the nationality of Lin Bao?", SCRIBE) == "Chinese"


def test_an_island_is_not_the_town_on_it() -> None:
    page = Passage(
        "una", "Una Rost", "Una Rost (born 1940) is a singer who was born as Una Ek in Visk on the island of Tolo."
    )
    assert answer("Una Rost was born on which island?", page) == "Tolo"
    assert answer("Where was Una Rost born?", page) == "Visk"


def test_what_is_no_country_is_no_answer_to_which_country() -> None:
    page = Passage("kohu", "Kohu", "Kohu is a suburb where the Great Colombo Road crosses the Dehi Road.")
    assert answer("In which country is Kohu?", page) == "unknown"


def test_a_date_is_no_place_of_death() -> None:
    page = Passage(
        "abe", "Abe Lorn", "Abe Lorn (December 16, 1901 – May 5, 1978) was a singer of the Camden-based duo Two Ways."
    )
    assert answer("Where did Abe Lorn die?", page) == "unknown"


def test_birth_dates_do_not_answer_for_death() -> None:
    page = Passage("ona", "Ona Birk", "Ona Birk (born 19 July 1886) was a Danish director.")
    assert answer("When did Ona Birk die?", page) == "unknown"


def test_a_plural_is_the_singular_for_both() -> None:
    pages = (
        Passage("ada", "Ada Quill", "Ada Quill is an Ostrian film director and producer."),
        Passage("bo", "Bo Harn", "Bo Harn is an Ostrian film and stage director."),
    )
    assert answer("Are Ada Quill and Bo Harn both film directors?", *pages) == "yes"


@pytest.mark.parametrize(
    ("question", "text", "value"),
    [
        (
            "Which award did Ada Lind receive?",
            "She was inducted into the Rock & Roll Hall of Fame.",
            "Rock & Roll Hall of Fame",
        ),
        ("When was Ada Lind buried?", "She was buried in Velm on 3 May 1990.", "3 May 1990"),
        ("What was the cause of death of Ada Lind?", "She died of old age in Velm.", "old age"),
        ("How did Ada Lind die?", "She was stabbed in Velm.", "stabbed"),
        ("In which county was Ada Lind born?", "She was born in Velm, Kell County, Norland.", "Kell County"),
    ],
)
def test_ends_of_lives_and_honours_are_read(question: str, text: str, value: str) -> None:
    assert answer(question, Passage("1", "Ada Lind", f"Ada Lind was a singer. {text}")) == value


@pytest.mark.parametrize(("province", "verdict"), [("Kell", "yes"), ("Asher", "no")])
def test_provinces_of_two_towns_are_compared(province: str, verdict: str) -> None:
    velm = Passage("1", "Velm", "Velm is a village in Kell Province, Norland.")
    orrin = Passage("2", "Orrin", f"Orrin is a town in {province} Province, Norland.")
    assert answer("Are Velm and Orrin in the same province?", velm, orrin) == verdict

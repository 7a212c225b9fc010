"""The parts of the embedded reader: sentences, stems, kinds of answer, spans."""

from __future__ import annotations

import pytest

from pyrag.embedded.question_analysis import analyse, split_aggregation
from pyrag.embedded.reader.spans import name_run, names
from pyrag.embedded.words import sentence, sentences, stem
from pyrag.trace.sentences import tidy


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("He met Dr. Moe in St. Paul. They left.", 2),
        ("J. R. Holt wrote it. It sold well!", 2),
        ("She lived in the U.S. Army base.", 1),
        ("One. Two? Three!", 3),
        ("", 0),
    ],
)
def test_sentences_are_split_at_real_ends(text: str, count: int) -> None:
    assert len(sentences(text)) == count


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("Ann Lee( born 1901 ) was", "Ann Lee (born 1901) was"),
        ('He played in" Up", then left', 'He played in "Up", then left'),
        ('the ""Cat"" ran', 'the "Cat" ran'),
        ("Jean- Luc  Roy", "Jean-Luc Roy"),
    ],
)
def test_tidy(raw: str, clean: str) -> None:
    assert tidy(raw) == clean


def test_forms_of_a_verb_share_a_stem() -> None:
    assert stem("directed") == stem("director") == stem("directs")
    assert stem("founded") == stem("founder") == stem("founding")


@pytest.mark.parametrize(
    ("question", "relation", "kind", "subject"),
    [
        ("Who directed The Good Father?", "director", "person", "The Good Father"),
        ("What is Ann Lee's nationality?", "country of citizenship", "nationality", "Ann Lee"),
        ("In what country was Ann Lee born?", "place of birth", "country", "Ann Lee"),
        ("Rain >> publication date", "publication date", "date", "Rain"),
        ("What team does Ann Lee play for?", "sports team", "organisation", "Ann Lee"),
        ("What is Wex the capital of?", "capital of", "place", "Wex"),
        ("How many films did she direct?", "", "number", ""),
        ("Who was president when Wex became a state?", "", "person", ""),
        ("Is Ann Lee a painter?", "", "yesno", ""),
    ],
)
def test_questions_are_understood(question: str, relation: str, kind: str, subject: str) -> None:
    analysis = analyse(question)
    assert (analysis.relation, analysis.kind) == (relation, kind)
    assert not subject or analysis.subject == subject


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("Who is older, Ann Lee or Bo Rask II?", ("Ann Lee", "Bo Rask II")),
        ("Which band was formed first The Oaks or Elm Row?", ("The Oaks", "Elm Row")),
        ("Between Ann Lee and Bo Rask, who died first?", ("Ann Lee", "Bo Rask")),
        ("Who wrote War and Peace?", ()),
    ],
)
def test_choices_are_seen(question: str, options: tuple[str, ...]) -> None:
    assert analyse(question).options == options


def test_aggregation_query_is_split() -> None:
    assert split_aggregation("Given: A is B. Answer the question: What is A?") == ("A is B", "What is A?")
    assert split_aggregation("What is A?") == ("", "What is A?")


def test_names_keep_particles_and_initials() -> None:
    found = sentence("Then M. K. Nair met Anna van der Berg and William the Silent")
    assert [found.span(first, stop) for first, stop in names(found)][-3:] == [
        "M. K. Nair",
        "Anna van der Berg",
        "William the Silent",
    ]
    assert name_run(found, 0) == 6


def test_a_question_with_many_dots_is_read() -> None:
    """Two ways to read each dot would be 2^200."""
    assert analyse(f"Where did Ada Bell die{'.' * 200} (see below)!").subject.startswith("Ada Bell")

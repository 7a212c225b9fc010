"""Whatever the input, the reader raises nothing, cites what it was given, and answers with text it was given.

The one exception is the country of a people: "Danish" in a passage answers "Which country …?" with "Denmark".
"""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.embedded.lexicon.regions import ADJECTIVES
from pyrag.embedded.question_analysis import analyse, split_aggregation
from pyrag.embedded.reader.reader import read
from pyrag.embedded.words import fold, sentences
from pyrag.trace.model import Passage
from pyrag.trace.sentences import split_sentences, tidy

_VOCABULARY = (
    "Who directed was born in the film Ida Brandt of ( ) , . ; – 1881 March 14 and or 's \" Paris Danish is a painter "
    "married died where which than older both same country population 45,210 >> spouse capital ? Given: Answer"
)
_WORDS = st.sampled_from(_VOCABULARY.split())
_TEXTS = st.one_of(st.text(max_size=120), st.lists(_WORDS, max_size=40).map(" ".join))
_PASSAGES = st.lists(st.builds(Passage, st.just("p"), st.text(max_size=20) | _TEXTS, _TEXTS), max_size=4)


@settings(max_examples=300)
@given(_TEXTS, _PASSAGES)
def test_reading_is_well_formed(question: str, passages: list[Passage]) -> None:
    reading = read(question, passages)
    assert all(0 <= position < len(passages) for position in reading.citations)
    assert reading.confidence is not None
    assert 0.0 <= reading.confidence <= 1.0
    assert reading.known or reading.text == "unknown"
    source = fold(
        " ".join(
            (
                question,
                *(f"{passage.title} {tidy(passage.title)} {passage.text} {tidy(passage.text)}" for passage in passages),
            )
        )
    )
    if reading.known and reading.text not in ("yes", "no"):
        peoples = [people for people, country in ADJECTIVES.items() if country == reading.text]
        assert any(fold(words) in source for words in (reading.text, *peoples))


@settings(max_examples=150)
@given(_TEXTS, _TEXTS)
def test_aggregation_is_well_formed(facts: str, question: str) -> None:
    reading = read(f"Given: {facts}. Answer the question: {question}", None)
    assert reading.citations == ()
    assert reading.known or reading.text == "unknown"
    assert reading.confidence is not None
    assert 0.0 <= reading.confidence <= 1.0


def test_the_country_of_a_people_is_an_answer() -> None:
    assert read("Which country WHO", [Passage("p", "WHO", "Danish")]).text == "Denmark"


_PLAIN = re.compile(r"^\s*given:?\s*(.*?)\.?\s*answer the question:?\s*(.*)$", re.IGNORECASE | re.DOTALL)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(("Given", ":", " ", ".", "answer the question", "A", "\n")), max_size=12).map("".join))
def test_facts_and_question_are_split_as_by_pattern(query: str) -> None:
    match = _PLAIN.match(query)
    wanted = (match[1].strip(), match[2].strip()) if match else ("", query.strip())
    assert split_aggregation(query) == wanted


def test_a_query_of_blanks_is_read_at_once() -> None:
    """A program can ask anything: with the plain pattern this took the cube of its length, which is years."""
    assert not read("Given: " + " " * 100_000, None).known
    assert len(analyse("which year " * 10_000).question) == 2000


def test_a_passage_without_a_full_stop_is_read_in_pieces() -> None:
    """Else the time would grow with the square of a hostile passage's length."""
    for text in ("his " * 5000, "x" * 9000, "Mr. " * 3000, " ".join(f"word{n}," for n in range(3000))):
        clean = tidy(text)
        spans = split_sentences(clean)
        assert "".join(clean[start:stop] for start, stop in spans) == clean
        assert all(0 < stop - start <= 2000 for start, stop in spans)
        assert all(clean[stop - 1] == " " for _, stop in spans[:-1]) or " " not in clean


@settings(max_examples=200)
@given(_TEXTS)
def test_sentences_cover_the_text_in_order(text: str) -> None:
    clean = tidy(text)
    spans = split_sentences(clean)
    assert "".join(clean[start:stop] for start, stop in spans) == clean
    for each in sentences(text):
        assert len(each.words) == len(each.stems) == len(each.starts)
        assert all(
            each.text[start:end] == word for start, end, word in zip(each.starts, each.ends, each.words, strict=True)
        )

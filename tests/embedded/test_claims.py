"""Yes/no questions: pairs of opposite answers over invented texts, and the parts that decide them."""

from __future__ import annotations

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Reading
from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.claims.claim import read_claim
from pyrag.embedded.reader.claims.clauses import clauses
from pyrag.embedded.reader.claims.verdict import verdict_on
from pyrag.embedded.reader.view import views
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import UNKNOWN, Passage
from tests.embedded.answering import ask_all, is_sure, lines, tally

QUESTIONS = lines("verdicts/questions.jsonl")
CLUB = Passage(
    "1",
    "Rowing club",
    "The rowing club was founded in 1921 by Aksel Thorne. Runa Vik is the president, Odd Lie is the treasurer. The "
    "plan for a sauna was turned down, the plan for a gym was approved. Boats may not be used after dark. The "
    "boathouse, built in 1930, is no longer open on Sundays. Ida Moe left the club in May 2020. Sigrid Aas beat Tora "
    "Hall in the final.",
)


@pytest.mark.parametrize("half", ["held-out", "tuned"])
async def test_unmarked_yes_and_no_are_mostly_right(half: str) -> None:
    rows = [row for row in QUESTIONS if row["half"] == half]
    assert len(rows) == 100
    traces = await ask_all("verdicts", [row["question"] for row in rows])
    counts = tally(traces, [{row["answer"]} for row in rows])
    sure = counts["right"] + counts["wrong"]
    assert sure >= 70, counts
    assert counts["right"] >= 0.85 * sure, counts


def test_questions_come_in_pairs_of_opposite_answers() -> None:
    pairs: dict[int, list[str]] = {}
    for row in QUESTIONS:
        pairs.setdefault(row["pair"], []).append(row["answer"])
    assert len(pairs) == 100
    assert all(sorted(answers) == ["no", "yes"] for answers in pairs.values())


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Was Ingmar Bergman born in Stockholm?", "no"),
        ("Was Ingmar Bergman born in Uppsala?", "yes"),
        ("Did Max von Sydow direct The Seventh Seal?", "no"),
        ("Did Ingmar Bergman direct The Seventh Seal?", "yes"),
        ("Is Uppsala south of Stockholm?", "no"),
        ("Is Uppsala north of Stockholm?", "yes"),
    ],
)
async def test_opposite_questions_over_the_bundled_corpus(question: str, answer: str) -> None:
    async with PyRAG() as rag:
        trace = await rag.aask(question)
    assert trace.answer.text == answer
    assert is_sure(trace)
    assert trace.citations


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Was the plan for a sauna approved?", "no"),
        ("Was the plan for a sauna rejected?", "yes"),
        ("Was the plan for a gym rejected?", "no"),
        ("Is Runa Vik the president of the rowing club?", "yes"),
        ("Is Odd Lie the president of the rowing club?", "no"),
        ("May boats be used after dark?", "no"),
        ("Is the boathouse open on Sundays?", "no"),
        ("Is it true that the boathouse is no longer open on Sundays?", "yes"),
        ("Isn't the boathouse open on Sundays?", "yes"),
        ("Was the rowing club founded in 1921?", "yes"),
        ("Was the rowing club founded in 1931?", "no"),
        ("Was the rowing club founded by Aksel Thorne?", "yes"),
        ("Was the rowing club founded by Runa Vik?", "no"),
        ("Was the rowing club founded before 1930?", "yes"),
        ("Was the rowing club founded after 1930?", "no"),
        ("Is Ida Moe still in the rowing club?", "no"),
        ("Did Sigrid Aas beat Tora Hall?", "yes"),
        ("Did Tora Hall beat Sigrid Aas?", "no"),
        ("Was Tora Hall beaten by Sigrid Aas?", "yes"),
        ("Was Sigrid Aas beaten by Tora Hall?", "no"),
    ],
)
def test_a_claim_is_decided_by_what_is_stated(question: str, answer: str) -> None:
    reading = verdict_on(question, views(analyse(question), [CLUB]))
    assert reading is not None
    assert (reading.text, reading.citations) == (answer, (0,))
    assert (reading.confidence or 0.0) >= 0.5


@pytest.mark.parametrize(
    "question", ["Is the sauna heated?", "Was Karl Berg born in Oslo?", "Does Runa Vik play chess?"]
)
def test_what_nobody_states_is_not_decided(question: str) -> None:
    reading = verdict_on(question, views(analyse(question), [CLUB]))
    assert reading is None or (reading.confidence or 0.0) < 0.5


def test_sentences_that_contradict_each_other_make_it_weak() -> None:
    pages = [Passage("1", "Hall", "The hall is open."), Passage("2", "Hall", "The hall is closed.")]
    reading = verdict_on("Is the hall open?", views(analyse("Is the hall open?"), pages))
    assert reading is not None
    assert (reading.confidence or 0.0) < 0.5


@pytest.mark.parametrize(
    ("found", "answer"),
    [("Oslo", "no"), ("Bergen", "yes"), ("Bergen, Norway", "yes"), ("unknown", None), ("1921", None)],
)
def test_a_value_found_is_compared_with_the_asked_one(found: str, answer: str | None) -> None:
    asked = []

    def ask(question: str) -> Reading:
        asked.append(question)
        return Reading(found, found != UNKNOWN, (0,), "", 0.9)

    page = Passage("1", "Ola Ree", "Ola Ree grew up by the sea.")
    reading = verdict_on("Was Ola Ree born in Bergen?", views(analyse("Was Ola Ree born in Bergen?"), [page]), ask)
    assert asked == ["Where was Ola Ree born?"]
    assert (reading.text if reading else None) == answer


@pytest.mark.parametrize(
    ("question", "subject", "predicate", "denied"),
    [
        ("Was the motion to paint the hall carried?", "the motion to paint the hall", "carried", False),
        ("Is the gate not locked?", "the gate", "locked", True),
        ("Does the old mill need a roof?", "the old mill", "need a roof", False),
        ("Is it true that Ada Lind is no longer a member?", "Ada Lind", "a member", True),
        ("Is Ivo Maric Ada Lind's brother?", "Ivo Maric", "the brother of Ada Lind", False),
    ],
)
def test_claims_are_read_in_two_parts(question: str, subject: str, predicate: str, denied: bool) -> None:
    claim = read_claim(question)
    assert claim is not None
    assert (claim.subject, claim.predicate, claim.denied) == (subject, predicate, denied)


def test_work_on_long_texts_and_questions_is_bounded() -> None:
    assert len(list(clauses("a, " * 5_000))) <= 101
    assert read_claim("Is it true that " * 60) is None
    question = "Is the hall open?"
    page = Passage("1", "Hall", "Nobody came. " * 5_000 + "The hall is open.")
    reading = verdict_on(question, views(analyse(question), [page]))
    assert reading is not None
    assert reading.text == "yes"


@pytest.mark.parametrize(("question", "known"), [("Does Ibis need toner?", False), ("Does Crane need toner?", True)])
async def test_what_one_thing_needs_another_may_need_too(question: str, known: bool) -> None:
    text = "The printer Ibis stands in room 3. The printer Crane stands in room 1. Crane needs toner."
    async with PyRAG(retriever=InMemoryRetriever([Passage("1", "Printers", text)])) as rag:
        assert is_sure(await rag.aask(question)) is known

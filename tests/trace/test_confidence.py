"""Confidence of answers of several steps or rows, and the sentence about the weakest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Reading
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.confidence import confidence
from pyrag.trace.coverage import Coverage
from pyrag.trace.model import Answer, Citation, Passage, Step, Trace
from pyrag.trace.verdict import judged, with_confidence

PAGES = [
    Passage("mill", "Mill", "The mill of Alpha was founded by Ada Berg."),
    Passage("ada", "Ada Berg", "Ada Berg was born in Uppsala in 1852 and died in Lund in 1931."),
]


def step(number: int, sure: float | None, query: str = "", text: str = "Ada", needs: tuple[int, ...] = ()) -> Step:
    answer = Answer(text, text != "unknown", ("mill",), sure)
    return Step(number, "answer", query or f"question {number}?", answer=answer, depends_on=needs)


def trace_of(*steps: Step, depends_on: tuple[int, ...] | None = None, answer: Answer | None = None) -> Trace:
    ids = tuple(item.id for item in steps) if depends_on is None else depends_on
    cited = (Citation(1, "mill", steps[0].id),)
    return Trace("Who?", answer or Answer("Ada"), steps=steps, citations=cited, depends_on=ids)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([step(1, 0.8)], 0.8),
        ([step(1, 0.8), step(2, 0.5)], 0.4),
        ([step(1, 0.9), step(2, 0.9), step(3, 0.9), step(4, 0.9)], 0.6561),
        ([step(1, 0.8, "who?"), step(2, 0.8, "who?")], 0.8),  # the same answer again
        ([step(1, 0.8, "who?"), step(2, 0.8, "who?", "Bob")], 0.64),
        ([step(1, 0.8, "who?"), step(2, 0.6, "who?")], 0.6),
        ([step(1, 0.8), step(2, 0.3, text="unknown")], 0.8),  # another way led to the answer
        ([step(1, 0.8), step(2, None)], 0.8),
        ([step(1, None), step(2, None)], None),
        ([step(1, 0.8), step(2, 0.0)], 0.0),
        ([step(1, 95), step(2, -1)], 0.0),
    ],
)
def test_confidence_is_the_product_of_distinct_steps(steps: list[Step], expected: float | None) -> None:
    assert confidence(trace_of(*steps)) == expected
    assert confidence(trace_of(*reversed(steps))) == expected


def rows(number: int, answered: int, weak: int, sure: float | None, total: int = 30) -> Step:
    names = tuple(f"meter {place}" for place in range(weak))
    coverage = Coverage(
        total, answered, unknown=total - answered, what="documents", weak=weak, weak_items=names, confidence=sure
    )
    return Step(number, "each", "What does it show?", mode="each", coverage=coverage)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([rows(1, 30, 0, 0.8)], 0.8),
        ([rows(1, 27, 0, 0.8)], 0.72),  # three rows are missing from a total
        ([rows(1, 30, 2, 0.3)], 0.3),
        ([rows(1, 30, 0, None)], None),
        ([rows(1, 15, 0, 0.8), step(2, 0.5)], 0.2),
        ([rows(1, 0, 0, None)], None),
    ],
)
def test_total_over_rows_has_their_lowest_confidence(steps: list[Step], expected: float | None) -> None:
    trace = replace(judged(trace_of(*steps, answer=Answer("3435"))), citations=())
    assert trace.answer.confidence == expected
    assert trace.weak is (expected is not None and expected < 0.5)
    assert from_json(to_json(trace)).coverage == trace.coverage


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (rows(1, 30, 2, 0.3), "since 2 of 30 answers are weak ('What does it show?'): check"),
        (rows(1, 12, 0, 0.9), "since 18 of 30 documents have no answer: check"),
        (
            rows(1, 20, 3, 0.3),
            "since 3 of 20 answers are weak ('What does it show?') and 10 of 30 documents have no answer: check",
        ),
    ],
)
def test_remark_counts_weak_and_unknown_rows(step: Step, reason: str) -> None:
    assert reason in judged(trace_of(step, answer=Answer("3435"))).remark
    assert ("weak" in str(step.coverage)) is bool(step.coverage and step.coverage.weak)


def test_only_steps_that_the_answer_depends_on_count() -> None:
    steps = step(1, 0.8), step(2, 0.1), step(3, 0.5)
    assert confidence(trace_of(*steps, depends_on=(1, 3))) == 0.4
    assert confidence(trace_of(*steps, depends_on=())) == 0.8  # an older trace only has its citations


def test_an_answer_is_no_surer_than_it_claims() -> None:
    assert confidence(trace_of(step(1, 0.9), answer=Answer("Ada", confidence=0.3))) == 0.3
    assert confidence(trace_of(step(1, None), answer=Answer("Ada", confidence=0.3))) == 0.3


def test_deriving_confidence_again_changes_nothing() -> None:
    once = judged(trace_of(step(1, 0.7), step(2, 0.6), answer=Answer("Ada", confidence=0.6)))
    assert (once.answer.confidence, once.weak) == (0.42, True)
    assert judged(with_confidence(once)) == once
    assert from_json(to_json(once)) == once


def test_lists_are_as_sure_as_their_weakest_item() -> None:
    steps = step(1, 0.9), step(2, 0.9, needs=(1,)), step(3, 0.7), step(4, 0.8)
    cited = tuple(Citation(number, "mill", number) for number in (2, 3))
    trace = replace(trace_of(*steps, depends_on=(1, 2, 3)), citations=cited, item_citations={"0": (1,), "1": (2,)})
    trace = replace(trace, citations=(Citation(1, "mill", 2), Citation(2, "ada", 3)))
    assert confidence(trace) == 0.7
    assert confidence(replace(trace, item_citations={"0": (1,)})) == 0.7  # no item cites step 3
    assert confidence(replace(trace, item_citations={})) == 0.567


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([step(1, 0.4)], ""),
        ([step(1, 0.4, "who?"), step(2, 0.9)], ", since 'who?' was answered 'Ada'"),
        (
            [step(1, 0.7), step(2, 0.6, "who?")],
            ", since it takes 2 answers, of which the weakest is 'Ada' to 'who?'",
        ),
    ],
)
def test_the_remark_names_the_weakest_step(steps: list[Step], reason: str) -> None:
    trace = judged(trace_of(*steps))
    assert trace.remark == f"weak answer, confidence {trace.answer.confidence:.2f}{reason}: check it elsewhere"


class Doubtful:
    """An Answer agent with a confidence for each question, by a word in it."""

    def __init__(self, confidences: dict[str, float]) -> None:
        self.confidences = confidences

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        texts = {"founder": "Ada Berg", "born": "1852", "die": "1931"}
        word = next(word for word in texts if word in query)
        return Reading(texts[word], True, (0,), confidence=self.confidences[word])


async def asked(program: str, **confidences: float) -> Trace:
    async with PyRAG(retriever=InMemoryRetriever(PAGES), answerer=Doubtful(confidences)) as rag:
        return await rag.arun(program)


LIFE = """
docs = retrieve("Ada Berg")
born = answer("When was Ada Berg born?", docs)
died = answer("When did Ada Berg die?", docs)
"""


async def test_steps_that_cite_the_same_passage_all_count() -> None:
    trace = await asked(LIFE + "final_answer = int(died) - int(born)", born=0.9, die=0.5)
    assert (trace.answer.text, len(trace.citations)) == ("79", 1)
    assert (trace.answer.confidence, trace.weak) == (0.45, True)
    assert "of which the weakest is '1931' to 'When did Ada Berg die?'" in trace.remark


async def test_items_and_unused_answers_are_apart() -> None:
    trace = await asked(LIFE + "final_answer = {'born': born, 'died': died}", born=0.9, die=0.6)
    assert trace.answer.confidence == 0.6
    trace = await asked(LIFE + "final_answer = born", born=0.9, die=0.6)
    assert trace.answer.confidence == 0.9


async def test_an_own_answerer_gets_the_rule_over_hops() -> None:
    async with PyRAG(
        retriever=InMemoryRetriever(PAGES), answerer=Doubtful({"founder": 0.7, "born": 0.6, "die": 1.0})
    ) as rag:
        trace = await rag.aask("When was the founder of the mill of Alpha born?")
    assert (trace.answer.text, trace.answer.confidence, trace.weak) == ("1852", 0.42, True)
    assert "weakest is '1852' to 'When was Ada Berg born?'" in trace.remark

"""Filters that find nothing say why, cost no more than rows times comparisons, and end with their caller."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag._io.threads import Stop, StoppedError, in_stoppable_thread
from pyrag.retrieval.bm25 import Bm25Retriever, index_of
from pyrag.retrieval.filters.bound import BoundRetriever
from pyrag.retrieval.filters.columns import MetadataColumns
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.filters.metadata import encoded
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.filters.verdict import ABOUT_FILTER, NOTHING_TO_SAY, judge
from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.protocol import OwnRetriever, Retriever, filter_verdict
from pyrag.retrieval.rerank import RerankingRetriever
from pyrag.trace.model import Passage

from .test_filters import filters, metadata

ROWS: list[dict[str, Any]] = [
    {"year": 1990, "team": "ops", "day": "2024-05-01", "tags": ["draft", "old"], "seen": "5 March 2020", "open": True},
    {"year": 2005.5, "team": "hr", "day": "2024-06-01", "tags": ["final"], "seen": "11 April 2019", "open": False},
    {"year": 1999, "team": "hr", "salary": 7, "code": "7"},
]


def columns(rows: list[dict[str, Any]] = ROWS) -> MetadataColumns:
    return MetadataColumns([encoded(row) or "{}" for row in rows])


@settings(max_examples=200)
@given(st.lists(metadata, max_size=8), filters)
def test_columns_pass_what_filters_match(rows: list[dict[str, Any]], where: Filter) -> None:
    assert list(columns(rows).mask(where)) == [where.matches(row) for row in rows]


@pytest.mark.parametrize(
    ("where", "says", "mismatched"),
    [
        ("yaer > 3", "names the field 'yaer', which no passage has: did you mean 'year'? the fields are ", True),
        ("Team = 'ops'", "did you mean 'team'?", True),
        ("exists zork", "names the field 'zork', which no passage has: the fields are 'team', 'year'", True),
        ("year = '1990'", "and its values are numbers such as 1990: write 1990 without quotes", True),
        ("year in ('1990', '1999')", "compares 'year' with the text \"1990\", and its values are numbers", True),
        ("year != 'x'", "compares 'year' with the text \"x\", and its values are numbers such as 1990", True),
        ("code = 7", 'its values are texts such as "7": put the value in quotes, "7"', True),
        ("open = 'true'", "its values are true and false such as false: write true without quotes", True),
        ("day >= 2024", "these are dates kept as texts, so compare them with a text, day >= \"2024\"", True),
        ("day = 2024", 'compare them with a text, day >= "2024" and day < "2025"', True),
        ("day > 2024", 'compare them with a text, day >= "2025"', True),
        ("day <= 2024", 'compare them with a text, day < "2025"', True),
        ("day >= 20240501", 'compare them with a text, day >= "2024-05-01"', True),
        ("seen > 2020", "these are dates kept as texts, which only = and in can find", True),
        ("seen > '2020-01-01'", "by characters, which does not order dates such as '11 April 2019'", False),
        ("day < 'June 2024'", "by characters, which does not order dates such as 'June 2024'", False),
        ("tags = 'draft'", 'its values are lists such as "draft": write tags contains "draft"', True),
        ("year contains 'x'", "compares 'year' with the text \"x\", and its values are numbers", True),
        ("team = 'Ops'", 'finds nothing: no passage has team = "Ops"; its values are "hr", "ops"', False),
        ("year > 2020", "finds nothing: no passage has year > 2020; its values go from 1990 to 2005.5", False),
        ("tags contains 'new'", 'its values are "draft", "final", "old"', False),
        ("year < 1995 and team = 'hr'", "passes no passage: each of its comparisons passes some", False),
        ("yaer = 1 or year = 1990", "did you mean 'year'?", False),
        ("yaer = 1 and year = 1990", "did you mean 'year'?", True),
    ],
)  # fmt: skip
def test_a_filter_that_finds_nothing_says_why(where: str, says: str, mismatched: bool) -> None:
    verdict = judge(parsed(where), columns())
    assert len(verdict.sentences) == 1
    assert says in verdict.sentences[0]
    assert verdict.sentences[0].startswith(ABOUT_FILTER)
    assert verdict.mismatched == mismatched


@pytest.mark.parametrize(
    "where",
    ["year >= 1990", "not exists zork", "team != 'ops'", "tags not contains 'x'", "day >= '2024'", "day = '2024-05-01'",
     "year > 1990 or team = 'ops'", "open = true", "seen = '5 March 2020'", "team > 'a'"],
)  # fmt: skip
def test_a_filter_that_finds_something_is_not_remarked(where: str) -> None:
    assert judge(parsed(where), columns()) == NOTHING_TO_SAY


def test_an_empty_index_has_nothing_to_say() -> None:
    assert judge(parsed("team = 'ops'"), columns([])) == NOTHING_TO_SAY
    assert "there are no fields" in judge(parsed("team = 'ops'"), columns([{}])).sentences[0]


@pytest.mark.parametrize("where", ["salry > 3", "salary = 'x'", "salary > 100", "code = 1", "team = 'x'", "zork = 1"])
async def test_what_a_permission_hides_is_not_named(where: str) -> None:
    passages = [Passage(str(n), "", "mill", metadata=row) for n, row in enumerate(ROWS)]
    retriever = Bm25Retriever(index_of(passages))
    open_verdict = await filter_verdict(retriever, parsed(where))
    assert open_verdict.sentences
    allowed = BoundRetriever(retriever, parsed("team = 'ops'"))
    for verdict in (
        await filter_verdict(allowed, parsed(where)),
        await filter_verdict(BoundRetriever(allowed, parsed(where), own=True), parsed(where)),
        await filter_verdict(retriever, parsed(where), parsed("team = 'ops'")),
    ):
        assert verdict.sentences
        told = verdict.sentences[0].replace(where, "")
        assert not any(hidden in told for hidden in ("'salary', '", "'code', '", "hr", "7", "2005"))
        assert "did you mean" not in told or "year" not in where


async def test_a_permission_is_not_judged_itself() -> None:
    retriever = Bm25Retriever(index_of([Passage("a", "", "mill", metadata={"team": "ops"})]))
    assert await filter_verdict(BoundRetriever(retriever, parsed("taem = 1")), parsed("taem = 1")) == NOTHING_TO_SAY
    own = BoundRetriever(retriever, parsed("taem = 1"), own=True)
    assert "did you mean 'team'?" in (await filter_verdict(own, parsed("taem = 1"))).sentences[0]


async def test_retrievers_around_another_pass_its_verdict_on() -> None:
    inner = Bm25Retriever(index_of([Passage("a", "", "mill", metadata={"team": "ops"})]))
    around: list[Retriever] = [
        OwnRetriever(inner), RerankingRetriever(inner, lambda query, found: [1.0 for _ in found]),
        HybridRetriever({"a": WeightedRetriever(InMemoryRetriever([])), "b": WeightedRetriever(inner)}),
    ]  # fmt: skip
    for retriever in around:
        assert "did you mean 'team'?" in (await filter_verdict(retriever, parsed("taem = 1"))).sentences[0]
    assert await filter_verdict(InMemoryRetriever([]), parsed("taem = 1")) == NOTHING_TO_SAY


async def test_a_retriever_that_fails_to_judge_does_not_matter() -> None:
    class Broken(InMemoryRetriever):
        async def judge_filter(self, where: Filter, within: Filter | None = None) -> Any:
            raise OSError("gone")

    class Odd(InMemoryRetriever):
        async def judge_filter(self, where: Filter, within: Filter | None = None) -> Any:
            return "fine"

    for retriever in (Broken([]), Odd([])):
        assert await filter_verdict(retriever, parsed("a = 1")) == NOTHING_TO_SAY


def test_metadata_is_decoded_once_for_many_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    held = columns([{"n": number, "m": -number} for number in range(3000)])
    passes = []
    rows = held.rows
    monkeypatch.setattr(held, "rows", lambda *given: passes.append(1) or rows(*given))
    for number in range(50):
        assert 1 in held.mask(parsed(" or ".join(f"n = {number + k} or m < {-k}" for k in range(100))))
        held.mask(parsed(f"unknown{number} = 1"))
    assert len(passes) == 1


def test_work_on_a_filter_ends_when_nobody_waits() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(StoppedError):
        columns().mask(parsed("year = 1"), stop)
    held = columns()
    held.mask(parsed("year = 1"))
    with pytest.raises(StoppedError):
        held.mask(parsed("year = 2 or year = 3"), stop)


async def test_cancelling_a_search_ends_its_thread() -> None:
    ended, steps = threading.Event(), itertools.count()

    def work(stop: Stop) -> None:
        try:
            while next(steps) < 10_000_000:
                stop.check()
        except StoppedError:
            ended.set()
            raise

    task = asyncio.create_task(in_stoppable_thread(work))
    while next(steps) < 100:  # noqa: ASYNC110 (the thread counts, and sets no event)
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 60)

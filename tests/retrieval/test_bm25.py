"""Searching: what is found, in which order, and that a query is words and nothing else."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import ServiceError
from pyrag.retrieval import bm25
from pyrag.retrieval.bm25 import Bm25Index, Bm25Retriever, index_of
from pyrag.retrieval.words.forms import plain
from pyrag.trace.model import Passage

PASSAGES = [
    Passage("hoyer", "Jed Hoyer", "Jed Hoyer (born December 7, 1973) is president of the Chicago Cubs.", source="a.md"),
    Passage("henry", "John W. Henry", "John William Henry II was born on September 13, 1949."),
    Passage("cubs", "Chicago Cubs", "A baseball team; its president was born in Plymouth. Jed worked there."),
    Passage("galaxy", "星河", "《星河》是一部2010年的电影，由王伟导演。"),
    Passage("river", "长江", "长江是亚洲最长的河流，星星很多。"),
    Passage("tokyo", "東京", "東京は日本の首都で、がっこうがたくさんある。"),
    Passage("moscow", "Москва", "Столи\u0301ца России. Её основал Юрий Долгорукий."),
    Passage("zurich", "Zürich", "Łódź, Ærøskøbing and Zürich are towns; cafés are ﬁne there, ＦＵＬＬ ｗｉｄｔｈ too."),
    Passage("cafe", "Decomposed", "cafe\u0301 noir"),
    Passage("hindi", "हिन्दी", "हिन्दी भारत की भाषा है।"),
    Passage("thai", "กรุงเทพมหานคร", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"),
    Passage("who", "The Who", "They are a rock band."),
    Passage("syntax", "Query language", "title:x AND body:y OR NOT (z) means something to a parser, as does *."),
]


@pytest.fixture(scope="module")
def index() -> Bm25Index:
    return index_of(PASSAGES)


def ids(index: Bm25Index, query: str, topk: int = 5) -> list[str]:
    return [passage.id for passage in index.search(query, topk)]


def test_the_best_comes_first_with_all_it_has(index: Bm25Index) -> None:
    best, *rest = index.search("When was Jed Hoyer born?", 5)
    assert best == Passage("hoyer", "Jed Hoyer", PASSAGES[0].text, best.score, "a.md")
    assert all(best.score > other.score > 0 for other in rest)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("谁导演了《星河》？", "galaxy"),
        ("星河", "galaxy"),
        ("亚洲最长的河流是什么", "river"),
        ("日本の首都はどこですか", "tokyo"),
        ("がっこう", "tokyo"),
        ("столица россии", "moscow"),
        ("Ее основал", "moscow"),
        ("zurich", "zurich"),
        ("ZÜRICH", "zurich"),
        ("Zu\u0308rich", "zurich"),
        ("lodz aeroskobing", "zurich"),
        ("fine full width", "zurich"),
        ("café noir", "cafe"),
        ("CAFE NOIR", "cafe"),
        ("हिन्दी भाषा", "hindi"),
        ("เมืองหลวงของไทย", "thai"),
        ("presidents", "cubs"),
        ("Who are The Who?", "who"),
        ("who", "who"),
        ("Who's John Henry’s team", "henry"),
    ],
)
def test_words_are_found_in_any_script(index: Bm25Index, query: str, first: str) -> None:
    assert ids(index, query)[0] == first


@pytest.mark.parametrize("query", ["", "   ", "?!", "《》", '"', "\x00", "\ud800", "👍", "***"])
def test_a_query_without_words_finds_nothing(index: Bm25Index, query: str) -> None:
    assert index.search(query, 5) == []


@pytest.mark.parametrize(
    "query",
    [
        "title:hoyer",
        "+hoyer -jed",
        '"jed hoyer"~9^3',
        "hoyer)",
        "(hoyer",
        "hoyer AND",
        "NOT hoyer",
        "hoyer^99 [a TO",
        "/hoyer/",
    ],
)
def test_query_syntax_is_only_words(index: Bm25Index, query: str) -> None:
    found = ids(index, query)
    assert "hoyer" in found
    assert set(found) <= {"hoyer", "cubs", "syntax"} | set(ids(index, "title a to"))


@pytest.mark.parametrize("query", ["*", "/.*/", "title:*", "[a TO z]", "IN [x y]", "-xyzzy"])
def test_nothing_matches_everything(index: Bm25Index, query: str) -> None:
    assert set(ids(index, query, 50)) <= {"syntax", "cubs"} | set(ids(index, "a z title in x y", 50))
    assert len(ids(index, query, 50)) < len(PASSAGES) / 2


@given(st.text(max_size=60), st.integers(0, 9))
def test_any_text_is_a_query(query: str, topk: int) -> None:
    found = _SHARED.search(query, topk)
    assert len(found) <= topk
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert found == _SHARED.search(query, topk)


_SHARED = index_of(PASSAGES)


@given(st.text())
def test_plain_text_can_be_encoded(text: str) -> None:
    plain(text).encode()


def test_equal_scores_keep_the_order_of_the_source() -> None:
    same = [Passage(f"{300 - n}", "t", "word", source="a", start=n) for n in range(300)]
    index = index_of(same)
    assert ids(index, "word", 3) == ["300", "299", "298"]


def test_equal_scores_are_the_same_at_the_cut() -> None:
    same = [Passage(f"{n:03}", "t", "word") for n in range(300)]
    index = index_of(same[::-1])
    assert ids(index, "word", 3) == ["000", "001", "002"]
    assert len(ids(index, "word", 1000)) == 300


def test_topk_below_one_finds_nothing(index: Bm25Index) -> None:
    assert index.search("jed", 0) == index.search("jed", -3) == []


def test_a_passage_as_query_is_fine(index: Bm25Index) -> None:
    assert ids(index, " ".join(f"w{n}" for n in range(5000)) + " jed") == []  # only the first 512 words count
    assert ids(index, "jed " + " ".join(f"w{n}" for n in range(5000)))[0] in ("hoyer", "cubs")


async def test_retriever_in_the_loop_and_in_threads(index: Bm25Index, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = Bm25Retriever(index, "bm25:x")
    assert retriever.name == "bm25:x"
    here = await retriever.retrieve("Jed Hoyer", 3)
    monkeypatch.setattr(bm25, "INLINE_PASSAGES", 0)
    assert await asyncio.gather(*(retriever.retrieve("Jed Hoyer", 3) for _ in range(50))) == [here] * 50
    await retriever.aclose()


async def test_a_failing_search_names_the_index(index: Bm25Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(query: str, topk: int, where: object) -> list[Passage]:
        raise ValueError("An IO error occurred: 'gone'")

    monkeypatch.setattr(index, "search", broken)
    with pytest.raises(ServiceError, match=r"index bm25:x cannot be searched \(.*gone.*\): build it again"):
        await Bm25Retriever(index, "bm25:x").retrieve("x", 1)

"""What retrievers give is mended or left out with a note: it never costs the question, and never raises out of ask."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag import Passage, PyRAG
from pyrag.errors import MalformedReplyError
from pyrag.retrieval.checked import MAX_TEXT, MAX_TEXTS, checked, content_id
from pyrag.retrieval.http import HttpRetriever

from .conftest import Server

GOOD = Passage("good", "Lantern Street", "Lantern Street is a 1987 film directed by Ada Quill.")
QUESTION = "Who directed the film Lantern Street?"


def note(*given: Any, topk: int = 9) -> str:
    return "\n".join(checked(given, topk).notes)


def test_good_passages_come_through_as_they_are() -> None:
    other = Passage("b", "", "Ünïcode\tand\nlines", 1.5, "a.txt", {"bm25": 2.0}, 3, 9)
    found = checked([GOOD, other], 5)
    assert found == [GOOD, other]
    assert found[1] is other
    assert found.notes == ()
    assert checked([GOOD, other], 1) == [GOOD]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, "high", [], object()])
def test_a_score_that_is_no_number_counts_as_zero(score: Any) -> None:
    (found,) = checked([Passage("a", "t", "x", score)], 1)
    assert found.score == 0.0
    assert "not a finite number" in note(Passage("a", "t", "x", score))


@pytest.mark.parametrize("score", [3, np.float32(3), True, "3"])
def test_a_number_of_another_type_is_a_score(score: Any) -> None:
    assert checked([Passage("a", "t", "x", score)], 1)[0].score == float(score)


@pytest.mark.parametrize("odd", [None, 3, "text", b"text", [], {}, {"text": 3}, object(), Passage("a", "t", None)])  # type: ignore[arg-type]
def test_what_is_no_passage_is_left_out(odd: Any) -> None:
    found = checked([odd, GOOD], 5)
    assert list(found) == [GOOD]
    assert found.notes[0].startswith("left out: ")


def test_fields_of_other_types_are_mended() -> None:
    (found,) = checked([Passage(7, None, "x", parts="no", source=3.5, start="2", end=-1)], 1)  # type: ignore[arg-type]
    assert found == Passage("7", "", "x")
    (unnamed,) = checked([Passage(None, "t", "x")], 1)  # type: ignore[arg-type]
    assert unnamed.id == content_id("t", "x")


def test_mappings_are_read_as_servers_send_them() -> None:
    found = checked([{"id": 1, "title": "T", "text": "x", "score": 2}, {"contents": '"T"\ny'}], 5)
    assert found[0] == Passage("1", "T", "x", 2.0)
    assert (found[1].title, found[1].text, found.notes) == ("T", "y", ())


def test_half_a_character_and_controls_are_replaced() -> None:
    (found,) = checked([Passage("a\ud800", "t", "b\udfffc\x00d")], 1)
    assert (found.id, found.text) == ("a?", "b?c d")
    assert "half a character was replaced; 2 times" in note(Passage("a\ud800", "t", "b\udfff"))


@pytest.mark.parametrize("letter", ["x", "é", "中", "😀"])
def test_a_long_text_is_cut_at_a_character(letter: str) -> None:
    (found,) = checked([Passage("a", "t", letter * (MAX_TEXT + 10))], 1)
    size = len(found.text.encode())
    assert MAX_TEXT - 4 < size <= MAX_TEXT
    assert set(found.text) == {letter}
    assert "was cut to 1.0 MB" in note(Passage("a", "t", letter * (MAX_TEXT + 10)))


def test_all_texts_together_have_a_limit() -> None:
    found = checked([Passage(str(n), "t", "x" * MAX_TEXT) for n in range(30)], 30)
    assert sum(len(one.text) for one in found) == MAX_TEXTS
    assert "left out: more than 7 MB of text at once; 23 times" in found.notes


def test_passages_of_one_id_are_told_apart() -> None:
    found = checked([Passage("a", "t", f"text {n}") for n in range(4)] + [Passage("a", "t", "text 0"), GOOD], 9)
    assert len({one.id for one in found}) == len(found) == 5
    assert all(one.id.startswith("a#") for one in found[:4])
    assert found.notes == ("5 passages have the same id 'a': their texts tell them apart now",)


class Hostile:
    """An object that fails whatever is done with it."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary() | st.builds(Hostile),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
passages = st.builds(Passage, anything, anything, anything, anything, anything, anything, anything, anything)
documents = st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "title", "text", "contents", "score"), anything))


@settings(max_examples=300)
@given(st.lists(passages | documents | anything, max_size=6))
def test_whatever_comes_in_valid_passages_come_out(found: list[Any]) -> None:
    for one in checked(found, 5):
        assert one.id
        json.dumps([one.id, one.title, one.text, one.score, one.source, one.parts, one.start, one.end], allow_nan=False)
        f"{one.id}{one.title}{one.text}{one.source}".encode()
    assert list(checked(checked(found, 5), 5)) == list(checked(found, 5))


@dataclass
class Own:
    """A retriever of a user's: gives what `make` makes."""

    make: Callable[[], Any]
    name: Any = "mine"

    async def retrieve(self, query: str, topk: int) -> Any:
        return self.make()

    async def aclose(self) -> None: ...


class Abrupt(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no")


def raising(error: BaseException) -> Callable[[], Any]:
    def make() -> Any:
        raise error

    return make


def generator() -> Iterator[Any]:
    while True:
        yield GOOD


async def stream() -> Any:
    for n in range(1000):
        yield Passage(str(n), GOOD.title, GOOD.text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: [GOOD, None, 3, {"text": math.nan}],
        lambda: (GOOD,),
        generator,
        stream,
        lambda: [{"text": GOOD.text, "title": GOOD.title}],
        lambda: [Passage(str(n), GOOD.title, (GOOD.text + " ") * 60_000) for n in range(5)],
        lambda: [Passage("x", GOOD.title, f"{GOOD.text} {n}") for n in range(5)],
        lambda: [Passage("a\ud800", GOOD.title, GOOD.text + "\udfff", math.nan)],
    ],
)
def test_odd_results_answer_the_question(make: Callable[[], Any]) -> None:
    with PyRAG(retriever=Own(make)) as rag:
        trace = rag.ask(QUESTION)
    assert (trace.error, trace.answer.text) == (None, "Ada Quill")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: None, "the retriever mine returned None: it must return a list"),
        (lambda: {"a": 1}, "the retriever mine returned {'a': 1}: it must"),
        (lambda: "text", "returned 'text'"),
        (lambda: [3, None], r"returned [3, None]"),
        (Hostile, "returned Hostile: it must"),
        (lambda: [Hostile()], "returned list: it must"),
        (raising(ValueError("no disk\nleft")), "failed (ValueError: no disk left): look into its code"),
        (raising(Abrupt()), "failed (Abrupt: ): look"),
        (raising(SystemExit(3)), "failed (SystemExit: 3)"),
        (raising(StopIteration("x")), "failed (RuntimeError: coroutine raised StopIteration)"),
        (raising(asyncio.CancelledError()), "failed (it cancelled itself)"),
        (raising(RecursionError("deep")), "failed (RecursionError: deep)"),
        (raising(ExceptionGroup("two", [OSError("a")])), "failed (ExceptionGroup: two (1 sub-exception))"),
    ],
)
def test_what_cannot_be_used_is_an_error_of_the_question(make: Callable[[], Any], said: str) -> None:
    with PyRAG(retriever=Own(make)) as rag:
        trace = rag.ask(QUESTION)
        assert trace.error is not None
        assert said in trace.error.message
        assert trace.error.kind == "service"


def test_warnings_are_in_the_trace() -> None:
    with PyRAG(retriever=Own(lambda: [GOOD, None, Passage("b", "", "x", math.nan)])) as rag:
        trace = rag.ask(QUESTION)
    assert trace.warnings == (
        "the retriever mine: left out: no pyrag.Passage (None)",
        "the retriever mine: a score that is not a finite number counts as 0",
    )


def test_texts_that_change_under_one_id_are_kept_apart() -> None:
    counter = iter(range(1000))

    async def main() -> list[str]:
        from pyrag.runtime.answering import answer_question  # noqa: F401 (the path that this is about)

        async with PyRAG(retriever=Own(lambda: [Passage("same", GOOD.title, f"{GOOD.text} {next(counter)}")])) as rag:
            trace = await rag.aask("Who is older, the director of Lantern Street or the director of Mill Road?")
        return [*trace.warnings, *(f"{key}: {one.text}" for key, one in trace.passages.items())]

    found = asyncio.run(main())
    assert "the retriever mine: other texts under the same id 'same'" in found
    assert any(line.startswith("same#") for line in found)


class Bare:
    """Nothing but `retrieve`, and not even asynchronous."""

    def retrieve(self, query: str, topk: int) -> Any:
        return [GOOD]


class Grudging(Bare):
    @property
    def name(self) -> str:
        raise RuntimeError("no name")

    def __bool__(self) -> bool:
        return False

    async def aclose(self) -> None:
        raise RuntimeError("stays open")


def test_an_object_with_retrieve_alone_is_enough() -> None:
    with PyRAG(retriever=Bare()) as rag:  # type: ignore[arg-type]
        trace = rag.ask(QUESTION)
    assert (trace.answer.text, trace.retriever) == ("Ada Quill", "Bare")


def test_name_and_closing_fail_no_question() -> None:
    rag = PyRAG(retriever=Grudging())  # type: ignore[arg-type]
    trace = rag.ask(QUESTION)
    assert (trace.answer.text, trace.retriever) == ("Ada Quill", "Grudging")
    with pytest.warns(UserWarning, match=r"Grudging could not be closed \(RuntimeError: stays open\)"):
        asyncio.run(rag.engines.retriever.aclose())
    rag._retriever = Bare()  # type: ignore[assignment]


def serving(body: bytes) -> Any:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    return handler


@pytest.mark.parametrize(
    ("document", "kept"),
    [
        (b'{"text": "x", "score": NaN}', True),
        (b'{"text": "x", "score": -Infinity}', True),
        (b'{"text": "x", "score": 1e999}', True),
        (b'{"text": "x", "score": "high", "id": [1], "title": 5, "source": {}, "start": "1", "parts": []}', True),
        (b'{"text": "half \\ud800"}', True),
        (b'{"text": "byte \xff"}', True),
        (b'{"document": {"text": "x", "id": null}, "score": {}}', True),
        (b'{"text": 3}', False),
        (b"null", False),
        (b'["x"]', False),
        (b'{"document": 3}', False),
    ],
)
async def test_odd_documents_of_a_server_cost_nothing_else(server: Server, document: bytes, kept: bool) -> None:
    server.handler = serving(b'{"result": [[%s, {"id": "b", "text": "good"}]]}' % document)
    retriever = HttpRetriever(server.url)
    found = await retriever.retrieve("q", 5)
    assert [one.text for one in found][-1] == "good"
    assert len(found) == 1 + kept
    server.handler = serving(b'{"result": [[%s]]}' % document)
    if not kept:
        with pytest.raises(MalformedReplyError, match="a document without contents or text"):
            await retriever.retrieve("q", 5)
    await retriever.aclose()


async def test_notes_on_a_server_reach_the_trace(server: Server) -> None:
    good = json.dumps({"id": "b", "title": GOOD.title, "text": GOOD.text}).encode()
    server.handler = serving(b'{"result": [[{"text": 3}, %s]]}' % good)
    async with PyRAG(retriever=server.url, rerank="reader") as rag:
        trace = await rag.aask(QUESTION)
    assert trace.answer.text == "Ada Quill"
    assert any("left out: a document without a text" in one for one in trace.warnings)

"""Promise 15 for enumeration: hostile programs see nothing of documents that the caller's filter excludes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.retrieval.bm25 import Bm25Retriever, index_of
from pyrag.retrieval.index import update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.codec import to_json
from pyrag.trace.model import Passage, Trace

BOUND = 'team = "ops"'
PASSAGES = [
    Passage("open-1", "Mill", "The mill was founded by Ann Lee.", metadata={"team": "ops", "n": 1}),
    Passage("hush-1", "Hush one", "The hush mill was founded by Bo Hush.", metadata={"team": "law", "hush_pay": 7}),
    Passage("hush-2", "Hush two", "The hush mill has no team."),
    Passage("mix.md#0", "Hush title > Hush part", "hush text", source="/h/mix.md", start=0, metadata={"team": "law"}),
    Passage("mix.md#1", "Mixed > Part", "The lock was founded by Cy Diaz.", source="/h/mix.md", start=9,
            metadata={"team": "ops"}),
    Passage("hush.md#0", "Hush file", "hush file", source="/h/hush.md", start=0, metadata={"team": "law"}),
]  # fmt: skip


def in_memory(_: Path) -> Any:
    return InMemoryRetriever(PASSAGES)


def in_index(_: Path) -> Any:
    return Bm25Retriever(index_of(PASSAGES))


class Leaky(InMemoryRetriever):
    """Ignores filters where it lists and opens."""

    async def list_documents(self, where: Any, offset: int, limit: int) -> Any:
        return await super().list_documents(None, offset, limit)

    async def document_passages(self, document: str, where: Any) -> Any:
        return await super().document_passages(document, None)


@pytest.fixture(scope="module", params=["object", "question"])
def bound(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Trace]]:
    """Run of a program under the filter of an object, or of one question, over an index."""
    if request.param == "object":
        with PyRAG(retriever=in_index(Path()), where=BOUND) as rag:
            yield rag.run
    else:
        with PyRAG(retriever=in_memory(Path())) as rag:
            yield lambda source: rag.run(source, where=BOUND)


def assert_hushed(trace: Trace, source: str) -> None:
    """Check that a trace holds nothing of what is excluded, except words of the program itself."""
    text = to_json(trace).decode()
    for part in (json.dumps(source)[1:-1], json.dumps(json.dumps(source)[1:-1])[1:-1]):
        text = text.replace(part, "")
    assert "Hush" not in text
    assert "hush text" not in text
    assert "hush file" not in text


@pytest.mark.parametrize(
    "where",
    [
        "None",
        "'team = \"law\"'",
        '\'team = "ops" or team = "law"\'',
        "'not exists team'",
        "'exists team or not exists team'",
        "{'or': [{'team': 'law'}, {'not': {'team': 'law'}}]}",
        "{'not': {'team': 'ops'}}",
        "'team != \"ops\"'",
        "'team > \"\"'",
    ],
)
def test_no_filter_widens_enumeration(bound: Callable[[str], Trace], where: str) -> None:
    source = f"docs = documents({where})\nfinal_answer = [docs, count({where}), each(docs, 'Who founded it?')]"
    trace = bound(source)
    if trace.error is not None:  # the filter excludes every document that the program may see
        assert_hushed(trace, source)
        return
    documents, number, rows = trace.value
    assert {one["id"] for one in documents} <= {"open-1", "mix.md"}
    assert (number, len(rows)) == (len(documents), len(documents))
    assert [one["passages"] for one in documents] == [1] * len(documents)
    assert_hushed(trace, source)


@pytest.mark.parametrize(
    "name", ["hush-1", "hush-2", "hush.md", "/h/hush.md", "mix.md#0", "hush.md#0", "../hush.md", "*", "' OR 1=1 --"]
)
def test_guessed_ids_open_nothing_and_tell_nothing(bound: Callable[[str], Trace], name: str) -> None:
    told = "str(e).replace(repr(name), '')"
    source = f"try:\n    final_answer = open_document(name)\nexcept Exception as e:\n    final_answer = {told}"
    message = bound(f"name = {name!r}\n{source}").value
    assert message == bound(f"name = 'no such thing'\n{source}").value
    assert "there is no document" in message


def test_document_of_mixed_passages_shows_only_those_that_pass(bound: Callable[[str], Trace]) -> None:
    source = (
        "mixed = [d for d in documents() if d.id == 'mix.md'][0]\n"
        "final_answer = [mixed, open_document(mixed), open_document('mix.md', section='part')]"
    )
    trace = bound(source)
    assert trace.error is None
    document, *opened = trace.value
    assert (document["title"], document["passages"], document["metadata"]) == ("Mixed", 1, {"team": "ops"})
    assert opened == [[{"passage": "mix.md#1"}]] * 2
    wrong = bound("final_answer = open_document('mix.md', section='hush part')")
    assert wrong.error is not None
    assert wrong.error.message.endswith("its headings are 'Part'; or give a number, from 1")
    for ended in (trace, wrong):
        assert_hushed(ended, ended.program)


def test_names_of_excluded_fields_and_searches_stay_hidden(bound: Callable[[str], Trace]) -> None:
    source = "final_answer = each(['hush mill', 'lock'], 'Who founded the {item}?')"
    trace = bound(source)
    assert_hushed(trace, source)
    known, unknown = (bound(f"final_answer = count('{name} > 0')") for name in ("hush_pay", "no_field"))
    shown = [one.error.message.replace(name, "") if one.error else one.value
             for one, name in ((known, "hush_pay"), (unknown, "no_field"))]  # fmt: skip
    assert [str(text).splitlines()[1:] for text in shown[:1]] == [str(text).splitlines()[1:] for text in shown[1:]]


def test_leaky_catalogues_of_others_are_held_to_the_filter() -> None:
    with PyRAG(retriever=Leaky(PASSAGES)) as rag:
        for source in ("final_answer = [d.id for d in documents()]", "final_answer = open_document('mix.md')"):
            trace = rag.run(source, where=BOUND)
            assert trace.value in (["open-1"], [{"passage": "mix.md#1"}])
            assert_hushed(trace, source)


def test_filter_holds_for_an_index_folder(tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "title": f"T{n}", "text": f"row {n}", "team": ("ops", "law")[n % 2]} for n in range(6)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    update_index([tmp_path / "rows.jsonl"], tmp_path / "ix")
    with PyRAG(retriever=str(tmp_path / "ix"), where=BOUND) as rag:
        value = rag.run("final_answer = [count(), [d.id for d in documents()], count('team = \"law\"')]").value
        assert value == [3, ["r0", "r2", "r4"], 0]

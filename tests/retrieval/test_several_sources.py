"""Several sources searched as one: ids, filters, weights, deadlines, sources that are down, and updates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError, FilterError, PyRAGError, ServiceError
from pyrag.retrieval import open_retriever
from pyrag.retrieval.catalogue.protocol import NoCatalogueError, count_documents, document_passages, list_documents
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.fusion.documents import FusedSource
from pyrag.retrieval.fusion.origin import LEFT_OUT
from pyrag.retrieval.fusion.retriever import FusedRetriever
from pyrag.retrieval.fusion.specs import SourceSpec, read_source, read_sources
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.protocol import Retriever, fetch_passages, passages_of
from pyrag.settings import load_settings, make_settings
from pyrag.testing import CATALOGUE_CHECKS, CatalogueCase
from pyrag.testing.checks import findings
from pyrag.trace.model import Passage

MILL = Passage("1", "Mill", "The otter mill was built in 1872.", metadata={"year": 1872})
FIRE = Passage("1", "Fire", "The otter mill burnt in 1901.", metadata={"year": 1901})


class Listed(InMemoryRetriever):
    async def fetch(self, ids: Sequence[str]) -> list[Passage]:
        return [passage for passage, _ in self._passages if passage.id in ids]


class Slow(InMemoryRetriever):
    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        await asyncio.sleep(60)
        return []


class Unfiltered:
    name = "unfiltered"

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        return [FIRE]


def fused(**retrievers: Retriever) -> FusedRetriever:
    return FusedRetriever([FusedSource(name, retriever, deadline=0.2) for name, retriever in retrievers.items()])


def both() -> FusedRetriever:
    return fused(a=Listed([MILL]), b=Listed([FIRE]))


async def test_equal_ids_of_two_sources_stay_apart() -> None:
    passages = await passages_of(both(), "otter mill", 5)
    assert {passage.id: passage.metadata["origin"] for passage in passages} == {"a:1": "a", "b:1": "b"}
    fetched = await fetch_passages(both(), ["b:1", "1", "c:1"])
    assert fetched is not None
    assert [(passage.id, passage.text, passage.metadata["origin"]) for passage in fetched] == [("b:1", FIRE.text, "b")]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ('origin = "b"', ["b:1"]),
        ('origin != "b"', ["a:1"]),
        ('origin in ("a", "c") and year > 1800', ["a:1"]),
        ('origin = "a" or year = 1901', ["a:1", "b:1"]),
        ('origin = "a" and year = 1901', []),
        ('not origin = "a" and exists origin', ["b:1"]),
    ],
)
async def test_filters_know_the_source(where: str, ids: list[str]) -> None:
    passages = await passages_of(both(), "otter mill", 5, where=parsed(where))
    assert sorted(passage.id for passage in passages) == ids


async def test_filter_of_no_source_says_which_there_are() -> None:
    verdict = await both().judge_filter(parsed('origin = "z"'))
    assert verdict.mismatched
    assert '"a", "b"' in verdict.sentences[0]
    hidden = await both().judge_filter(parsed('origin = "z"'), parsed('origin = "a"'))
    assert '"b"' not in hidden.sentences[0]


async def test_late_source_is_named_and_others_answer() -> None:
    passages = await passages_of(fused(late=Slow([]), b=InMemoryRetriever([FIRE])), "otter mill", 5)
    assert [passage.id for passage in passages] == ["b:1"]
    assert passages.notes == (f"the source late {LEFT_OUT}: it did not answer within 0.2 seconds",)


async def test_source_without_filters_is_left_out_of_filtered_searches() -> None:
    sources = fused(a=InMemoryRetriever([MILL]), b=Unfiltered())  # type: ignore[arg-type]
    assert len(await passages_of(sources, "otter mill", 5)) == 2
    passages = await passages_of(sources, "otter mill", 5, where=parsed("year > 0"))
    assert [passage.id for passage in passages] == ["a:1"]
    assert "takes no filter" in passages.notes[0]
    named = await passages_of(sources, "otter mill", 5, where=parsed('origin = "b"'))
    assert [passage.id for passage in named] == ["b:1"]
    with pytest.raises(FilterError):
        await passages_of(sources, "otter mill", 5, where=parsed('origin = "b" and year > 0'))


async def test_search_fails_if_no_source_answers() -> None:
    with pytest.raises(ServiceError, match=r"no source answered \(a: .*; b: "):
        await passages_of(fused(a=Slow([]), b=Slow([])), "otter mill", 5)


async def test_weights_decide_the_order() -> None:
    sources = [FusedSource("a", InMemoryRetriever([MILL])), FusedSource("b", InMemoryRetriever([FIRE]), weight=2)]
    assert [passage.id for passage in await FusedRetriever(sources).retrieve("otter mill", 5)] == ["b:1", "a:1"]
    assert [passage.id for passage in await both().retrieve("otter mill", 1)] == ["a:1"]


async def test_own_field_origin_is_hidden_with_a_note() -> None:
    own = Passage("1", "Mill", "otter", metadata={"origin": "b"})
    passages = await passages_of(fused(a=InMemoryRetriever([own])), "otter", 5)
    assert passages[0].metadata == {"origin": "a"}
    assert "hidden" in passages.notes[0]


def test_specs_have_names_weights_and_deadlines(tmp_path: Path) -> None:
    assert read_source("ops=notes/.pyrag#weight=2&deadline=1.5") == SourceSpec("ops", "notes/.pyrag", 2.0, 1.5)
    assert read_source("notes/.pyrag").name == "notes"
    assert read_source("http://user:secret@host:8000/retrieve").name == "host:8000"
    odd = tmp_path / "a=b#weight=2"
    odd.mkdir()
    assert read_source(str(odd)) == SourceSpec("a=b#weight=2", str(odd))


@pytest.mark.parametrize("texts", [["x/a", "y/a"], ["a#weight=0"], ["a#weight=nan"], ["a#deadline=soon"], ["a#wait=1"]])
def test_wrong_specs_are_refused(texts: list[str]) -> None:
    with pytest.raises(ConfigError):
        read_sources(texts)


def test_settings_take_lists_of_sources(tmp_path: Path) -> None:
    assert make_settings({"index": ["a", "b"], "retriever": "http://host"}).sources == ("a", "b", "http://host")
    file = tmp_path / "pyrag.toml"
    file.write_text('index = ["a", "b=c#weight=2"]\nretriever = ["http://host"]', encoding="utf-8")
    assert load_settings(config=file, environ={}).sources == (
        f"{tmp_path}/a",
        f"b={tmp_path}/c#weight=2",
        "http://host",
    )
    lower = load_settings(config=file, environ={"PYRAG_INDEX": "other"})
    assert (lower.sources, lower.index) == ((), "other")
    assert load_settings({"sources": ["x", "y"]}, config=file, environ={}).sources == ("x", "y")
    with pytest.raises(ConfigError, match="exclude each other"):
        make_settings({"sources": ["a", "b"], "index": "c"})


def built(folder: Path, text: str) -> Path:
    from typer.testing import CliRunner

    from pyrag.cli.app import app

    documents = folder.with_name(f"{folder.name}-texts")
    documents.mkdir(exist_ok=True)
    (documents / "note.txt").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["index", "build", str(documents), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def test_command_line_asks_several_sources(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from pyrag.cli.app import app

    a = built(tmp_path / "a", "The otter mill of Brook was built in 1872.")
    b = built(tmp_path / "b", "The otter mill of Brook burnt down in 1901.")
    asked = ["ask", "When was the otter mill of Brook built?", "--index", str(a), "--index", f"{b}#weight=0.5"]
    down = "http://127.0.0.1:9/retrieve#deadline=0.3"
    done = CliRunner().invoke(app, [*asked, "--retriever", f"far={down}", "--json"])
    trace = json.loads(done.stdout)
    assert "1872" in trace["answer"]
    assert trace["citations"][0]["metadata"]["origin"] == "a"
    assert any(f"the source far {LEFT_OUT}" in warning for warning in trace["warnings"])
    plain = CliRunner().invoke(app, [*asked, "--retriever", f"far={down}"])
    assert f"the source far {LEFT_OUT}" in plain.stderr


def test_each_source_follows_its_index(tmp_path: Path) -> None:
    a, b = built(tmp_path / "a", "The otter mill was built in 1872."), built(tmp_path / "b", "Nothing is here.")
    with PyRAG(retriever=[a, b]) as rag:
        assert "1901" not in rag.ask("When did the otter mill burn?", where='origin = "b"').answer.text
        built(b, "The otter mill burnt in 1901.")
        assert "1901" in rag.ask("When did the otter mill burn?", where='origin = "b"').answer.text


def test_missing_index_among_sources_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PyRAGError, match="no index"):
        open_retriever([str(tmp_path / "none"), "http://127.0.0.1:9"])


def library() -> FusedRetriever:
    pages = [Passage(f"n{at}", "Note", f"Part {at} of the note.", source="note.md", start=at) for at in range(3)]
    records = [Passage(str(at), f"Row {at}", f"row {at}", metadata={"year": 1900 + at}) for at in range(5)]
    return fused(a=InMemoryRetriever(pages), b=InMemoryRetriever(records), c=InMemoryRetriever([MILL]))


async def test_documents_of_all_sources_are_listed_and_opened() -> None:
    retriever = library()
    names = ["a:note.md", "b:0", "b:1", "b:2", "b:3", "b:4", "c:1"]
    assert [item.id for item in await list_documents(retriever)] == names
    for limit in (1, 2, 3, 7):
        pages = [await list_documents(retriever, None, offset, limit) for offset in range(0, 9, limit)]
        assert [item.id for page in pages for item in page] == names
    assert await count_documents(retriever) == 7
    opened = await document_passages(retriever, "a:note.md")
    assert [(passage.id, passage.metadata) for passage in opened] == [(f"a:n{at}", {"origin": "a"}) for at in range(3)]
    assert await document_passages(retriever, "note.md") == []


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ('origin = "c"', ["c:1"]),
        ("year > 1902", ["b:3", "b:4"]),
        ('origin = "c" or year = 1901', ["b:1", "c:1"]),
        ('origin = "nowhere"', []),
    ],
)
async def test_filters_of_documents_hold_over_sources(where: str, names: list[str]) -> None:
    retriever = library()
    assert [item.id for item in await list_documents(retriever, parsed(where))] == names
    assert await count_documents(retriever, parsed(where)) == len(names)
    for key in ("a:note.md", "b:1", "b:4", "c:1"):
        assert bool(await document_passages(retriever, key, parsed(where))) == (key in names)


async def test_sources_without_documents_are_named_in_the_error() -> None:
    retriever = fused(a=InMemoryRetriever([MILL]), web=Unfiltered())
    for request in (count_documents(retriever), list_documents(retriever), document_passages(retriever, "web:1")):
        with pytest.raises(NoCatalogueError, match="the source web cannot list its documents"):
            await request
    assert await count_documents(retriever, parsed('origin != "web"')) == 1
    assert [passage.id for passage in await document_passages(retriever, "a:1")] == ["a:1"]


@pytest.mark.parametrize("where", ['origin = "b"', "year > 1902"])
async def test_fused_documents_pass_the_conformance_checks(where: str) -> None:
    results = await findings(CATALOGUE_CHECKS, CatalogueCase(library(), where))
    assert results
    assert [result for result in results if result.problem] == []

"""One contract of all catalogues: the documents that a filter passes, counted, listed and opened, exactly."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrag.errors import ServiceError
from pyrag.retrieval import open_retriever
from pyrag.retrieval.catalogue.protocol import (
    CatalogueDocument,
    NoCatalogueError,
    count_documents,
    document_passages,
    has_catalogue,
    list_documents,
)
from pyrag.retrieval.filters.bound import BoundRetriever
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.filters.tree import Filter, all_of
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.http import HttpRetriever
from pyrag.retrieval.index import update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.protocol import OwnRetriever, Retriever
from pyrag.retrieval.stores import pgvector, qdrant
from pyrag.retrieval.stores.store import passage_of
from pyrag.trace.model import Passage

from .postgres import needs_postgres
from .test_filters import ENGINES, POSTGRES, filters, metadata

SOURCES = ("", "/data/a.md", "/data/sub/b.md", "/data/c.pdf#page=1", "/data/c.pdf#page=2", "/data/rows.jsonl")
corpora = st.lists(st.tuples(st.sampled_from(SOURCES), metadata), min_size=1, max_size=12)
engines = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=needs_postgres if name in POSTGRES else ()) for name in ENGINES]
)


def made(corpus: Any) -> list[Passage]:
    return [
        Passage(f"p{n}", f"T > {n}", f"mill {n}", source=source, start=100 - n if source else None, metadata=held)
        for n, (source, held) in enumerate(corpus)
    ]


def expected(passages: list[Passage], where: Filter | None) -> dict[str, list[str]]:
    """Ids of documents that pass, in order, each with the ids of its passages in reading order."""
    files: dict[str, list[Passage]] = {}
    for passage in passages:
        source = passage.source.partition("#")[0]
        name = passage.id if not source or source.endswith(".jsonl") else source
        if where is None or where.matches(passage.metadata):
            files.setdefault(name, []).append(passage)
    folder = folder_of([passage.source.partition("#")[0] for passage in passages])
    ordered = sorted(files, key=lambda name: (files[name][0].source.partition("#")[0], files[name][0].start or 0, name))
    read = {name: [one.id for one in sorted(files[name], key=lambda one: (one.start or 0, one.id))] for name in ordered}
    return {name.removeprefix(folder): ids for name, ids in read.items()}


def folder_of(sources: list[str]) -> str:
    files = {source for source in sources if source.endswith((".md", ".pdf"))}
    return "/data/sub/" if files == {"/data/sub/b.md"} else "/data/" if files else ""


@engines
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=corpora, where=filters | st.none(), bound=filters | st.none(), page=st.integers(1, 4))
def test_documents_that_pass(
    tmp_path: Path, engine: str, corpus: Any, where: Filter | None, bound: Filter | None, page: int
) -> None:
    passages = made(corpus)

    async def check() -> None:
        inner = await ENGINES[engine](passages, tmp_path)
        retriever = inner if bound is None else BoundRetriever(inner, bound)
        wanted = expected(passages, all_of(bound, where))
        documents: list[CatalogueDocument] = []
        while found := await list_documents(retriever, where, len(documents), page):
            assert len(found) <= page
            documents += found
        opened = {one.id: await document_passages(retriever, one.id, where) for one in documents}
        hidden = [key for key in expected(passages, None) if key not in wanted]
        assert [await document_passages(retriever, key, where) for key in hidden] == [[] for _ in hidden]
        assert await count_documents(retriever, where) == len(documents)
        await retriever.aclose()
        assert {key: [one.id for one in found] for key, found in opened.items()} == wanted
        assert list(opened) == list(wanted)
        for one in documents:
            first = opened[one.id][0]
            assert (one.passages, one.metadata) == (len(opened[one.id]), first.metadata)
            assert "/data" not in one.source + one.id

    asyncio.run(check())


def folder_with(tmp_path: Path, **options: Any) -> Path:
    docs = tmp_path / "docs"
    (docs / "sub").mkdir(parents=True)
    long = "\n\n".join(f"## Part {n}\n\n" + f"The mill of part {n} is old. " * 40 for n in range(6))
    (docs / "mill.md").write_text(f"---\nteam: ops\n---\n# The mill\n\n{long}")
    (docs / "sub/otter.txt").write_text("The otter lives at the river.")
    rows = [{"id": f"r{n}", "title": f"Row {n}", "text": f"row {n}", "n": n, "team": "hr"} for n in (3, 1, 2, 0)]
    (docs / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    update_index([docs], tmp_path / "ix", **options)
    return tmp_path / "ix"


async def titles(retriever: Retriever, where: str = "") -> list[tuple[str, str]]:
    found = await list_documents(retriever, parsed(where) if where else None)
    assert await count_documents(retriever, parsed(where) if where else None) == len(found)
    return [(one.id, one.title) for one in found]


async def test_index_folder_lists_files_and_records(tmp_path: Path) -> None:
    retriever = open_retriever(folder_with(tmp_path))
    assert await titles(retriever) == [
        ("mill.md", "The mill"), ("r3", "Row 3"), ("r1", "Row 1"), ("r2", "Row 2"), ("r0", "Row 0"),
        ("sub/otter.txt", "otter"),
    ]  # fmt: skip
    assert await titles(retriever, "n < 2") == [("r1", "Row 1"), ("r0", "Row 0")]
    assert await titles(retriever, 'team = "ops"') == [("mill.md", "The mill")]
    opened = await document_passages(retriever, "mill.md", None)
    assert len(opened) > 2
    assert [one.start for one in opened] == sorted(one.start or 0 for one in opened)


async def test_removed_and_changed_files_leave_the_catalogue(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    retriever = FollowingRetriever(lambda: open_retriever(folder), folder)
    assert await count_documents(retriever) == 6
    (tmp_path / "docs/sub/otter.txt").unlink()
    (tmp_path / "docs/rows.jsonl").write_text(json.dumps({"id": "r9", "text": "row 9", "n": 9}))
    update_index([tmp_path / "docs"], folder)
    assert [key for key, _ in await titles(retriever)] == ["mill.md", "r9"]
    await retriever.aclose()


async def test_long_files_of_records_are_paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.retrieval.catalogue.index_catalogue.MAX_SORTED", 2)
    retriever = open_retriever(folder_with(tmp_path))
    pages = [await list_documents(retriever, parsed("n >= 0"), offset, 2) for offset in (0, 2, 4)]
    assert [len(page) for page in pages] == [2, 2, 0]
    assert {one.id for page in pages for one in page} == {"r0", "r1", "r2", "r3"}


async def test_other_retrievers_say_what_to_do() -> None:
    for retriever in (HttpRetriever("http://127.0.0.1:9"), OwnRetriever(HttpRetriever("http://127.0.0.1:9"))):
        assert not has_catalogue(retriever)
        with pytest.raises(NoCatalogueError, match=r"cannot list its documents.*index folder"):
            await count_documents(retriever)


class Broken(InMemoryRetriever):
    reply: Any = None

    async def count_documents(self, where: Filter | None) -> int:
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply  # type: ignore[no-any-return]


@pytest.mark.parametrize("reply", ["3", True, -1, None, ValueError("no"), KeyError("x")])
async def test_broken_catalogues_are_service_errors(reply: Any) -> None:
    retriever = Broken([])
    retriever.reply = reply
    with pytest.raises(ServiceError, match=r"count_documents|catalogue of"):
        await count_documents(OwnRetriever(retriever))


class Leaky(InMemoryRetriever):
    """Ignores filters."""

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        return await super().list_documents(None, offset, limit)

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        return await super().document_passages(document, None)


async def test_what_a_filter_excludes_is_dropped_from_leaky_catalogues() -> None:
    retriever = OwnRetriever(Leaky([Passage("a", "A", "x", metadata={"n": 1}), Passage("b", "B", "x")]))
    assert [one.id for one in await list_documents(retriever, parsed("n = 1"))] == ["a"]
    assert await document_passages(retriever, "b", parsed("n = 1")) == []


STORES = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=needs_postgres if name in POSTGRES else ())
        for name in ENGINES
        if name in POSTGRES or "qdrant" in name
    ],
)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the stores add the id of each passage that they read."""
    ids: list[str] = []

    def counting(payload: Any, score: float, part: str) -> Passage:
        ids.append(payload["id"])
        return passage_of(payload, score, part)

    for module in (pgvector, qdrant):
        monkeypatch.setattr(module, "passage_of", counting)
    return ids


@STORES
async def test_stores_read_only_the_opened_document(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = ["/data/a.md", "/data/a.md", "/data/c.pdf#page=1", "/data/c.pdf#page=2", *["/data/rows.jsonl"] * 20]
    retriever = await ENGINES[engine](made([(source, {}) for source in sources]), tmp_path)
    ids = [item.id for item in await list_documents(retriever)]
    read = counted(monkeypatch)
    opened = {key: [passage.id for passage in await document_passages(retriever, key)] for key in ids}
    assert await document_passages(retriever, "unknown") == []
    await retriever.aclose()
    assert opened == expected(made([(source, {}) for source in sources]), None)
    assert len(read) == len(sources)

"""The shipped checks: our own parts pass them, and each fault is found by the check that is for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyrag.embedded import embedded_agents
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.clients.scripted import DEFAULT_SAMPLING
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.retrieval.bm25 import Bm25Retriever, index_of
from pyrag.retrieval.bundled import BundledRetriever
from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.stores.qdrant import QdrantStore
from pyrag.testing import (
    CATALOGUE_CHECKS,
    MODEL_CHECKS,
    RETRIEVER_CHECKS,
    STORE_CHECKS,
    TOOL_CHECKS,
    CatalogueCase,
    InMemoryRetriever,
    ModelCase,
    RetrieverCase,
    ScriptedModel,
    StoreCase,
    ToolCase,
    assert_all,
    bundled_passages,
    findings,
)
from pyrag.testing.__main__ import main
from pyrag.tools import table_tool, tool
from pyrag.trace.model import Passage
from tests.server.conftest import ModelServer, server

__all__ = ["server"]

PASSAGES = [Passage(f"p{number}", f"Mill {number}", f"A mill for grain, number {number}") for number in range(9)]


async def problems_of(checks: Sequence[Any], case: Any, seconds: float = 30.0) -> dict[str, str]:
    return {one.check: one.problem for one in await findings(checks, case, seconds=seconds) if not one.passed}


async def test_retrievers_of_the_package_pass() -> None:
    await assert_all(RETRIEVER_CHECKS, RetrieverCase(InMemoryRetriever(PASSAGES), "grain mill", finds="p3"))
    await assert_all(RETRIEVER_CHECKS, RetrieverCase(BundledRetriever(), "Jed Hoyer"))


DOCUMENTS = [
    *(Passage(f"r{n}", f"Row {n}", f"row {n}", source="/d/rows.jsonl", start=n, metadata={"n": n}) for n in range(4)),
    *(Passage(f"m#{n}", "Mill > Part", f"part {n}", source="/d/mill.md", start=n, metadata={"n": n}) for n in range(3)),
    Passage("alone", "Alone", "text"),
]


async def test_catalogues_of_the_package_pass(tmp_path: Path) -> None:
    await assert_all(CATALOGUE_CHECKS, CatalogueCase(InMemoryRetriever(DOCUMENTS), "n > 1"))
    await assert_all(CATALOGUE_CHECKS, CatalogueCase(Bm25Retriever(index_of(DOCUMENTS)), "n > 1"))
    await assert_all(CATALOGUE_CHECKS, CatalogueCase(BundledRetriever()))


class FaultyCatalogue(InMemoryRetriever):
    """Has one fault, by name."""

    fault = ""

    async def count_documents(self, where: Filter | None) -> int:
        return await super().count_documents(None if self.fault == "counts_what_it_lists" else where)

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        listed = await super().list_documents(where, 0, 100)
        match self.fault:
            case "returns_document_records":
                return [one.id for one in listed]  # type: ignore[misc]
            case "lists_each_document_once":
                return ([listed[0], *listed[1:-1], listed[0]] if listed else [])[offset : offset + limit]
            case "pages_join_to_the_whole":
                return (listed[::-1] if offset else listed)[offset : offset + limit]
            case "opens_what_it_lists":
                return [replace(one, passages=one.passages + 1) for one in listed][offset : offset + limit]
        return listed[offset : offset + limit]

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        if self.fault == "opens_nothing_for_unknown_ids" and not document.isalnum() and "#" not in document:
            raise KeyError(document)
        return await super().document_passages(document, None if self.fault == "obeys_filters" else where)


@pytest.mark.parametrize("check", [check.__name__ for check in CATALOGUE_CHECKS])
async def test_each_fault_of_a_catalogue_is_named(check: str) -> None:
    retriever = FaultyCatalogue([one for one in DOCUMENTS if "mill" not in one.source or check == "obeys_filters"])
    retriever.fault = check
    assert check in await problems_of(CATALOGUE_CHECKS, CatalogueCase(retriever, "n > 1"))


async def test_models_of_the_package_pass(server: ModelServer) -> None:
    await assert_all(MODEL_CHECKS, ModelCase(ScriptedModel(lambda messages: "Paris")))
    server.replies[""] = "Paris"
    model = OpenAIChat("tiny", server.url)
    await assert_all(MODEL_CHECKS, ModelCase(model))
    await model.aclose()


@pytest.mark.parametrize("place", [":memory:", "folder"])
async def test_stores_of_the_package_pass(tmp_path: Path, place: str) -> None:
    numbers = iter(range(100))

    def make() -> QdrantStore:
        return QdrantStore(f"qdrant:c{next(numbers)}@{place if place == ':memory:' else tmp_path / place}")

    await assert_all(STORE_CHECKS, StoreCase(make, lambda store: store.close()))  # type: ignore[attr-defined]


async def test_tools_of_the_package_pass(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("name,people\nAlpha,1200\nGamma,800\n")
    calls = [{"name": "towns"}, {"name": "towns", "where": {"people": 800}, "columns": ["name"]}]
    await assert_all(TOOL_CHECKS, ToolCase(table_tool(tmp_path), calls))


class Faulty(InMemoryRetriever):
    """Has one fault, by name."""

    def __init__(self, fault: str) -> None:
        super().__init__(PASSAGES, name="" if fault == "unnamed" else "faulty")
        self.fault = fault
        self.calls = 0
        self.loops: set[int] = set()
        self.busy = False

    async def retrieve(self, query: str, topk: int) -> Any:
        self.calls += 1
        self.loops.add(id(asyncio.get_running_loop()))
        found = await super().retrieve(query, topk)
        if self.fault == "odd" and "\x00" in query:
            raise ValueError("NUL")
        if self.fault == "loops" and len(self.loops) > 1:
            raise RuntimeError("attached to a different loop")
        if self.fault == "shared":
            if self.busy:
                return []
            self.busy = True
            await asyncio.sleep(0)
            self.busy = False
        changes: dict[str, Callable[[], Any]] = {
            "dicts": lambda: [{"text": one.text} for one in found],
            "tuple": lambda: tuple(found),
            "many": lambda: [*found, replace(PASSAGES[-1], id="one more", score=-1.0)] if found else [],
            "worst": lambda: found[::-1],
            "twice": lambda: [replace(one, id="same") for one in found],
            "blank": lambda: found or PASSAGES[:1],
            "random": lambda: [replace(one, id=f"{one.id}.{self.calls}") for one in found],
            "wrong": lambda: [one for one in found if one.id != "p3"],
        }
        return changes[self.fault]() if self.fault in changes else found


@pytest.mark.parametrize(
    ("fault", "check", "problem"),
    [
        ("unnamed", "has_a_name", "its name is ''"),
        ("dicts", "returns_passages", "return pyrag.Passage objects"),
        ("tuple", "returns_passages", "returned a tuple: return a list"),
        ("many", "returns_at_most_topk", "returned 2 passages for topk=1: cut the list"),
        ("twice", "returns_each_passage_once", "an id is there twice"),
        ("blank", "finds_nothing_for_nothing", "retrieve('', 5) returned"),
        ("random", "finds_the_same_again", "found other passages the second time"),
        ("wrong", "finds_the_known_passage", "but not 'p3'"),
        ("shared", "answers_side_by_side", "calls must not share state"),
        ("odd", "takes_any_text", "raised ValueError: escape it, or raise a ServiceError"),
        ("loops", "works_in_other_event_loops", "keep connections for each loop"),
    ],
)
async def test_faults_of_retrievers_are_found(fault: str, check: str, problem: str) -> None:
    found = await problems_of(RETRIEVER_CHECKS, RetrieverCase(Faulty(fault), "grain mill", finds="p3"))
    assert problem in found[check]


async def test_rising_scores_are_found() -> None:
    class Rising(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            found = await super().retrieve(query, topk)
            return [replace(one, score=float(place)) for place, one in enumerate(found)]

    found = await problems_of(RETRIEVER_CHECKS, RetrieverCase(Rising(PASSAGES), "grain mill"))
    assert list(found) == ["returns_the_best_first"]


async def test_checks_that_hang_are_given_up() -> None:
    class Hangs(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            return await asyncio.Event().wait() or []  # type: ignore[func-returns-value]

    found = await problems_of(RETRIEVER_CHECKS[:2], RetrieverCase(Hangs(PASSAGES), "grain"), seconds=0.01)
    assert found == {"returns_passages": "it did not end within 0.01 s"}


class OddModel(ScriptedModel):
    """Has one fault, by name."""

    def __init__(self, fault: str) -> None:
        secret = "openai:m@http://ann:secret@host/v1"
        super().__init__(lambda messages: "Paris", name=secret if fault == "secret" else "odd")
        self.fault = fault
        self.busy = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Any:
        if self.fault == "text":
            return "Paris"
        if self.fault == "tokens":
            return Reply("Paris", prompt_tokens=-1)
        if self.fault == "schema" and sampling.schema:
            raise ValueError("no schemas here")
        if self.fault == "prefix" and messages[-1].role == "assistant":
            raise ValueError("the last message must be the user's")
        return await super().complete(messages, sampling)

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        on_text("Lyon" if self.fault == "stream" else "Paris")
        return await super().complete(messages, sampling)

    async def offered(self) -> Any:
        return ["tiny"] if self.fault == "offered" else []


@pytest.mark.parametrize(
    ("fault", "check", "problem"),
    [
        ("secret", "model_has_a_name", "holds a user, a password or a query"),
        ("text", "returns_a_reply", "return a pyrag.llm.protocol.Reply"),
        ("tokens", "returns_a_reply", "its token counts are (-1, 0)"),
        ("schema", "takes_every_parameter", "ValueError: no schemas here"),
        ("prefix", "takes_every_role", "the last message must be the user's"),
        ("stream", "streams_what_it_replies", "do not make up the reply 'Paris'"),
        ("offered", "lists_its_models", "return a list of ModelInfo"),
        ("", "", ""),
    ],
)
async def test_faults_of_models_are_found(fault: str, check: str, problem: str) -> None:
    found = await problems_of(MODEL_CHECKS, ModelCase(OddModel(fault)))
    assert problem in found[check] if fault else found == {}


async def test_faults_of_stores_are_found() -> None:
    class Forgetful(QdrantStore):
        def delete(self, ids: Sequence[str]) -> None:
            pass

        def check(self, fingerprint: Any) -> None:
            pass

    found = await problems_of(STORE_CHECKS, StoreCase(lambda: Forgetful("qdrant:c@:memory:")))
    assert "after one was deleted of 8 it counts 8" in found["deletes_and_ignores_unknown_ids"]
    assert "vectors of another embedder" in found["refuses_other_embedders"]


async def test_faults_of_tools_are_found() -> None:
    count = iter(range(1000))

    def number(name: str) -> int:
        return next(count)

    found = await problems_of(TOOL_CHECKS, ToolCase(number, [{"name": "x"}]))
    assert "no docstring" in found["says_what_it_does"]
    assert "declare it with @tool(effects=True)" in found["returns_the_same_again"]

    @tool(effects=True)
    def counted(name: str) -> int:
        """Counts."""
        return next(count)

    assert await problems_of(TOOL_CHECKS, ToolCase(counted, [{"name": "x"}])) == {}
    found = await problems_of(TOOL_CHECKS, ToolCase(counted, [{}]))
    assert "missing a required argument: 'name'" in found["returns_what_it_promises"]


async def test_all_problems_stand_in_one_error() -> None:
    with pytest.raises(AssertionError, match=r"has_a_name: its name is ''.*(?s:.*)"):
        await assert_all(RETRIEVER_CHECKS, RetrieverCase(Faulty("unnamed"), "grain mill"))


def test_command_checks_without_pytest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retriever", "pyrag.retrieval.bundled:BundledRetriever", "--query", "Jed Hoyer"]) == 0
    assert "ok    returns_passages" in capsys.readouterr().out
    assert main(["tool", "json:loads"]) == 2
    assert main(["tool", f"{__name__}:population", "--call", '{"city": 3}']) == 1
    assert "FAIL  returns_what_it_promises" in capsys.readouterr().out
    assert main(["retriever", "nowhere:x", "--query", "x"]) == 2
    assert main(["retriever", "pyrag.retrieval.bundled:BundledRetriever"]) == 2
    assert "needs --query" in capsys.readouterr().err


def population(city: str) -> int:
    """People of a city."""
    return {"Alpha": 3}[city]


def test_command_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "pyrag.testing", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Check a part for pyrag." in done.stdout


def test_mini_corpus_answers_with_the_embedded_engine() -> None:
    assert any(one.title == "Jed Hoyer" for one in bundled_passages())
    assert embedded_agents().name == "embedded"

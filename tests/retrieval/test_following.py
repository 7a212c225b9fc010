"""What an update removed is gone from the next search, in every process and object that has the index open."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from pyrag import PyRAG
from pyrag.retrieval import open_retriever
from pyrag.retrieval.following import FollowingRetriever
from pyrag.retrieval.index import read_info, update_index
from pyrag.retrieval.protocol import Retriever


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/a.md").write_text("# Mill\nThe mill was founded by Ann.\n")
    (tmp_path / "n/b.md").write_text("# Zoo\nThe zoo was founded by Bo.\n")
    update_index([tmp_path / "n"], tmp_path / "ix")
    return tmp_path / "ix"


def withdraw(index: Path) -> str:
    (index.parent / "n/b.md").unlink()
    return update_index([index.parent / "n"], index).info.generation


def test_the_first_question_after_an_update_uses_it(index: Path) -> None:
    with PyRAG(retriever=index) as rag:
        assert rag.ask("Who founded the zoo?").answer.text == "Bo"
        generation = withdraw(index)
        trace = rag.ask("Who founded the zoo?")
        assert all("Bo" not in passage.text for passage in trace.passages.values())
        assert trace.answer.text != "Bo"
        assert trace.index is not None
        assert trace.index.generation == generation


async def test_all_searches_after_an_update_wait_for_it(index: Path) -> None:
    opened: list[Retriever] = []

    def opener() -> Retriever:
        opened.append(open_retriever(index))
        return opened[-1]

    retriever = FollowingRetriever(opener, index)
    assert len(await retriever.retrieve("zoo", 5)) == 1
    generation = await asyncio.to_thread(withdraw, index)
    assert await asyncio.gather(*(retriever.retrieve("zoo", 5) for _ in range(20))) == [[]] * 20
    assert (len(opened), retriever.generation) == (2, generation)
    await retriever.aclose()


def test_event_loops_of_several_threads_share_one_retriever(index: Path) -> None:
    retriever = FollowingRetriever(lambda: open_retriever(index), index)
    generation = withdraw(index)
    found: list[list[object]] = []

    def search() -> None:
        found.append(list(asyncio.run(retriever.retrieve("zoo mill", 5))))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(some) for some in found] == [1] * 4
    assert retriever.generation == generation
    asyncio.run(retriever.aclose())


async def test_a_cancelled_search_leaves_the_opening_to_others(index: Path) -> None:
    hold = threading.Event()
    first = open_retriever(index)
    openings = iter([lambda: first, lambda: hold.wait(60) and open_retriever(index)])
    retriever = FollowingRetriever(lambda: next(openings)(), index)  # type: ignore[arg-type,return-value]
    await asyncio.to_thread(withdraw, index)
    impatient = asyncio.create_task(retriever.retrieve("zoo", 5))
    patient = asyncio.create_task(retriever.retrieve("zoo", 5))
    await asyncio.sleep(0)
    impatient.cancel()
    hold.set()
    assert await patient == []
    assert impatient.cancelled()
    await retriever.aclose()


async def test_a_bad_generation_leaves_the_last_good_one(index: Path) -> None:
    retriever = FollowingRetriever(lambda: open_retriever(index), index)
    before, good = read_info(index).generation, (index / "pyrag-index.json").read_bytes()
    (index / "pyrag-index.json").write_text("{")
    assert len(await retriever.retrieve("zoo", 5)) == 1
    assert "cannot be read" in retriever.problem
    (index / "pyrag-index.json").write_bytes(good)
    assert len(await retriever.retrieve("zoo", 5)) == 1
    assert (retriever.problem, retriever.generation) == ("", before)
    await retriever.aclose()

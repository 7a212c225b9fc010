"""The store of traces alone: retention, filters, owners, several writers, files that fail."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import StorageError
from pyrag.llm.protocol import Message
from pyrag.server import trace_store
from pyrag.server.trace_store import DAY, TraceFilter, TraceStore
from pyrag.trace.model import Answer, Trace

TRACE = Trace("Who?", Answer("Ann"))


@asynccontextmanager
async def opened(
    path: Path | None = None, limit: int = 100, days: float | None = None, megabytes: float = 256.0
) -> AsyncIterator[TraceStore]:
    store = TraceStore(path, limit, days, megabytes)
    try:
        yield store
    finally:
        store.close()


async def ids(store: TraceStore, **wanted: Any) -> list[str]:
    return [one.id for one in await store.newest(TraceFilter(indexes=["a", "b"], **wanted), 100)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the time."""

    def at(now: float) -> None:
        monkeypatch.setattr(trace_store.time, "time", lambda: now)

    at(1000.0)
    return at


async def test_the_oldest_go_first_by_number_and_by_age(clock: Callable[[float], None]) -> None:
    async with opened(limit=3, days=2) as store:
        for number in range(5):
            clock(1000 + number * DAY / 2)
            await store.add(f"t{number}", "a", TRACE)
        assert await ids(store) == ["t4", "t3", "t2"]
        clock(1000 + 3.6 * DAY)
        assert await ids(store) == ["t4"]
        assert await store.get("t3") is None


@pytest.mark.parametrize("kept", ["turns", "reply"])
async def test_the_oldest_go_first_by_their_bytes(kept: str, tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    large = "x" * 300_000
    async with opened(file, megabytes=1.0) as store:
        for number in range(20):
            turns = [Message("user", large)] if kept == "turns" else []
            await store.add(f"t{number}", "a", TRACE, turns=turns)
            if kept == "reply":
                await store.add_response(f"t{number}", large.encode())
        assert await ids(store) == ["t19", "t18", "t17"]
        assert await store.response("t16", "", ["a"]) is None
        await store.add("t20", "a", TRACE, turns=[Message("user", "x" * 3_000_000)])
        assert await ids(store) == ["t20"]  # the newest one stays, however large it is
        await store.add("t21", "a", TRACE)
        assert await ids(store) == ["t21"]
    assert file.stat().st_size < 5 << 20


async def test_a_reply_goes_with_its_trace() -> None:
    async with opened(limit=1) as store:
        await store.add_response("t0", b"{}")  # without a trace
        await store.add("t0", "a", TRACE, owner="me")
        assert await store.response("t0", "me", ["a"]) is None
        await store.add_response("t0", b"{}")
        assert await store.response("t0", "me", ["a"]) == b"{}"
        assert await store.response("t0", "you", ["a"]) is await store.response("t0", "me", ["b"]) is None
        await store.add("t1", "a", TRACE)
        assert await store.response("t0", "me", ["a"]) is None
        assert await store._first_row("SELECT count(*) FROM responses") == (0,)


async def test_filters_by_index_time_and_outcome(clock: Callable[[float], None]) -> None:
    unknown = replace(TRACE, answer=Answer("unknown", known=False))
    async with opened() as store:
        for now, key, index, trace in ((1000, "x", "a", TRACE), (2000, "y", "b", unknown), (3000, "z", "a", TRACE)):
            clock(now)
            await store.add(key, index, trace)
        assert await ids(store, known=False) == ["y"]
        assert await ids(store, since=2000) == ["z", "y"]
        assert await ids(store, until=2000) == ["x"]
        assert await ids(store, before=2) == ["x"]
        assert [one.id for one in await store.newest(TraceFilter(indexes=["a"]), 1)] == ["z"]
        assert await store.newest(TraceFilter(indexes=[]), 9) == []


async def test_a_trace_is_deleted_by_those_who_may_see_it() -> None:
    async with opened() as store:
        await store.add("x", "a", TRACE)
        assert not await store.delete("x", ["b"])
        assert await store.delete("x", ["a", "b"])
        assert not await store.delete("x", ["a"])
        assert await store.get("x") is None


async def test_a_conversation_is_bound_to_its_owner() -> None:
    turns = [Message("user", "Who?"), Message("assistant", "Ann")]
    async with opened() as store:
        await store.add("x", "a", TRACE, owner="me", turns=turns)
        assert await store.turns("x", "me") == turns
        assert await store.turns("x", "") is None
        assert await store.turns("y\udc80", "me") is None


async def test_two_writers_share_a_file(tmp_path: Path) -> None:
    async with opened(tmp_path / "t") as one, opened(tmp_path / "t") as other:
        for number in range(10):
            await (one if number % 2 else other).add(f"t{number}", "a", TRACE)
        assert await ids(one) == await ids(other) == [f"t{number}" for number in reversed(range(10))]
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o600


async def test_a_locked_or_full_file_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_store, "BUSY_SECONDS", 0.01)
    async with opened(tmp_path / "t") as store:
        with closing(sqlite3.connect(tmp_path / "t", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StorageError, match=r"the traces in t cannot be used \(database is locked\)"):
                await store.add("x", "a", TRACE)
        await store._run(lambda: store._database.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(StorageError, match="is full"):
            await store.add("x", "a", replace(TRACE, question="x" * 100_000))
        await store.add("y", "a", TRACE)
        assert await ids(store) == ["y"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but a text that is longer than SQLite's header" * 9)
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE mine (x)")
    for name in ("text", "other", "missing/t"):
        with pytest.raises(StorageError, match=f"the traces in {Path(name).name} cannot be used"):
            TraceStore(tmp_path / name, 10)

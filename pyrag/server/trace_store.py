"""SQLite store for traces of answered questions, limited in number, age and size."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pyrag.errors import DataError, StorageError
from pyrag.llm.protocol import Message
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace
from pyrag.trace.plain import encoded, whole_text

T = TypeVar("T")
DAY = 86_400.0  # seconds
DEFAULT_MEGABYTES = 256.0
_VERSION = 1  # version of the tables
BUSY_SECONDS = 2.0  # seconds that a write waits for another process
_SCHEMA = """
CREATE TABLE IF NOT EXISTS traces (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, created REAL NOT NULL, index_name TEXT NOT NULL,
    question TEXT NOT NULL, answer TEXT NOT NULL, known INTEGER NOT NULL, error TEXT NOT NULL,
    seconds REAL NOT NULL, owner TEXT NOT NULL, turns BLOB NOT NULL, trace BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS traces_created ON traces (created);
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY REFERENCES traces (id) ON DELETE CASCADE, reply BLOB NOT NULL) WITHOUT ROWID;
"""
_SUMMARY = "number, id, created, index_name, question, answer, known, error, seconds"
_INSERT = """
INSERT INTO traces (id, created, index_name, question, answer, known, error, seconds, owner, turns, trace)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# Counting reads only the small index; an OFFSET would walk the traces themselves, at a millisecond per trace.
_OLDEST = """
DELETE FROM traces WHERE number IN (
    SELECT number FROM traces ORDER BY number LIMIT max(0, (SELECT count(*) FROM traces) - ?))
"""


_FIRST_TRACE = """
DELETE FROM traces WHERE number = (SELECT min(number) FROM traces) AND number < (SELECT max(number) FROM traces)
"""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Summary of a trace. `error` is the kind of failure, or empty; `number` increases with each trace."""

    number: int
    id: str
    created: float
    index: str
    question: str
    answer: str
    known: bool
    error: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Conditions on traces.

    Attributes:
        indexes: Names of indexes.
        before: Upper bound (exclusive) of the trace's number.
        since: Earliest time of creation, in seconds since the epoch.
        until: Upper bound (exclusive) of the time of creation, in seconds since the epoch.
        known: Whether the answer is known; None for both.
    """

    indexes: Collection[str]
    before: int | None = None
    since: float | None = None
    until: float | None = None
    known: bool | None = None


class TraceStore:
    """Store for traces. Its own thread uses the database, so that no event loop waits for the disk.

    Args:
        path: SQLite file, created if it is missing; None keeps the traces in memory.
        limit: Maximum number of traces; the oldest are deleted.
        days: Days that a trace is kept; None for no limit.
        megabytes: Maximum size of all traces and responses; the oldest are deleted, but never the newest one.

    Raises:
        StorageError: The file cannot be opened or written.
    """

    def __init__(
        self, path: Path | None, limit: int, days: float | None = None, megabytes: float = DEFAULT_MEGABYTES
    ) -> None:
        self._max_bytes = megabytes * (1 << 20)
        self._limit, self._seconds, self._shown = limit, days and days * DAY, path.name if path else "memory"
        self._thread = ThreadPoolExecutor(1, "traces")
        try:
            self._database = self._thread.submit(self._open, path).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def add(self, key: str, index: str, trace: Trace, *, owner: str = "", turns: Sequence[Message] = ()) -> None:
        """Store a trace.

        Args:
            key: Id of the trace.
            index: Name of the index.
            trace: The trace.
            owner: Caller that may continue the conversation.
            turns: Messages of the conversation, ending with the question and its answer.

        Raises:
            StorageError: The file or the trace cannot be written.
        """
        row = (
            key, time.time(), index, whole_text(trace.question), whole_text(trace.answer.text), trace.answer.known,
            trace.error.kind if trace.error else "", trace.usage.seconds, owner, encoded(turns),
        )  # fmt: skip

        def write() -> None:
            values = (*row, to_json(trace))
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # one transaction, rolled back if a part fails
                self._database.execute(_INSERT, values)
                self._database.execute(_OLDEST, (self._limit,))
                self._make_room()

        await self._run(write)

    async def get(self, key: str) -> tuple[str, Trace] | None:
        """Return index and trace by the trace's id; None if the trace is not stored."""
        row = await self._first_row("SELECT index_name, trace FROM traces WHERE id = ?", key)
        try:
            return None if row is None else (row[0], from_json(row[1]))
        except DataError as error:
            raise self._failed(error) from error

    async def turns(self, key: str, owner: str) -> list[Message] | None:
        """Return a conversation's messages up to an answer; None if they are not stored or belong to another caller.

        Args:
            key: Id of the answer's trace.
            owner: The caller.
        """
        row = await self._first_row("SELECT turns FROM traces WHERE id = ? AND owner = ?", key, owner)
        return None if row is None else msgspec.json.decode(row[0], type=list[Message])

    async def add_response(self, key: str, reply: bytes) -> None:
        """Store a reply for as long as its trace, so that a client can fetch it again. Without a trace, do nothing.

        Args:
            key: Id of the trace.
            reply: The reply, as JSON.

        Raises:
            StorageError: The file cannot be written.
        """
        query = "INSERT OR IGNORE INTO responses SELECT id, ? FROM traces WHERE id = ?"

        def write() -> None:
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:
                self._database.execute(query, (reply, key))
                self._make_room()

        await self._run(write)

    async def response(self, key: str, owner: str, indexes: Collection[str]) -> bytes | None:
        """Return a stored reply; None if it is not stored, or belongs to another caller or index.

        Args:
            key: Id of the reply's trace.
            owner: The caller.
            indexes: Names of the indexes that the caller may use.
        """
        query = f"SELECT reply FROM responses JOIN traces USING (id) WHERE {_condition_of_owner(indexes)}"  # noqa: S608
        row = await self._first_row(query, key, owner, *indexes)
        return None if row is None else row[0]

    async def delete_response(self, key: str, owner: str, indexes: Collection[str]) -> bool:
        """Delete a reply and its trace. Return False if `response` would return None.

        Args:
            key: Id of the reply's trace.
            owner: The caller.
            indexes: Names of the indexes that the caller may use.
        """
        query = f"DELETE FROM traces WHERE {_condition_of_owner(indexes)} AND id IN (SELECT id FROM responses)"  # noqa: S608
        done = await self._run(lambda: self._database.execute(query, (_text(key), owner, *indexes)).rowcount)
        return done > 0

    async def delete(self, key: str, indexes: Collection[str]) -> bool:
        """Delete a trace. Return False if it is not stored or belongs to another index.

        Args:
            key: Id of the trace.
            indexes: Names of the indexes that the caller may use.
        """
        query = f"DELETE FROM traces WHERE id = ? AND index_name IN ({_marks(indexes)})"  # noqa: S608
        done = await self._run(lambda: self._database.execute(query, (_text(key), *indexes)).rowcount)
        return done > 0

    async def newest(self, wanted: TraceFilter, limit: int) -> list[TraceSummary]:
        """Return summaries of traces, newest first.

        Args:
            wanted: Conditions on the traces.
            limit: Maximum number of summaries.
        """
        conditions = {
            "number < ?": wanted.before, "created >= ?": wanted.since, "created < ?": wanted.until,
            "known = ?": wanted.known,
        }  # fmt: skip
        conditions_in_use = {text: value for text, value in conditions.items() if value is not None}
        where = " AND ".join([f"index_name IN ({_marks(wanted.indexes)})", *conditions_in_use])
        query = f"SELECT {_SUMMARY} FROM traces WHERE {where} ORDER BY number DESC LIMIT ?"  # noqa: S608
        values = (*wanted.indexes, *conditions_in_use.values(), limit)
        rows = await self._run(lambda: self._database.execute(query, values).fetchall())
        return [replace(TraceSummary(*row), known=bool(row[6])) for row in rows]

    def close(self) -> None:
        self._thread.submit(self._database.close).result()
        self._thread.shutdown()

    def _open(self, path: Path | None) -> sqlite3.Connection:
        try:
            if path:
                path.touch(mode=0o600)
                path.chmod(0o600)  # questions and passages are private
            database = sqlite3.connect(path or ":memory:", timeout=BUSY_SECONDS, isolation_level=None)
            try:
                _prepare(database)
            except BaseException:
                database.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from error
        return database

    def _make_room(self) -> None:
        """Delete the oldest traces until the rest fits into the limit. The newest trace is never deleted."""
        while self._used_bytes() > self._max_bytes and self._database.execute(_FIRST_TRACE).rowcount > 0:
            pass

    def _used_bytes(self) -> int:
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (self._database.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        return int((pages - free) * size)

    async def _first_row(self, query: str, *values: str) -> tuple[Any, ...] | None:
        parameters = tuple(map(_text, values))
        row: tuple[Any, ...] | None = await self._run(lambda: self._database.execute(query, parameters).fetchone())
        return row

    async def _run(self, work: Callable[[], T]) -> T:
        """Delete traces that are too old, then run work in the database's thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(self._guarded, work))

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            if self._seconds is not None:
                self._database.execute("DELETE FROM traces WHERE created < ?", (time.time() - self._seconds,))
            return work()
        except (sqlite3.Error, DataError) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> StorageError:
        reason = getattr(error, "strerror", None) or error
        return StorageError(f"the traces in {self._shown} cannot be used ({reason}): choose another --traces file")


def _condition_of_owner(indexes: Collection[str]) -> str:
    return f"id = ? AND owner = ? AND index_name IN ({_marks(indexes)})"


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))


def _prepare(database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and version != _VERSION:
        raise sqlite3.DatabaseError("it is not a file of traces of this version")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(_SCHEMA)
    database.execute(f"PRAGMA user_version = {_VERSION}")


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()

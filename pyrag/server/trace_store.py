"""Traces of answered questions in SQLite, the newest of them."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from pyrag.errors import StorageError
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace

_SCHEMA = """
CREATE TABLE IF NOT EXISTS traces (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, created REAL NOT NULL, index_name TEXT NOT NULL,
    question TEXT NOT NULL, answer TEXT NOT NULL, known INTEGER NOT NULL, error TEXT NOT NULL,
    seconds REAL NOT NULL, trace BLOB NOT NULL)
"""
_SUMMARY = "number, id, created, index_name, question, answer, known, error, seconds"


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A line of the history. `error` is the kind of the failure, empty without one; `number` rises with each trace."""

    number: int
    id: str
    created: float
    index: str
    question: str
    answer: str
    known: bool
    error: str
    seconds: float


class TraceStore:
    """At most `limit` traces; the oldest are deleted. May be used from several threads.

    Args:
        path: a SQLite file, created where it is missing; None keeps the traces in memory.
        limit: number of traces kept.

    Raises:
        StorageError: the file cannot be opened or written.
    """

    def __init__(self, path: Path | None, limit: int) -> None:
        self._limit, self._lock, self._shown = limit, threading.Lock(), path.name if path else "memory"
        try:
            self._database = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
            if path:
                path.chmod(0o600)  # questions and passages are private
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from error

    def add(self, key: str, index: str, trace: Trace) -> None:
        """Keep a trace.

        Args:
            key: its id.
            index: name of the index that was asked.
            trace: what is kept.

        Raises:
            StorageError: the file cannot be written.
        """
        row = (
            key, time.time(), index, trace.question, trace.answer.text, trace.answer.known,
            trace.error.kind if trace.error else "", trace.usage.seconds, to_json(trace),
        )  # fmt: skip
        columns = "id, created, index_name, question, answer, known, error, seconds, trace"
        with self._lock:
            try:
                self._database.execute(f"INSERT INTO traces ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
                self._database.execute(
                    "DELETE FROM traces WHERE number <= (SELECT max(number) FROM traces) - ?", (self._limit,)
                )
            except sqlite3.Error as error:
                raise self._failed(error) from error

    def get(self, key: str) -> tuple[str, Trace] | None:
        """Return the index and the trace of an id; None if it is not kept (any more)."""
        with self._lock:
            row = self._database.execute("SELECT index_name, trace FROM traces WHERE id = ?", (key,)).fetchone()
        return None if row is None else (row[0], from_json(row[1]))

    def newest(self, indexes: Collection[str], limit: int, before: int | None = None) -> list[TraceSummary]:
        """Return summaries, the newest first.

        Args:
            indexes: names of the indexes whose traces are wanted.
            limit: most summaries.
            before: only traces with a lower number.
        """
        marks = ", ".join("?" * len(indexes))
        chosen = f"index_name IN ({marks}) AND number < ? ORDER BY number DESC LIMIT ?"
        query = f"SELECT {_SUMMARY} FROM traces WHERE {chosen}"  # noqa: S608
        bound = (1 << 62) if before is None else before
        with self._lock:
            rows = self._database.execute(query, (*indexes, bound, limit)).fetchall()
        return [replace(TraceSummary(*row), known=bool(row[6])) for row in rows]

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _failed(self, error: Exception) -> StorageError:
        return StorageError(f"the traces cannot be kept in {self._shown} ({error}): choose another --traces file")

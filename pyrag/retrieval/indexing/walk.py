# ruff: noqa: S608 (names of columns and question marks are all that is put into a statement)
"""The documents that an update met, in a table beside the records of those that were there before."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyrag.retrieval.documents.model import Document, Stamp

_PAGE = 10_000
_WALK = """
CREATE TEMP TABLE IF NOT EXISTS walk (
    name TEXT PRIMARY KEY, path BLOB, key TEXT, member TEXT, given INTEGER, size INTEGER, mtime INTEGER,
    shown TEXT) WITHOUT ROWID
"""
_GONE = "NOT EXISTS (SELECT 1 FROM walk WHERE walk.name = files.name)"
_DOCUMENT = "walk.path, walk.key, walk.member, walk.given, walk.size, walk.mtime, walk.shown"
_BESIDE = "walk LEFT JOIN files ON files.name = walk.name"
ALL = "1"
UNFINISHED = "NOT coalesce(files.done, 0)"
CHANGED = (
    "NOT coalesce(files.done AND files.mtime <> 0 AND files.key = walk.key AND files.size = walk.size "
    "AND files.mtime = walk.mtime AND NOT (walk.given AND files.problem <> ''), 0)"
)


class Walk:
    """The documents of one update, in the database of its records."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def begin(self) -> None:
        self._db.execute(_WALK)
        self._db.execute("DELETE FROM walk")

    def saw(self, documents: Iterable[Document]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO walk VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(_row, documents))

    def document(self, name: str) -> Document | None:
        row = self._db.execute(f"SELECT {_DOCUMENT} FROM walk WHERE name = ?", (name,)).fetchone()
        return _document(row) if row else None

    def retire_gone(self) -> None:
        """Mark the passages of files that were not seen as outdated, so that other files may take them over."""
        self._db.execute(f"UPDATE files SET version = version + 1, done = 0, taken = 0 WHERE {_GONE}")
        self._db.execute(f"DELETE FROM also WHERE file IN (SELECT file FROM files WHERE {_GONE})")

    def gone(self) -> list[int]:
        """Return some files that are recorded and were not seen; an empty list once all are forgotten."""
        rows = self._db.execute(f"SELECT file FROM files WHERE {_GONE} LIMIT ?", (_PAGE,))
        return [row[0] for row in rows]

    def seen(self, which: str, after: str = "") -> list[Document]:
        """Return some documents of the walk, by name.

        Args:
            which: `CHANGED`, `UNFINISHED` or `ALL`.
            after: Name after which to go on.
        """
        limits = "ORDER BY walk.name LIMIT ?"
        rows = self._db.execute(
            f"SELECT {_DOCUMENT} FROM {_BESIDE} WHERE walk.name > ? AND {which} {limits}", (after, _PAGE)
        )
        return [_document(row) for row in rows]

    def bytes(self, which: str) -> int:
        """Return the total size of the documents that `seen` returns."""
        total: int = self._db.execute(f"SELECT coalesce(sum(walk.size), 0) FROM {_BESIDE} WHERE {which}").fetchone()[0]
        return total


def _row(one: Document) -> tuple[object, ...]:
    stamp = (one.stamp.size, one.stamp.mtime)
    return (one.name, os.fsencode(one.path), one.key, one.member, one.given, *stamp, one.shown)


def _document(row: Sequence[object]) -> Document:
    path, key, member, given, size, mtime, shown = row
    assert isinstance(path, bytes)
    stamp = Stamp(int(str(size)), int(str(mtime)))
    return Document(Path(os.fsdecode(path)), str(key), stamp, str(member), bool(given), str(shown))

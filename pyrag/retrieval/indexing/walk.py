# ruff: noqa: S608 (names of columns and question marks are all that is put into a statement)
"""Documents that an update visits, compared with the records of earlier updates, and notes on files."""

from __future__ import annotations

import json
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
    """Documents of an update, in a temporary table of the database of records."""

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
        """Mark the passages of unvisited files as outdated, so that other files may take them over."""
        self._db.execute(f"UPDATE files SET version = version + 1, done = 0, taken = 0 WHERE {_GONE}")
        self._db.execute(f"DELETE FROM also WHERE file IN (SELECT file FROM files WHERE {_GONE})")

    def gone(self) -> list[int]:
        """Return some recorded files that were not visited; an empty list if all are forgotten."""
        rows = self._db.execute(f"SELECT file FROM files WHERE {_GONE} LIMIT ?", (_PAGE,))
        return [row[0] for row in rows]

    def seen(self, which: str, after: str = "") -> list[Document]:
        """Return some documents of the walk, by name.

        Args:
            which: Condition: `CHANGED`, `UNFINISHED` or `ALL`.
            after: Name after which to continue.
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


class Notes:
    """Notes on files, and skipped records. `changed` is True if they need to be written."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.changed = False

    def put(self, kind: str, notes: Iterable[tuple[str, str]], name: str | None = None) -> None:
        """Replace notes.

        Args:
            kind: Kind of the notes: `unread` or `remark`.
            notes: Pairs of a name, of a file or a kind of files, and a note.
            name: File whose notes are replaced. None to replace all notes of the kind.
        """
        which, values = ("kind = ?", [kind]) if name is None else ("kind = ? AND name = ?", [kind, name])
        before = set(self._db.execute(f"SELECT name, note FROM notes WHERE {which}", values))
        if before != (after := set(notes)):
            self.changed = True
            self._db.execute(f"DELETE FROM notes WHERE {which}", values)
            self._db.executemany("INSERT OR IGNORE INTO notes VALUES (?, ?, ?)", ((kind, *note) for note in after))

    def listed(self, kind: str, maximum: int = -1) -> list[tuple[str, str]]:
        """Return names with notes.

        Args:
            kind: Kind of the notes: `unread` or `remark`.
            maximum: Maximum number of notes. -1 for all.
        """
        rows = self._db.execute(
            "SELECT name, note FROM notes WHERE kind = ? ORDER BY name, note LIMIT ?", (kind, maximum)
        )
        return rows.fetchall()

    def put_bad_records(self, number: int, count: int, reasons: Sequence[str]) -> None:
        """Store the skipped records of a file.

        Args:
            number: Number of the file.
            count: Number of skipped records.
            reasons: Faults of the first few.
        """
        self._db.execute("DELETE FROM bad_records WHERE file = ?", (number,))
        if count:
            self._db.execute("INSERT INTO bad_records VALUES (?, ?, ?)", (number, count, json.dumps(list(reasons))))

    def bad_records(self, maximum: int = -1) -> list[tuple[str, str]]:
        """Return file and reason of skipped records, for the first few records of each file."""
        rows = self._db.execute(
            "SELECT name, reason.value FROM bad_records JOIN files USING (file), json_each(reasons) AS reason "
            "ORDER BY name, reason.key LIMIT ?",
            (maximum,),
        )
        return rows.fetchall()

    def count_bad_records(self) -> int:
        number: int = self._db.execute("SELECT coalesce(sum(count), 0) FROM bad_records").fetchone()[0]
        return number


def _row(document: Document) -> tuple[object, ...]:
    stamp = (document.stamp.size, document.stamp.mtime)
    return (
        document.name,
        os.fsencode(document.path),
        document.key,
        document.member,
        document.is_named,
        *stamp,
        document.shown,
    )


def _document(row: Sequence[object]) -> Document:
    path, key, member, is_named, size, mtime, shown_path = row
    assert isinstance(path, bytes)
    stamp = Stamp(int(str(size)), int(str(mtime)))
    return Document(Path(os.fsdecode(path)), str(key), stamp, str(member), bool(is_named), str(shown_path))

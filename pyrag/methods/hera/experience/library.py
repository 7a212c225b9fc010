"""Experience library in an SQLite file, for any number of readers and one writer, in one or several processes.

An update is a single transaction: readers see the previous state until it is complete, and a process that is killed
leaves the previous state. An update may record a text about itself in the same transaction, so that a process that
makes many updates can find out after a crash which one was the last.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from pyrag.errors import DataError
from pyrag.methods.hera.experience.choice import SHOWN, choose, related
from pyrag.methods.hera.experience.entry import Experience, checked_insight, one_line
from pyrag.methods.hera.topology import DIFFICULTIES, QUESTION_TYPES, Characterisation

VERSION = 1  # version of the file's format
MAX_ENTRIES = 1000
APPLICATION_ID = 0x48455241  # "HERA": distinguishes the file from other programs' databases
BUSY_SECONDS = 30.0  # time to wait for another writer
_CURES = {
    "locked": "another process is updating it, wait until it has ended",
    "full": "make room on its disk",
    "I/O error": "make room on its disk, or check it",
    "readonly": "check its permissions",
    "unable to open": "check that its folder is there and can be written to",
}
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS experiences (
    id INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, difficulty TEXT NOT NULL, asks TEXT NOT NULL,
    insight TEXT NOT NULL, utility INTEGER NOT NULL CHECK (utility >= 0), uses INTEGER NOT NULL CHECK (uses >= utility)
);
CREATE INDEX IF NOT EXISTS experiences_by_type ON experiences (type);
CREATE TABLE IF NOT EXISTS records (number INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""


class Library:
    """Readable library. Methods raise `DataError` if the file is damaged. It must not be shared between threads."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db

    @classmethod
    def open(cls, path: str | Path, *, write: bool = False) -> Self:
        """Open a library.

        Args:
            path: File of the library.
            write: Whether the library will be written; if so, a missing file is created.

        Raises:
            DataError: The file is missing, is not a library, or has another version.
        """
        path = Path(path)
        try:
            return cls(path, _connected(path, write=write))
        except (sqlite3.Error, OSError) as error:
            raise _unusable(path, error) from error

    def entries(self) -> list[Experience]:
        """Return all entries, oldest first."""
        return self._read("SELECT * FROM experiences ORDER BY id")

    def get(self, id_: int) -> Experience | None:
        if id_.bit_length() >= 64:  # larger than SQLite's integers
            return None
        return next(iter(self._read("SELECT * FROM experiences WHERE id = ?", (id_,))), None)

    def retrieve(self, profile: Characterisation, limit: int = SHOWN) -> list[Experience]:
        """Return the entries to show to an orchestrator; see `choose`.

        Args:
            profile: The kind of question.
            limit: Maximum number of entries.
        """
        return choose(self._of_type(profile), profile, limit)

    def related(self, profile: Characterisation, insight: str) -> list[Experience]:
        """Return similar entries to compare a new insight with; see `pyrag.methods.hera.experience.choice.related`.

        Args:
            profile: The kind of question; only entries of its type are read.
            insight: The new insight.
        """
        return related(self._of_type(profile), profile, insight)

    def records(self) -> list[str]:
        """Return the records of all updates, oldest first."""
        with self._guarded():
            return [record for (record,) in self._db.execute("SELECT record FROM records ORDER BY number")]

    @contextmanager
    def update(self) -> Iterator[EntryDraft]:
        """Begin a transaction: changes to the draft take effect when the block ends, unless it raises an error.

        The draft sees its own changes; other readers do not.
        """
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
        try:
            yield EntryDraft(self.path, self._db)
            with self._guarded():
                self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _of_type(self, profile: Characterisation) -> list[Experience]:
        return self._read("SELECT * FROM experiences WHERE type = ? ORDER BY id", (profile.type,))

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Experience]:
        with self._guarded():
            return [_entry(row) for row in self._db.execute(query, values)]

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _unusable(self.path, error) from error


class EntryDraft(Library):
    """A library inside `Library.update`, with the operations of HERA's algorithm 3. KEEP changes nothing."""

    def add(self, profile: Characterisation, insight: str, *, utility: int = 0, uses: int = 0) -> Experience:
        """Add an entry (ADD). If there are more than `MAX_ENTRIES`, delete the entries that helped least often.

        Args:
            profile: The kind of question that the insight is about.
            insight: Text of the insight.
            utility: Number of trajectories that were shown the insight and succeeded.
            uses: Number of all trajectories that were shown the insight.

        Raises:
            DataError: The insight is empty or too long.
        """
        values = (profile.type, profile.difficulty, one_line(profile.asks), checked_insight(insight), utility, uses)
        with self._guarded():
            cursor = self._db.execute("INSERT INTO experiences VALUES (NULL, ?, ?, ?, ?, ?, ?)", values)
            self._shrink(keep=cursor.lastrowid)
        return Experience(cursor.lastrowid or 0, profile, values[3], utility, uses)

    def merge(self, ids: Sequence[int], insight: str) -> Experience:
        """Give the first of several entries a new text and the sum of their counts, and delete the others (MERGE).

        Args:
            ids: Ids of the entries.
            insight: Text that combines the entries and a new insight.

        Raises:
            DataError: None of the entries exists, or the text is empty or too long.
        """
        merged = [entry for id_ in dict.fromkeys(ids) if (entry := self.get(id_))]
        if not merged:
            raise DataError(f"{self.path} has no entries {', '.join(map(str, ids))} to merge: list them first")
        utility, uses = sum(entry.utility for entry in merged), sum(entry.uses for entry in merged)
        self.prune([entry.id for entry in merged[1:]])
        with self._guarded():
            self._db.execute(
                "UPDATE experiences SET insight = ?, utility = ?, uses = ? WHERE id = ?",
                (text := checked_insight(insight), utility, uses, merged[0].id),
            )
        return Experience(merged[0].id, merged[0].profile, text, utility, uses)

    def prune(self, ids: Sequence[int]) -> None:
        """Delete entries (PRUNE)."""
        with self._guarded():
            self._db.executemany("DELETE FROM experiences WHERE id = ?", [(id_,) for id_ in ids])

    def used(self, ids: Sequence[int], *, succeeded: bool) -> None:
        """Count a trajectory that was shown these entries: u ← u + 1 if it succeeded (algorithm 3, lines 16 to 20).

        Args:
            ids: Ids of the entries.
            succeeded: Whether the trajectory succeeded.
        """
        with self._guarded():
            self._db.executemany(
                "UPDATE experiences SET uses = uses + 1, utility = utility + ? WHERE id = ?",
                [(int(succeeded), id_) for id_ in ids],
            )

    def mark(self) -> None:
        """Mark a point that `undo` returns to."""
        with self._guarded():
            self._db.execute("SAVEPOINT mark")

    def undo(self) -> None:
        """Take back all changes since `mark`."""
        with self._guarded():
            self._db.execute("ROLLBACK TO mark")

    def record(self, text: str) -> None:
        """Record a text about this update."""
        with self._guarded():
            self._db.execute("INSERT INTO records (record) VALUES (?)", (text,))

    def _shrink(self, keep: int | None) -> None:
        # Ordered by `success_rate`, computed in SQL because an import adds many entries.
        self._db.execute(
            "DELETE FROM experiences WHERE id IN (SELECT id FROM experiences WHERE id != ? "
            "ORDER BY (utility + 1.0) / (uses + 2), id LIMIT max(0, (SELECT count(*) FROM experiences) - ?))",
            (keep, MAX_ENTRIES),
        )


def _entry(row: tuple[Any, ...]) -> Experience:
    id_, type_, difficulty, asks, insight, utility, uses = row
    if type_ not in QUESTION_TYPES or difficulty not in DIFFICULTIES:
        raise sqlite3.DatabaseError(f"entry {id_} has the unknown profile {type_}, {difficulty}")
    return Experience(id_, Characterisation(type_, difficulty, asks), insight, utility, uses)


def _connected(path: Path, *, write: bool) -> sqlite3.Connection:
    if not write and not path.is_file():
        raise FileNotFoundError(2, "it is a folder" if path.is_dir() else "there is no such file")
    mode = "rwc" if write else "ro"
    if not write and not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
        mode = "ro&immutable=1"  # SQLite cannot create the file with which readers and writers coordinate
    address = f"file:{quote(str(path))}?mode={mode}"
    # A library is opened by the thread that assembles the engines, and read by the thread of the event loop.
    db = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, write=write)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, *, write: bool) -> None:
    # All of this is one transaction, in case another process creates the file at the same time.
    empty = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    (version,), (owner,) = db.execute("PRAGMA user_version").fetchone(), db.execute("PRAGMA application_id").fetchone()
    if write and empty and not version:
        with contextlib.suppress(sqlite3.OperationalError):  # locked by another process that sets it
            db.execute("PRAGMA journal_mode = WAL")
        db.executescript(_SCHEMA)
    elif owner != APPLICATION_ID:
        raise sqlite3.DatabaseError("it is not an experience library")
    elif version != VERSION:
        raise sqlite3.DatabaseError(f"it has version {version}; this pyrag reads version {VERSION}")


def _unusable(path: Path, error: Exception) -> DataError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    otherwise = "name one that pyrag evolve or pyrag experience import has made"
    cure = next((cure for excerpt, cure in _CURES.items() if excerpt in reason), otherwise)
    return DataError(f"cannot use the experience library {path} ({reason}): {cure}")

"""The library in one SQLite file: any number of readers and one writer, in this process or others.

An update is one transaction: readers see the state before it until it is whole, and a process that is killed in the
middle of it leaves that state. Each update may leave a record of what it was, in the same transaction, so that whoever
makes many of them knows after a crash which was the last.
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

VERSION = 1  # of the file's form
MAX_ENTRIES = 1000
APPLICATION_ID = 0x48455241  # "HERA": tells the file from other programs' databases
BUSY_SECONDS = 30.0  # patience with another writer
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
    """A library as it can be read. Its methods raise `DataError` where the file is damaged. Not for several threads."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db

    @classmethod
    def open(cls, path: str | Path, *, write: bool = False) -> Self:
        """Open a library.

        Args:
            path: Its file.
            write: Whether it is to be written; then it is made where there is none.

        Raises:
            DataError: the file is missing, no library, or one of another version.
        """
        path = Path(path)
        try:
            return cls(path, _connected(path, write=write))
        except (sqlite3.Error, OSError) as error:
            raise _unusable(path, error) from error

    def entries(self) -> list[Experience]:
        """All entries, in the order in which they were learnt."""
        return self._read("SELECT * FROM experiences ORDER BY id")

    def get(self, id_: int) -> Experience | None:
        if id_.bit_length() >= 64:  # more than SQLite counts to
            return None
        return next(iter(self._read("SELECT * FROM experiences WHERE id = ?", (id_,))), None)

    def retrieve(self, profile: Characterisation, limit: int = SHOWN) -> list[Experience]:
        """Return the entries that an orchestrator is shown: see `choose`.

        Args:
            profile: The kind of the question.
            limit: Maximum number of entries.
        """
        return choose(self._of_type(profile), profile, limit)

    def related(self, profile: Characterisation, insight: str) -> list[Experience]:
        """Return entries to compare a new insight with, see `pyrag.methods.hera.experience.choice.related`.

        Args:
            profile: The kind of question; only entries of its type are read.
            insight: The new insight.
        """
        return related(self._of_type(profile), profile, insight)

    def records(self) -> list[str]:
        """Return the notes of all updates, oldest first."""
        with self._guarded():
            return [record for (record,) in self._db.execute("SELECT record FROM records ORDER BY number")]

    @contextmanager
    def update(self) -> Iterator[EntryDraft]:
        """A transaction: all that is done to the draft counts when the block ends, nothing if it raises. The draft
        reads what was written to it; other readers do not."""
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
    """A library inside `Library.update`: the operations of HERA's algorithm 3. KEEP is to do nothing."""

    def add(self, profile: Characterisation, insight: str, *, utility: int = 0, uses: int = 0) -> Experience:
        """ADD. Beyond `MAX_ENTRIES`, the entries that helped least often go.

        Args:
            profile: The kind of questions that it is about.
            insight: Its text.
            utility: Trajectories that were shown it and succeeded.
            uses: All trajectories that were shown it.

        Raises:
            DataError: see `checked_insight`.
        """
        values = (profile.type, profile.difficulty, one_line(profile.asks), checked_insight(insight), utility, uses)
        with self._guarded():
            cursor = self._db.execute("INSERT INTO experiences VALUES (NULL, ?, ?, ?, ?, ?, ?)", values)
            self._shrink(keep=cursor.lastrowid)
        return Experience(cursor.lastrowid or 0, profile, values[3], utility, uses)

    def merge(self, ids: Sequence[int], insight: str) -> Experience:
        """MERGE: the first of several entries gets a new text and the counts of all; the others go.

        Args:
            ids: The entries.
            insight: What they and a new insight say together.

        Raises:
            DataError: none of the entries exists.
        """
        merged = [one for id_ in dict.fromkeys(ids) if (one := self.get(id_))]
        if not merged:
            raise DataError(f"{self.path} has no entries {', '.join(map(str, ids))} to merge: list them first")
        utility, uses = sum(one.utility for one in merged), sum(one.uses for one in merged)
        self.prune([one.id for one in merged[1:]])
        with self._guarded():
            self._db.execute(
                "UPDATE experiences SET insight = ?, utility = ?, uses = ? WHERE id = ?",
                (text := checked_insight(insight), utility, uses, merged[0].id),
            )
        return Experience(merged[0].id, merged[0].profile, text, utility, uses)

    def prune(self, ids: Sequence[int]) -> None:
        """PRUNE."""
        with self._guarded():
            self._db.executemany("DELETE FROM experiences WHERE id = ?", [(one,) for one in ids])

    def used(self, ids: Sequence[int], *, succeeded: bool) -> None:
        """Count a trajectory that was shown entries: u ← u + 1 where it succeeded (algorithm 3, lines 16 to 20).

        Args:
            ids: The entries.
            succeeded: Whether it succeeded.
        """
        with self._guarded():
            self._db.executemany(
                "UPDATE experiences SET uses = uses + 1, utility = utility + ? WHERE id = ?",
                [(int(succeeded), one) for one in ids],
            )

    def mark(self) -> None:
        """Mark a point that `back` returns to."""
        with self._guarded():
            self._db.execute("SAVEPOINT mark")

    def back(self) -> None:
        """Undoes what was done since `mark`."""
        with self._guarded():
            self._db.execute("ROLLBACK TO mark")

    def record(self, text: str) -> None:
        """Notes what this update is."""
        with self._guarded():
            self._db.execute("INSERT INTO records (record) VALUES (?)", (text,))

    def _shrink(self, keep: int | None) -> None:
        # By `success_rate`, in SQL: an import adds many.
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
        mode = "ro&immutable=1"  # SQLite could not make the file by which readers and writers tell each other
    address = f"file:{quote(str(path))}?mode={mode}"
    # A library is opened by whoever assembles engines, and read in the thread that runs the event loop.
    db = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, write=write)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, *, write: bool) -> None:
    # In this order: all change in one transaction of whoever makes the file at the same time.
    empty = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    (version,), (owner,) = db.execute("PRAGMA user_version").fetchone(), db.execute("PRAGMA application_id").fetchone()
    if write and empty and not version:
        with contextlib.suppress(sqlite3.OperationalError):  # locked by another one who sets it
            db.execute("PRAGMA journal_mode = WAL")
        db.executescript(_SCHEMA)
    elif owner != APPLICATION_ID:
        raise sqlite3.DatabaseError("it is no experience library")
    elif version != VERSION:
        raise sqlite3.DatabaseError(f"it has version {version}; this pyrag reads version {VERSION}")


def _unusable(path: Path, error: Exception) -> DataError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    otherwise = "name one that pyrag evolve or pyrag experience import has made"
    cure = next((cure for said, cure in _CURES.items() if said in reason), otherwise)
    return DataError(f"cannot use the experience library {path} ({reason}): {cure}")

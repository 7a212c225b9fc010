# ruff: noqa: S608 (names of columns and question marks are all that is put into a statement)
"""Records of the passages of each file, which an update uses to decide what to read again.

Each generation has a SQLite database. It has a single writer, in a folder that nobody else uses and that is deleted
after any failure. It is therefore written without a journal, and `save` makes changes permanent.

A passage's owner is the file that it was read from. Several files can hold the same text with the same id; the owner is
the file whose name sorts first, and the table `also` names the others. A file that was read again is `unsorted` until
the passages that it no longer has are removed, and `held` until it was read completely: if it cannot be read now, its
earlier passages are kept. `notes` holds remarks and the kinds of files that were not read, and `retries` the version
of the readers that could not read a file, or a part of it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag._io.files import sync
from pyrag.retrieval.documents.model import Document, Stamp
from pyrag.retrieval.indexing.walk import Notes, Walk

NAME = "records.db"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
    file INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, key TEXT NOT NULL, size INTEGER NOT NULL,
    mtime INTEGER NOT NULL, digest TEXT NOT NULL, version INTEGER NOT NULL, done INTEGER NOT NULL,
    taken INTEGER NOT NULL, problem TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS passages (
    id TEXT PRIMARY KEY, file INTEGER NOT NULL, version INTEGER NOT NULL, content INTEGER NOT NULL,
    place INTEGER NOT NULL, facts INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS of_file ON passages (file);
CREATE TABLE IF NOT EXISTS also (id TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (id, file)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS also_of_file ON also (file);
CREATE TABLE IF NOT EXISTS unsorted (file INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS problems (name TEXT PRIMARY KEY, problem TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS retries (file INTEGER PRIMARY KEY, readers TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS held (file INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS notes (kind TEXT, name TEXT, note TEXT, PRIMARY KEY (kind, name, note)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bad_records (file INTEGER PRIMARY KEY, count INTEGER NOT NULL, reasons TEXT NOT NULL);
"""
_PRAGMAS = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -64000", "locking_mode = EXCLUSIVE")
_PAGE = 10_000
_FILE = "file, name, key, size, mtime, digest, version, done, taken, problem"


@dataclass(frozen=True, slots=True)
class File:
    """Record of a file.

    Attributes:
        mtime: Time of the file's last change in nanoseconds; 0 if it is unreliable, so that the digest is compared.
        version: Number of times that the file was read.
        done: Whether the last reading was completed.
        indexed: Number of passages indexed so far, if the last reading was not completed.
    """

    file: int
    name: str
    key: str
    size: int
    mtime: int
    digest: str
    version: int
    done: bool
    indexed: int
    problem: str

    def is_like(self, document: Document) -> bool:
        return self.mtime != 0 and self.key == document.key and Stamp(self.size, self.mtime) == document.stamp


@dataclass(frozen=True, slots=True)
class Known:
    """Record of a passage: its file and the file's version when it was read, and hashes of content, place and metadata.

    `facts`, the hash of the metadata, is 0 without metadata, because SQLite stores 0 without using space.
    """

    id: str
    file: int
    version: int
    content: int
    place: int
    facts: int = 0


class Records:
    """Database of the records of a generation."""

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        path = folder / NAME
        address = path.absolute().as_uri() + ("" if write else "?mode=ro&immutable=1")
        # The garbage collector may close it in any thread.
        self._db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._db.close)  # the statements below fail on files that are not databases of records
        if write:
            for setting in _PRAGMAS:
                self._db.execute(f"PRAGMA {setting}")
            self._db.executescript(_SCHEMA)
            self._db.execute("BEGIN")
        else:
            self._db.execute("SELECT 1 FROM files LIMIT 1")  # opens the file, so that errors are raised here
        self._path = path
        self.walk = Walk(self._db)
        self.notes = Notes(self._db)
        self.changed = False  # whether there are changes worth publishing

    def save(self) -> None:
        """Write everything to the disk."""
        self._db.execute("COMMIT")
        sync(self._path)
        self._db.execute("BEGIN")

    def close(self) -> None:
        self._db.close()

    # Files

    def file(self, name: str) -> File | None:
        row = self._db.execute(f"SELECT {_FILE} FROM files WHERE name = ?", (name,)).fetchone()
        return _file(row) if row else None

    def file_by_number(self, number: int) -> File:
        return _file(self._db.execute(f"SELECT {_FILE} FROM files WHERE file = ?", (number,)).fetchone())

    def counted_files(self) -> Iterator[tuple[str, int]]:
        """Yield the files of the index by name, with their numbers of passages.

        Skipped files are not included, unless their earlier passages are kept.
        """
        rows: Iterator[tuple[str, int]] = self._db.execute(
            "SELECT name, count(id) FROM files LEFT JOIN passages USING (file) "
            "GROUP BY files.file HAVING problem = '' OR count(id) ORDER BY name"
        )
        return rows

    def count_of_file(self, number: int) -> int:
        """Return the number of passages of a file, including outdated passages."""
        count: int = self._db.execute("SELECT count(*) FROM passages WHERE file = ?", (number,)).fetchone()[0]
        return count

    def files(self) -> Iterator[File]:
        return map(_file, self._db.execute(f"SELECT {_FILE} FROM files ORDER BY name"))

    def begin_reading(self, document: Document, mtime: int) -> File:
        """Record a new version of a file, whose passages are outdated until they are read again.

        Args:
            document: The file.
            mtime: Time of the file in nanoseconds. 0 if it is unreliable.
        """
        self.changed = True
        self._hold("name = ? AND done", document.name)
        stamp = (document.key, document.stamp.size, mtime)
        self._db.execute(
            "INSERT INTO files (name, key, size, mtime, digest, version, done, taken, problem) "
            "VALUES (?, ?, ?, ?, '', 1, 0, 0, '') ON CONFLICT (name) DO UPDATE SET key = excluded.key, "
            "size = excluded.size, mtime = excluded.mtime, digest = '', version = version + 1, done = 0, taken = 0, "
            "problem = ''",
            (document.name, *stamp),
        )
        file = self.file(document.name)
        assert file is not None
        self._forget_reading(file.file)
        self._db.execute("INSERT OR IGNORE INTO unsorted VALUES (?)", (file.file,))
        return file

    def invalidate(self, number: int) -> None:
        """Mark a file to be read again, now or by the next update."""
        self._hold("file = ?", number)
        self._db.execute(
            "UPDATE files SET done = 0, taken = 0, mtime = 0, digest = '', version = version + 1 WHERE file = ?",
            (number,),
        )

    def took(self, number: int, count: int) -> None:
        """Record the progress of reading a file.

        Args:
            number: Number of the file.
            count: Number of passages indexed so far.
        """
        self._db.execute("UPDATE files SET taken = ? WHERE file = ?", (count, number))

    def done_reading(self, number: int, digest: str, mtime: int, problem: str = "") -> None:
        """Record that a file was read to its end.

        Args:
            number: Number of the file.
            digest: Digest of its content.
            mtime: Time of the file in nanoseconds. 0 if it is unreliable.
            problem: Reason for skipping the file. Empty if it was not skipped.
        """
        self._db.execute(
            "UPDATE files SET done = 1, digest = ?, mtime = ?, problem = ? WHERE file = ?",
            (digest, mtime, problem, number),
        )
        if not problem:
            self._db.execute("DELETE FROM held WHERE file = ?", (number,))

    def _hold(self, which: str, value: object) -> None:
        """Record that the passages of a file are kept if its next reading fails."""
        self._db.execute(
            f"INSERT OR IGNORE INTO held SELECT file FROM files WHERE {which} "
            "AND EXISTS (SELECT 1 FROM passages WHERE passages.file = files.file)",
            (value,),
        )

    def is_held(self, number: int) -> bool:
        return bool(self._db.execute("SELECT 1 FROM held WHERE file = ?", (number,)).fetchone())

    def trust(self, number: int, mtime: int) -> None:
        """Record the time of a file whose content did not change.

        Args:
            number: Number of the file.
            mtime: Time of the file in nanoseconds. 0 if it is unreliable.
        """
        self.changed = self.changed or mtime != 0
        self._db.execute("UPDATE files SET mtime = ? WHERE file = ?", (mtime, number))

    def leave_out(self, number: int, digest: str, mtime: int, problem: str) -> None:
        """Record that a file is skipped. Its passages become outdated, unless it was read successfully before.

        Args:
            number: Number of the file.
            digest: Digest of its content. Empty to read the file again in the next update.
            mtime: Time of the file in nanoseconds. 0 if it is unreliable.
            problem: Reason for skipping the file.
        """
        self.done_reading(number, digest, mtime, problem)
        if self.is_held(number):
            self._db.execute(
                "UPDATE passages SET version = (SELECT version FROM files WHERE file = :file) WHERE file = :file",
                {"file": number},
            )
        else:
            self._db.execute("UPDATE files SET version = version + 1 WHERE file = ?", (number,))
        self._forget_reading(number)

    def note_retry(self, number: int, readers: str) -> None:
        """Record that other readers may read more of a file.

        Args:
            number: Number of the file.
            readers: Version of the readers that read it.
        """
        self._db.execute("INSERT OR REPLACE INTO retries VALUES (?, ?)", (number, readers))

    def begin_retries(self, readers: str) -> None:
        """Have the files read again that other readers could not read."""
        self._db.execute(
            "UPDATE files SET mtime = 0, digest = '' WHERE file IN (SELECT file FROM retries WHERE readers <> ?)",
            (readers,),
        )

    def unsorted(self) -> list[File]:
        """Return some unsorted files; an empty list if all are sorted."""
        rows = self._db.execute(
            f"SELECT {_FILE} FROM files WHERE file IN (SELECT file FROM unsorted LIMIT ?)", (_PAGE,)
        )
        return list(map(_file, rows))

    def sorted(self, number: int) -> None:
        self._db.execute("DELETE FROM unsorted WHERE file = ?", (number,))

    def forget(self, number: int) -> None:
        self.changed = True
        self._forget_reading(number)
        self._db.execute("DELETE FROM files WHERE file = ?", (number,))
        self._db.execute("DELETE FROM unsorted WHERE file = ?", (number,))
        self._db.execute("DELETE FROM held WHERE file = ?", (number,))

    def _forget_reading(self, number: int) -> None:
        self._db.execute("DELETE FROM also WHERE file = ?", (number,))
        self._db.execute("DELETE FROM bad_records WHERE file = ?", (number,))
        self._db.execute("DELETE FROM retries WHERE file = ?", (number,))
        self._db.execute(
            "DELETE FROM notes WHERE kind = 'remark' AND name = (SELECT name FROM files WHERE file = ?)", (number,)
        )

    # Passages

    def known(self, ids: Sequence[str]) -> dict[str, Known]:
        marks = ",".join("?" * len(ids))
        rows = self._db.execute(
            f"SELECT id, file, version, content, place, facts FROM passages WHERE id IN ({marks})", ids
        )
        return {row[0]: Known(*row) for row in rows}

    def put(self, passages: Iterable[Known]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO passages (id, file, version, content, place, facts) VALUES (?, ?, ?, ?, ?, ?)",
            ((item.id, item.file, item.version, item.content, item.place, item.facts) for item in passages),
        )

    def put_also(self, holders: Iterable[tuple[str, int]]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO also (id, file) VALUES (?, ?)", holders)

    def holders(self, key: str) -> list[int]:
        """Return the other files that hold a passage."""
        return [row[0] for row in self._db.execute("SELECT file FROM also WHERE id = ?", (key,))]

    def outdated(self, number: int, version: int) -> list[str]:
        """Return some ids of a file's passages of other versions; an empty list after `remove` has deleted them all.

        Args:
            number: Number of the file.
            version: Current version of the file.
        """
        rows = self._db.execute(
            "SELECT id FROM passages WHERE file = ? AND version <> ? LIMIT ?", (number, version, _PAGE)
        )
        return [row[0] for row in rows]

    def remove(self, ids: Sequence[str]) -> set[int]:
        """Delete passages; return the other files that hold a deleted passage and must be read again."""
        heirs: set[int] = set()
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            marks = ",".join("?" * len(some))
            rows = self._db.execute(f"SELECT DISTINCT file FROM also WHERE id IN ({marks})", some)
            heirs.update(row[0] for row in rows)
            self._db.execute(f"DELETE FROM passages WHERE id IN ({marks})", some)
        return heirs

    def ids(self) -> Iterator[str]:
        return (row[0] for row in self._db.execute("SELECT id FROM passages"))

    # Problems and counts

    def set_problems(self, problems: Sequence[tuple[str, str]]) -> None:
        """Replace the problems of folders and archives that could not be opened."""
        before = set(self._db.execute("SELECT name, problem FROM problems"))
        if before != set(problems):
            self.changed = True
            self._db.execute("DELETE FROM problems")
            self._db.executemany("INSERT OR IGNORE INTO problems VALUES (?, ?)", problems)

    def problems(self, maximum: int = -1) -> list[tuple[str, str]]:
        """Return name and reason of each skipped file, folder and archive."""
        both = "SELECT name, problem FROM files WHERE problem <> '' UNION SELECT name, problem FROM problems"
        return self._db.execute(f"{both} ORDER BY name LIMIT ?", (maximum,)).fetchall()

    def count_problems(self) -> int:
        files = "SELECT count(*) FROM files WHERE problem <> ''"
        number: int = self._db.execute(f"SELECT ({files}) + (SELECT count(*) FROM problems)").fetchone()[0]
        return number

    def count(self, table: str) -> int:
        """Return the number of rows in `files` (without a problem) or `passages`."""
        where = " WHERE problem = ''" if table == "files" else ""
        number: int = self._db.execute(f"SELECT count(*) FROM {table}{where}").fetchone()[0]
        return number

    def faults(self) -> list[str]:
        """Return a sentence about each damage of the records themselves."""
        sentences = [
            f"records.db is damaged: {row[0]}" for row in self._db.execute("PRAGMA quick_check(3)") if row[0] != "ok"
        ]
        lost = self._db.execute(
            "SELECT count(*) FROM passages LEFT JOIN files USING (file) "
            "WHERE files.file IS NULL OR files.version <> passages.version"
        ).fetchone()[0]
        return [*sentences, f"{lost} passages belong to no file"] if lost else sentences


def hash64(*values: object) -> int:
    """Return a signed 64-bit hash, as SQLite stores numbers."""
    data = "\0".join(map(str, values)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)


def _file(row: Sequence[object]) -> File:
    return File(*row)  # type: ignore[arg-type]

# ruff: noqa: S608 (names of columns and question marks are all that is put into a statement)
"""Records of the passages of each file, by which an update knows what to read again.

One SQLite database a generation. It belongs to one writer, in a folder that nobody else uses, and is thrown away with
that folder after any failure: so it is written without a journal, and `save` is what makes it last.

A passage's owner is the file it was taken from. The same text can come under the same id from several files (the same
folder named twice, by copies); the owner then is the one whose name sorts first, the others are in `also`. Files that
were read again are `unsorted` until what they do not have any more was removed, and `held` until that went well: the
passages of a file that was read well before stay if it cannot be read now. `notes` hold what was not read.
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
CREATE TABLE IF NOT EXISTS held (file INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS notes (kind TEXT, name TEXT, note TEXT, PRIMARY KEY (kind, name, note)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bad_records (file INTEGER PRIMARY KEY, count INTEGER NOT NULL, reasons TEXT NOT NULL);
"""
_PRAGMAS = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -64000", "locking_mode = EXCLUSIVE")
_PAGE = 10_000
_FILE = "file, name, key, size, mtime, digest, version, done, taken, problem"


@dataclass(frozen=True, slots=True)
class File:
    """A file of the index.

    Attributes:
        mtime: 0 if the stamp cannot be trusted; the digest then decides.
        version: number of times it was read.
        taken: passages indexed of a reading that is not `done`.
    """

    file: int
    name: str
    key: str
    size: int
    mtime: int
    digest: str
    version: int
    done: bool
    taken: int
    problem: str

    def is_like(self, document: Document) -> bool:
        return self.mtime != 0 and self.key == document.key and Stamp(self.size, self.mtime) == document.stamp


@dataclass(frozen=True, slots=True)
class Known:
    """A passage as it was indexed: its file, that file's version then, and hashes of its content, place and metadata.

    `facts` is 0 without metadata, which takes no room.
    """

    id: str
    file: int
    version: int
    content: int
    place: int
    facts: int = 0


class Records:
    def __init__(self, folder: Path, *, write: bool = False) -> None:
        path = folder / NAME
        address = path.absolute().as_uri() + ("" if write else "?mode=ro&immutable=1")
        self._db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=write)
        weakref.finalize(self, self._db.close)  # at once: what follows fails on files that are none of ours
        if write:
            for setting in _PRAGMAS:
                self._db.execute(f"PRAGMA {setting}")
            self._db.executescript(_SCHEMA)
            self._db.execute("BEGIN")
        else:
            self._db.execute("SELECT 1 FROM files LIMIT 1")  # opens the file, which else the first question would
        self._path = path
        self.walk = Walk(self._db)
        self.notes = Notes(self._db)
        self.changed = False  # in a way that is worth keeping

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
        """Yield the files of the index by name, each with the number of its passages; those left out are not among
        them, unless their passages of before stay."""
        rows: Iterator[tuple[str, int]] = self._db.execute(
            "SELECT name, count(id) FROM files LEFT JOIN passages USING (file) "
            "GROUP BY files.file HAVING problem = '' OR count(id) ORDER BY name"
        )
        return rows

    def count_of_file(self, number: int) -> int:
        """Return how many passages a file has, outdated ones included."""
        count: int = self._db.execute("SELECT count(*) FROM passages WHERE file = ?", (number,)).fetchone()[0]
        return count

    def files(self) -> Iterator[File]:
        return map(_file, self._db.execute(f"SELECT {_FILE} FROM files ORDER BY name"))

    def begin_reading(self, document: Document, mtime: int) -> File:
        """Record a new version of a file: its passages are outdated until they are found again.

        Args:
            document: The file.
            mtime: Its time; 0 if the stamp cannot be trusted.
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
        """Have a file read again, now or by the next update."""
        self._hold("file = ?", number)
        self._db.execute(
            "UPDATE files SET done = 0, taken = 0, mtime = 0, digest = '', version = version + 1 WHERE file = ?",
            (number,),
        )

    def took(self, number: int, taken: int) -> None:
        """Note how much of a reading was indexed.

        Args:
            number: Number of the file.
            taken: Passages so far.
        """
        self._db.execute("UPDATE files SET taken = ? WHERE file = ?", (taken, number))

    def done_reading(self, number: int, digest: str, mtime: int, problem: str = "") -> None:
        """Note that a file was read to its end.

        Args:
            number: Number of the file.
            digest: Digest of its content.
            mtime: Its time; 0 if the stamp cannot be trusted.
            problem: Reason for leaving it out, if any.
        """
        self._db.execute(
            "UPDATE files SET done = 1, digest = ?, mtime = ?, problem = ? WHERE file = ?",
            (digest, mtime, problem, number),
        )
        if not problem:
            self._db.execute("DELETE FROM held WHERE file = ?", (number,))

    def _hold(self, which: str, value: object) -> None:
        """Note that the passages of a file stay if its next reading fails."""
        self._db.execute(
            f"INSERT OR IGNORE INTO held SELECT file FROM files WHERE {which} "
            "AND EXISTS (SELECT 1 FROM passages WHERE passages.file = files.file)",
            (value,),
        )

    def is_held(self, number: int) -> bool:
        return bool(self._db.execute("SELECT 1 FROM held WHERE file = ?", (number,)).fetchone())

    def trust(self, number: int, mtime: int) -> None:
        """Note that the content did not change, whatever the times say.

        Args:
            number: Number of the file.
            mtime: Time to remember.
        """
        self.changed = self.changed or mtime != 0
        self._db.execute("UPDATE files SET mtime = ? WHERE file = ?", (mtime, number))

    def leave_out(self, number: int, digest: str, mtime: int, problem: str) -> None:
        """Note that a file is left out; its passages are outdated, or stay if it was read well before.

        Args:
            number: Number of the file.
            digest: Digest of its content; empty to try again next time.
            mtime: Its time; 0 if the stamp cannot be trusted.
            problem: The reason.
        """
        self.done_reading(number, digest, mtime, problem)
        if self.is_held(number):
            self._db.execute(
                "UPDATE passages SET version = (SELECT version FROM files WHERE file = ?1) WHERE file = ?1", (number,)
            )
        else:
            self._db.execute("UPDATE files SET version = version + 1 WHERE file = ?", (number,))
        self._forget_reading(number)

    def unsorted(self) -> list[File]:
        """Return some unsorted files; an empty list once all are sorted."""
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
            ((one.id, one.file, one.version, one.content, one.place, one.facts) for one in passages),
        )

    def put_also(self, holders: Iterable[tuple[str, int]]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO also (id, file) VALUES (?, ?)", holders)

    def holders(self, key: str) -> list[int]:
        """Return the other files that have a passage."""
        return [row[0] for row in self._db.execute("SELECT file FROM also WHERE id = ?", (key,))]

    def outdated(self, number: int, version: int) -> list[str]:
        """Return some ids of a file that are of another version; an empty list once `remove` has taken all.

        Args:
            number: Number of the file.
            version: Its current version.
        """
        rows = self._db.execute(
            "SELECT id FROM passages WHERE file = ? AND version <> ? LIMIT ?", (number, version, _PAGE)
        )
        return [row[0] for row in rows]

    def remove(self, ids: Sequence[str]) -> set[int]:
        """Delete passages; return the other files that hold one of them and must be read again."""
        heirs: set[int] = set()
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            marks = ",".join("?" * len(some))
            found = self._db.execute(f"SELECT DISTINCT file FROM also WHERE id IN ({marks})", some)
            heirs.update(row[0] for row in found)
            self._db.execute(f"DELETE FROM passages WHERE id IN ({marks})", some)
        return heirs

    def ids(self) -> Iterator[str]:
        return (row[0] for row in self._db.execute("SELECT id FROM passages"))

    # What was met on the way, and sums

    def set_problems(self, problems: Sequence[tuple[str, str]]) -> None:
        """Replace the problems of folders and archives that could not be opened."""
        before = set(self._db.execute("SELECT name, problem FROM problems"))
        if before != set(problems):
            self.changed = True
            self._db.execute("DELETE FROM problems")
            self._db.executemany("INSERT OR IGNORE INTO problems VALUES (?, ?)", problems)

    def problems(self, most: int = -1) -> list[tuple[str, str]]:
        """Return name and reason of everything that was left out."""
        both = "SELECT name, problem FROM files WHERE problem <> '' UNION SELECT name, problem FROM problems"
        return self._db.execute(f"{both} ORDER BY name LIMIT ?", (most,)).fetchall()

    def count_problems(self) -> int:
        files = "SELECT count(*) FROM files WHERE problem <> ''"
        number: int = self._db.execute(f"SELECT ({files}) + (SELECT count(*) FROM problems)").fetchone()[0]
        return number

    def count(self, table: str) -> int:
        """Return the number of `files` (those without a problem) or `passages`."""
        where = " WHERE problem = ''" if table == "files" else ""
        number: int = self._db.execute(f"SELECT count(*) FROM {table}{where}").fetchone()[0]
        return number

    def faults(self) -> list[str]:
        """Return sentences on damage of the records themselves."""
        found = [
            f"records.db is damaged: {row[0]}" for row in self._db.execute("PRAGMA quick_check(3)") if row[0] != "ok"
        ]
        lost = self._db.execute(
            "SELECT count(*) FROM passages LEFT JOIN files USING (file) "
            "WHERE files.file IS NULL OR files.version <> passages.version"
        ).fetchone()[0]
        return [*found, f"{lost} passages belong to no file"] if lost else found


def hash64(*values: object) -> int:
    """Return a signed 64-bit hash, as SQLite stores numbers."""
    data = "\0".join(map(str, values)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)


def _file(row: Sequence[object]) -> File:
    return File(*row)  # type: ignore[arg-type]

"""Exchanges of a running question on disk, so that it can be resumed after a kill at the step it had reached.

Recalled exchanges count against the question's budget again, including their seconds. Requests in flight at the kill
are made again.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path

from pyrag._io.files import write_all, writing
from pyrag.trace.model import Exchange
from pyrag.trace.plain import encoded


@dataclass(frozen=True, slots=True)
class Entry:
    """Exchange of a journal.

    `at` is the number of seconds spent on the question so far, including earlier processes.
    """

    at: float
    exchange: Exchange


class FileJournal:
    """A `pyrag.episode.ledger.Journal` in its own file. Close it, and `discard` it once its question has a result."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing(path):
            entries, whole = _read(path)
            self._file = path.open("ab", buffering=0)
            self._file.truncate(whole)
        self._known: dict[tuple[str, str], deque[Exchange]] = defaultdict(deque)
        for entry in entries:
            self._known[entry.exchange.role, entry.exchange.key].append(entry.exchange)
        self.spent = entries[-1].at if entries else 0.0
        self._started = time.perf_counter()

    def recall(self, role: str, key: str) -> Exchange | None:
        """Return the next recorded exchange of a request, or None.

        Args:
            role: The agent's role, or `retrieve`.
            key: Digest of the request.
        """
        known = self._known.get((role, key))
        return known.popleft() if known else None

    def keep(self, exchange: Exchange) -> None:
        """Store an exchange."""
        at = self.spent + time.perf_counter() - self._started
        with writing(self._path):
            write_all(self._file, encoded(Entry(at, exchange)) + b"\n")
            # survives the process; a machine that stops may cost a step

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def discard(self) -> None:
        """Close and delete the file."""
        self.close()
        self._path.unlink(missing_ok=True)


def journal_path(run: Path, set_name: str, method: str, question: str) -> Path:
    """Return the journal of a question, named by a digest, since ids are free text.

    Args:
        run: Folder of the run.
        set_name: Name of the set.
        method: Name of the method.
        question: Id of the question.
    """
    digest = hashlib.sha256(f"{set_name}\n{method}\n{question}".encode()).hexdigest()[:24]
    return run / "journal" / f"{digest}.jsonl"


def _read(path: Path) -> tuple[list[Entry], int]:
    """Return the entries up to a damaged one, and the bytes they take."""
    import msgspec

    decoder = msgspec.json.Decoder(Entry)
    entries: list[Entry] = []
    whole = 0
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if not line.endswith(b"\n"):
            break
        try:
            entries.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            break
        whole += len(line)
    return entries, whole

"""The exchanges of a running question on disk, so that it continues after a kill at the step it had reached.

Recalled exchanges count against the question's budget again, seconds included. Requests in flight at the kill are
asked again.
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
    """An exchange. `at`: seconds spent on the question when the reply came, earlier processes included."""

    at: float
    exchange: Exchange


class FileJournal:
    """A `pyrag.episode.ledger.Journal` in a file of its own. Close it; `discard` it once its question has a result."""

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
        """Return the next recorded exchange of a request, or None. Args: those of `Journal.recall`."""
        known = self._known.get((role, key))
        return known.popleft() if known else None

    def keep(self, exchange: Exchange) -> None:
        at = self.spent + time.perf_counter() - self._started
        with writing(self._path):
            write_all(self._file, encoded(Entry(at, exchange)) + b"\n")
            # survives the process; a machine that stops may cost a step

    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        self.close()
        self._path.unlink(missing_ok=True)


def journal_path(run: Path, set_name: str, method: str, question: str) -> Path:
    """Return the journal of a question, named by a digest, since ids are free text.

    Args:
        run: The run's folder.
        set_name: The set.
        method: The method.
        question: Its id.
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

"""Exchanges of a running question on disk, so that it can be resumed after a kill at the step that it had reached.

Recalled exchanges count against the question's budget again, including their seconds. Requests in flight at the kill
are made again.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pyrag._io.files import lock, open_private, write_all, writing
from pyrag.episode.recordings import failure_of
from pyrag.errors import UsageError
from pyrag.retrieval.protocol import Retriever, searched_index
from pyrag.settings import Settings, public
from pyrag.trace.model import Exchange, Trace
from pyrag.trace.plain import encoded

_RUN = "run"  # role of the first entry of a resumable run, whose key identifies the run
_LASTING = frozenset(("BadOutputError", "ContextLengthError", "ToolError"))
"""Failures that the same request would meet again."""

_LIMITS = frozenset((
    "max_calls", "max_tokens", "max_tool_calls", "max_cost", "deadline", "call_timeout", "retrieve_timeout",
    "concurrency", "max_in_flight", "cache", "cache_mb", "llm_body_mb", "retriever_body_mb", "otel", "proxy",
    "ca_bundle", "profile", "stream", "parallel",
))  # fmt: skip
"""Settings that may differ when a run is resumed, since they change no reply."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Exchange of a journal.

    `at` is the number of seconds spent on the question so far, including earlier processes.
    """

    at: float
    exchange: Exchange


class FileJournal:
    """Journal (`pyrag.episode.ledger.Journal`) in its own file. Close it; `discard` it when its question has a result.

    Args:
        path: The file, which only its user can read.
    """

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
        """Return the next recorded exchange for a request, or None.

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
            write_all(self._file, encoded(JournalEntry(at, exchange)) + b"\n")
            # survives the process; a machine that stops may cost a step

    def forget_passing_failures(self) -> None:
        """Drop failures that had an external reason (a service, a limit), so that these requests are made again."""
        for request, exchanges in self._known.items():
            self._known[request] = deque(exchange for exchange in exchanges if not _may_pass(exchange))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def discard(self) -> None:
        """Close and delete the file."""
        self.close()
        self._path.unlink(missing_ok=True)


def _may_pass(exchange: Exchange) -> bool:
    failure = failure_of(exchange)
    return bool(failure) and _LASTING.isdisjoint(map(str, failure.get("kinds") or ()))


def _read(path: Path) -> tuple[list[JournalEntry], int]:
    """Return the entries before the first damaged one, and their size in bytes."""
    import msgspec

    decoder = msgspec.json.Decoder(JournalEntry)
    entries: list[JournalEntry] = []
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


@contextmanager
def resumable(
    path: str | Path, request: Mapping[str, Any], settings: Settings, retriever: Retriever
) -> Iterator[FileJournal]:
    """Yield the journal of a run that can be resumed with the same file.

    Args:
        path: The file. It is created if missing; `finish` deletes it after a complete run.
        request: Question, or program and inputs, as plain data.
        settings: Settings of the run. Its limits may differ between the runs.
        retriever: Retriever of the run. With another index, or an updated one, the run is a different one.

    Raises:
        UsageError: The file belongs to another run, is not a journal, or is used by another process.
        StorageError: The file cannot be read or written.
    """
    path = Path(path)
    values = {name: value for name, value in public(settings).items() if name not in _LIMITS}
    identity = [dict(request), values, searched_index(retriever)]
    key = hashlib.sha256(encoded(identity)).hexdigest()[:32]
    _check_owner(path, key)
    with writing(path):
        file = open_private(path)
    with file:
        lock(file, lambda: _busy(path))
        _check_owner(path, key)  # another run may have begun it meanwhile
        journal = FileJournal(path)
        journal.forget_passing_failures()
        if not path.stat().st_size:
            journal.keep(Exchange(_RUN, key, {}, {}))
        try:
            yield journal
        finally:
            journal.close()


def finish(journal: FileJournal, trace: Trace) -> None:
    """Delete the journal if its run is complete. Otherwise the run can be resumed, even with other limits.

    Args:
        journal: The run's journal.
        trace: Result of the run.
    """
    if trace.error is None and trace.complete:
        journal.discard()


def _check_owner(path: Path, key: str) -> None:
    """Raise `UsageError` unless a file is empty or is the journal of this run."""
    import msgspec

    with writing(path, "name another file"):
        first = b""
        if path.exists():
            with path.open("rb") as file:
                first = file.readline()
    if not first:
        return
    try:
        owner = msgspec.json.decode(first, type=JournalEntry).exchange
    except (msgspec.DecodeError, UnicodeDecodeError):
        owner = None
    if owner is None or owner.role != _RUN:
        raise UsageError(f"{path} is not the file of a run that can be resumed: name another file")
    if owner.key != key:
        raise UsageError(
            f"{path} belongs to another run (other question, program, index or model): name another file, or delete it"
        )


def _busy(path: Path) -> NoReturn:
    raise UsageError(f"another run writes {path}: wait for its end, or name another file")

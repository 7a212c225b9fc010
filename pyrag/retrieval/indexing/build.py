"""Builds of indexes: their starting point, their checkpoints, and the publication of a generation."""

from __future__ import annotations

import contextlib
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from pyrag._io.files import AtomicFile, sync, write_all
from pyrag.errors import DataError
from pyrag.retrieval.documents.model import MARK
from pyrag.retrieval.documents.reading import VERSION, Columns
from pyrag.retrieval.indexing.checksums import cut_files, write_checksums
from pyrag.retrieval.indexing.part_protocol import Part, PartWriter
from pyrag.retrieval.indexing.record_database import Records
from pyrag.retrieval.indexing.staging import StagingDir
from pyrag.retrieval.indexing.update import Changes, IndexProgress, IndexUpdate

SETTINGS = "settings.json"
_MAX_NAMED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Options of a build.

    Attributes:
        parts: Parts of the index, including the BM25 part.
        checkpoint: Seconds between checkpoints.
        resume: Whether to resume a killed build from its last checkpoint.
    """

    parts: tuple[Part, ...]
    columns: Columns = Columns()
    rebuild: bool = False
    check_contents: bool = False
    follow_links: bool = False
    checkpoint: float = 10.0
    resume: bool = True

    def settings(self) -> bytes:
        """Return the settings that must be equal for an index to be updated."""
        columns = [self.columns.id, self.columns.title, self.columns.text]
        columns += [self.columns.encoding] if self.columns.encoding else []
        parts = {part.kind: dict(part.settings) for part in self.parts}
        return msgspec.json.encode({"reading": VERSION, "columns": columns, "parts": parts}, order="sorted")

    def fits(self, generation: Path) -> bool:
        """Return whether a generation was built with the same settings."""
        try:
            return (generation / SETTINGS).read_bytes() == self.settings()
        except OSError:
            return False


def check_base(options: BuildOptions, base: Path, out: Path) -> None:
    """Raise `DataError` unless an update can start from a generation, so that no other file has to be read again.

    Args:
        options: Options of the update.
        base: Folder of the generation in use.
        out: Folder of the index, for the message.
    """
    if not options.fits(base):
        raise DataError(f"the index {out} was built by another version of pyrag: build it again with pyrag index")
    if any(cut_files(base)):
        raise DataError(f"files of the index {out} are missing or cut off: build it again with pyrag index")


def columns_of(generation: Path) -> Columns:
    """Return the columns that a generation was built with; the default columns if its settings cannot be read."""
    try:
        return Columns(*msgspec.json.decode((generation / SETTINGS).read_bytes(), type=_StoredColumns).columns)
    except (OSError, msgspec.DecodeError, TypeError):
        return Columns()


class _StoredColumns(msgspec.Struct):
    columns: list[str] = []


@dataclass(slots=True)
class BuildOutcome:
    """Content of a generation, which is only published if `new` is True."""

    changes: Changes
    passages: int
    files: int
    left_out: int
    new: bool
    bad_records: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    bad: list[tuple[str, str]] = field(default_factory=list)
    removed_files: list[tuple[str, int]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)


class Build:
    """Build of a generation in a staging folder."""

    def __init__(self, work: StagingDir, options: BuildOptions, progress: Callable[[IndexProgress], None]) -> None:
        self._work = work
        self._options = options
        self._progress = progress
        self._records: Records | None = None
        self._writers: dict[str, PartWriter] = {}
        self._interval = options.checkpoint
        self._saved = time.monotonic()

    def run(self, work: Callable[[IndexUpdate], None], base: Path | None) -> BuildOutcome:
        """Leave a complete generation in the staging folder.

        It starts from the last checkpoint or from the base if their settings match, and otherwise from scratch.

        Args:
            work: Function that updates the records and parts.
            base: Folder of the generation in use. None if there is no index.

        Raises:
            DataError: A named file is unreadable.
        """
        source = self._source(base)
        self._work.begin(source)
        live = self._work.live
        foreign = self._drop_foreign(live)
        try:
            if source is None:
                (live / SETTINGS).write_bytes(self._options.settings())
            outcome = self._update(work, live)
        finally:
            self._close()
        as_wanted = all(part.is_as_wanted(live / part.kind) for part in self._options.parts)
        if outcome.new or foreign or source != base or not as_wanted:
            from_scratch = (
                base is None or not self._options.fits(base) or not self._is_whole(base) or self._options.rebuild
            )
            for part in self._options.parts:
                part.finish(live / part.kind, from_scratch=from_scratch, keep=self._work.checkpoint)
            _open_to_readers(live)
            write_checksums(live)
            _sync_all(live)
            outcome.new = True
        return outcome

    def _drop_foreign(self, live: Path) -> bool:
        """Delete parts that this build does not know and would not keep up to date."""
        kinds = {part.kind for part in self._options.parts}
        foreign = [path for path in live.iterdir() if path.is_dir() and path.name not in kinds]
        for path in foreign:
            shutil.rmtree(path)
        return bool(foreign)

    def _source(self, base: Path | None) -> Path | None:
        if self._options.rebuild:
            self._work.start_over()
            return None
        checkpoints = self._work.checkpoints() if self._options.resume else []
        for path in (*checkpoints, *([base] if base and self._is_whole(base) else [])):
            if self._options.fits(path):
                return path
        self._work.start_over()
        return None

    def _is_whole(self, base: Path) -> bool:
        """Return whether no file is missing or truncated."""
        return not any(cut_files(base))

    def _update(self, work: Callable[[IndexUpdate], None], live: Path) -> BuildOutcome:
        self._records = records = Records(live, write=True)
        self._writers = {part.kind: part.writer(live / part.kind) for part in self._options.parts}
        update = IndexUpdate(
            records,
            self._options.parts,
            self._writers,
            columns=self._options.columns,
            check_contents=self._options.check_contents,
            follow_links=self._options.follow_links,
            tick=self._tick,
        )
        work(update)
        self._save()
        notes = records.notes
        return BuildOutcome(
            update.changes, records.count("passages"), records.count("files"), records.count_problems(),
            records.changed or notes.changed, notes.count_bad_records(), records.problems(_MAX_NAMED),
            notes.bad_records(_MAX_NAMED), update.removed_files, update.remarks, notes.listed("unread"),
        )  # fmt: skip

    def _tick(self, progress: IndexProgress) -> None:
        self._progress(progress)
        now = time.monotonic()
        if now - self._saved < self._interval:
            return
        self._save()
        self._work.checkpoint()
        self._saved = time.monotonic()
        self._interval = max(self._interval, 10 * (self._saved - now))  # a tenth of the time, whatever the size

    def _save(self) -> None:
        for writer in self._writers.values():
            writer.commit()
        assert self._records is not None
        self._records.save()

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        if self._records is not None:
            self._records.close()


def publish(work: StagingDir, target: Path, generation: str, info: Any) -> None:
    """Switch to a new generation in one step, by renaming its folder or replacing the file that names the generation.

    Args:
        work: Staging folder with the generation in `live`.
        target: Folder of the index.
        generation: Name of the new generation.
        info: Content of `pyrag-index.json`.
    """
    if not target.is_dir():
        work.ready.mkdir()
        work.live.rename(work.ready / generation)
        write_info(info, work.ready / MARK)
        work.ready.rename(target)
        sync(target.parent)
        return
    work.live.rename(target / generation)
    write_info(info, target / MARK, work.folder / MARK)
    sync(target)
    for old in target.glob("gen-*"):
        if old.name != generation:
            shutil.rmtree(old, ignore_errors=True)


def write_info(info: Any, path: Path, scratch: Path | None = None) -> None:
    """Write the description of an index in one step.

    Args:
        info: Content of `pyrag-index.json`.
        path: File to replace.
        scratch: Path to write to first; see `AtomicFile`.
    """
    with AtomicFile(path, scratch) as file:
        write_all(file, msgspec.json.format(msgspec.json.encode(info)) + b"\n")


def _open_to_readers(folder: Path) -> None:
    """Set the permissions of all files by the user's umask, since tantivy makes some readable only by the user."""
    mode = stat.S_IMODE((folder / SETTINGS).stat().st_mode)
    for path in folder.rglob("*"):
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) != mode:
            with contextlib.suppress(PermissionError):  # the file belongs to another user, who built the index before
                path.chmod(mode)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)

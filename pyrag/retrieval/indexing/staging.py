"""Staging folder of a build, next to the index or inside it.

    lock          lock of the builder, which ends with its process
    live/         generation that is being written, lost with its builder
    done-N/       checkpoint: a generation that is not published, from which the next build resumes
    ready/        first generation with its `pyrag-index.json`, about to be renamed to the index

Generations share unchanged files by hard links, so a checkpoint or update takes only the space of its additions.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyrag._io.files import lock
from pyrag.retrieval.indexing.record_database import NAME as RECORDS

_LIVE = "live"
_READY = "ready"
_DONE = "done-"
_TRIES, _PAUSE = 50, 0.02  # seconds


class StagingDir:
    """Folder of the builder that holds the lock; see `staging_lock`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live, self.ready = folder / _LIVE, folder / _READY

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints, newest first, excluding those that are being made or removed."""
        return sorted(self.folder.glob(f"{_DONE}[0-9]*"), key=lambda path: -int(path.name.removeprefix(_DONE)))

    def begin(self, source: Path | None) -> None:
        """Make `live` a copy of the source, or an empty folder."""
        for stale in (self.live, self.ready, *self.folder.glob("tmp-*")):
            _remove(stale)
        if source is None:
            self.live.mkdir()
        else:
            _fork(source, self.live)

    def checkpoint(self) -> None:
        """Make a checkpoint of `live` that replaces earlier checkpoints. All of `live` must be synced to the disk."""
        before = self.checkpoints()
        number = int(before[0].name.removeprefix(_DONE)) + 1 if before else 1
        making = self.folder / "tmp-new"
        _fork(self.live, making)
        making.rename(self.folder / f"{_DONE}{number}")
        self._drop(before)

    def start_over(self) -> None:
        self._drop(self.checkpoints())

    def clear(self, *, keep_checkpoints: bool) -> None:
        """Remove everything, except for checkpoints if `keep_checkpoints` is set."""
        if keep_checkpoints and self.checkpoints():
            _remove(self.live)
            _remove(self.ready)
        else:
            _remove(self.folder)

    def _drop(self, checkpoints: list[Path]) -> None:
        for path in checkpoints:
            gone = self.folder / f"tmp-{path.name}"
            path.rename(gone)
            _remove(gone)


@contextmanager
def staging_lock(target: Path, on_wait: Callable[[], None]) -> Iterator[StagingDir]:
    """Lock the staging folder of an index and clean it up at the end.

    Args:
        target: Folder of the index.
        on_wait: Called before waiting for another builder of the same index.

    Returns:
        A context manager with the staging folder.
    """
    while True:
        folder = _place(target)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # another builder has just finished and removed the folder
        try:
            lock(descriptor, on_wait)
            if not _is(folder / "lock", descriptor) or folder != _place(target):
                continue
            if folder.parent == target:
                _remove_first(target, on_wait)
            work = StagingDir(folder)
            is_finished = False
            try:
                yield work
                is_finished = True
            finally:
                work.clear(keep_checkpoints=not is_finished)
            return
        finally:
            os.close(descriptor)


def _fork(source: Path, target: Path) -> None:
    """Make a folder with the same files: records are copied, since they change in place, and others are linked."""
    target.mkdir()
    for entry in os.scandir(source):
        if entry.is_dir():
            _fork(Path(entry.path), target / entry.name)
        elif entry.name == RECORDS:
            shutil.copy2(entry.path, target / entry.name)
        elif not entry.name.endswith(".lock"):
            _link(Path(entry.path), target / entry.name)


def _place(target: Path) -> Path:
    return target / ".building" if target.is_dir() else _first_place(target)


def _first_place(target: Path) -> Path:
    return target.with_name(f".{target.name}.building")


def _remove_first(target: Path, on_wait: Callable[[], None]) -> None:
    """Remove the staging folder of a first build that was killed after it had published the index."""
    folder = _first_place(target)
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR)
    except OSError:
        return
    try:
        lock(descriptor, on_wait)
        if _is(folder / "lock", descriptor):
            _remove(folder)
    finally:
        os.close(descriptor)


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # not on this file system
        shutil.copy2(source, target)


def _is(path: Path, descriptor: int) -> bool:
    """Return whether a path still leads to the open lock file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last, since no other builder starts as long as the lock exists."""
    with contextlib.suppress(FileNotFoundError):
        for entry in list(os.scandir(folder)):
            if entry.name != "lock":
                path = Path(entry.path)
                _remove_tree(path) if entry.is_dir(follow_symlinks=False) else path.unlink()
        (folder / "lock").unlink(missing_ok=True)
        folder.rmdir()


def _remove_tree(folder: Path) -> None:
    """Remove a folder that a thread of tantivy may still be writing to. This raises no error of its own."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE)

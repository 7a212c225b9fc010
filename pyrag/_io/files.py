"""Files that survive a kill or a power cut: replaced in one step, synced to the disk, locked between processes."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pyrag.errors import StorageError

_CURE = "make room and run the same command again: what is finished is kept"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class AtomicFile:
    """New content of a file, written beside it and moved to its place in one step.

    Readers see the old or the new content. As a context manager, it commits at the end of the block, unless the block
    discarded it or failed. All methods may raise `OSError`.

    Attributes:
        file: The open file, in binary mode.
    """

    def __init__(self, path: Path, scratch: Path | None = None) -> None:
        """Open the scratch file.

        Args:
            path: File to replace or create.
            scratch: Path to write to until the commit, on the same file system. None for a hidden file beside `path`.
        """
        self._path = path
        self._scratch = scratch or path.with_name(f".{path.name}.{os.getpid()}")
        self.file: IO[bytes] = self._scratch.open("wb")

    def commit(self) -> None:
        """Sync the content to the disk and move it into place."""
        self.file.close()
        sync(self._scratch)
        self._scratch.replace(self._path)

    def discard(self) -> None:
        """Remove the scratch file. This has no effect after a commit."""
        with suppress(OSError):  # a full disk refuses buffered content
            self.file.close()
        self._scratch.unlink(missing_ok=True)

    def __enter__(self) -> IO[bytes]:
        return self.file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None and not self.file.closed:
                self.commit()
        finally:
            self.discard()


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file in one step.

    Args:
        path: File to replace or create. Its folder must exist.
        content: New content of the file.

    Raises:
        StorageError: The file cannot be written; the old one stays.
    """
    with writing(path), AtomicFile(path) as file:
        write_all(file, content)


def write_json(path: Path, content: Any) -> None:
    """Replace a file with indented JSON in one step.

    Args:
        path: File to replace or create.
        content: Value that msgspec can encode.

    Raises:
        StorageError: The file cannot be written; the old one stays.
    """
    import msgspec

    with writing(path), AtomicFile(path) as file:
        write_all(file, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def write_all(file: IO[bytes], data: bytes) -> None:
    """Write all bytes, even to an unbuffered file, which may accept only some of them per call.

    Args:
        file: Open binary file.
        data: Bytes to write.

    Raises:
        OSError: The disk is full or failed; some of the bytes may have been written.
    """
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]


def open_private(path: Path) -> IO[bytes]:
    """Open a file for appending that only the current user can read; create it if missing.

    Raises:
        OSError: The file cannot be opened.
    """
    file = open(path, "ab", opener=partial(os.open, mode=0o600))  # noqa: SIM115
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        with suppress(PermissionError):  # the file belongs to another user
            os.fchmod(file.fileno(), 0o600)
    return file


@contextmanager
def writing(path: Path, cure: str = _CURE) -> Iterator[None]:
    """Turn an `OSError` of the block into a `StorageError` that names a file.

    Args:
        path: File to name.
        cure: Advice in case of a full disk.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            cure = "check its permissions, or choose another place"
        raise StorageError(f"{path} cannot be written ({error.strerror or error}): {cure}") from error


def sync(path: Path) -> None:
    """Sync a file's content, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(file: IO[Any] | int, on_busy: Callable[[], None] | None = None) -> None:
    """Lock an open file or folder against other processes until it is closed or this process ends.

    Args:
        file: Open file or descriptor.
        on_busy: Called before waiting if another process holds the lock. It may raise an error instead of waiting.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if on_busy is not None:
            on_busy()
        fcntl.flock(file, fcntl.LOCK_EX)

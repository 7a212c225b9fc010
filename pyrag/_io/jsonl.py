"""Files of lines that outlive a kill: each is on the disk before the next, and a torn last one counts as none."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyrag.errors import StorageError, UsageError

_CURE = "make room and run the same command again: what is finished is kept"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines and their numbers from 1, but for a last one that a killed process left half-written. Raises `OSError`."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield number, line


def locked_lines(path: Path) -> IO[bytes]:
    """The file, made where there is none, for `append` by this process alone. Raises `UsageError`, and `OSError`."""
    file = path.open("ab", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(f"{path} is in use by another process: wait for it, or choose another --out") from None
    cut_off_torn(path)
    return file


def cut_off_torn(path: Path) -> None:
    """Makes the file where there is none."""
    path.touch()
    cut_off(path, sum(len(line) for _, line in whole_lines(path)))


def cut_off(path: Path, length: int) -> None:
    """Drops what follows the first bytes."""
    if path.stat().st_size > length:
        with path.open("r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())


def append(file: IO[bytes], *lines: bytes) -> None:
    """Writes whole lines to the disk; a disk that is full may take the beginning only. Raises `OSError`."""
    write_all(file, b"".join(line + b"\n" for line in lines))
    file.flush()
    os.fsync(file.fileno())


def write_all(file: IO[bytes], data: bytes) -> None:
    """Writes to a file without a buffer too, which may take less than all at once."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


@contextmanager
def writing(
    path: Path, cure: str = "make room and run the same command again: what is finished is kept"
) -> Iterator[None]:
    """Turns an `OSError` of the block into a `StorageError` that names the file; `cure` is for a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            cure = "check its permissions, or choose another place"
        raise StorageError(f"{path} cannot be written ({error.strerror or error}): {cure}") from error

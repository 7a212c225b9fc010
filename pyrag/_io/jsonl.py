"""Files of lines that survive a kill: each line is synced before the next, and an incomplete last line is ignored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pyrag._io.files import lock, write_all
from pyrag.errors import UsageError


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the complete lines with their numbers from 1; ignore an incomplete last line of a killed process.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield number, line


def locked_lines(path: Path) -> IO[bytes]:
    """Open a file for `append` by this process only; create it if missing.

    Raises:
        UsageError: Another process has opened the file.
        OSError: The file cannot be opened.
    """
    file = path.open("ab", buffering=0)

    def refuse() -> None:
        file.close()
        raise UsageError(f"{path} is in use by another process: wait for it, or choose another --out") from None

    lock(file, refuse)
    cut_off_torn(path)
    return file


def cut_off_torn(path: Path) -> None:
    """Remove an incomplete last line; create the file if it is missing."""
    path.touch()
    cut_off(path, sum(len(line) for _, line in whole_lines(path)))


def cut_off(path: Path, length: int) -> None:
    """Shorten a file.

    Args:
        path: The file.
        length: Bytes to keep.
    """
    if path.stat().st_size > length:
        with path.open("r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())


def append(file: IO[bytes], *lines: bytes) -> None:
    """Write lines and sync them. On a full disk, only some of the bytes may be written.

    Args:
        file: File opened for appending.
        lines: Lines without line ends.

    Raises:
        OSError: The disk is full or failed.
    """
    write_all(file, b"".join(line + b"\n" for line in lines))
    file.flush()
    os.fsync(file.fileno())

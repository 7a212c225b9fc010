"""Checksums of the files of a generation, which `pyrag index verify` uses to find damage.

Files are never changed in place, so files that are shared with the previous generation keep their checksums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pyrag._io.files import AtomicFile, write_all

NAME = "checksums.json"

Sum = tuple[int, int, str]  # size, time of change, digest


def write_checksums(folder: Path) -> None:
    before = read_checksums(folder)
    sums = {name: _sum(path, before.get(name)) for name, path in _files(folder)}
    with AtomicFile(folder / NAME, folder / f".{NAME}.new") as file:
        write_all(file, msgspec.json.format(msgspec.json.encode(sums)) + b"\n")


def read_checksums(folder: Path) -> dict[str, Sum]:
    """Return the checksums of a generation; empty if they are missing or unreadable."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=dict[str, Sum])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def content_fingerprint(folder: Path) -> str:
    """Return a digest of the checksums of a generation, which is equal for copies; empty without checksums."""
    digests = sorted((name, digest) for name, (_, _, digest) in read_checksums(folder).items())
    return hashlib.blake2b(msgspec.json.encode(digests), digest_size=8).hexdigest() if digests else ""


def cut_files(folder: Path) -> Iterator[str]:
    """Yield the names of files that are missing or have a different size than when they were written.

    A truncated memory-mapped file may crash a reader.
    """
    for name, (size, _, _) in read_checksums(folder).items():
        try:
            is_complete = (folder / name).stat().st_size == size
        except OSError:
            is_complete = False
        if not is_complete:
            yield name


def wrong_files(folder: Path) -> Iterator[str]:
    """Yield a sentence for each file that is missing, changed or foreign."""
    sums = read_checksums(folder)
    if not sums:
        yield f"{NAME} is missing or damaged"
        return
    there = dict(_files(folder))
    for name, (_, _, digest) in sums.items():
        if name not in there:
            yield f"{name} is missing"
        elif _digest(there.pop(name)) != digest:
            yield f"{name} has changed since it was written"
    yield from (f"{name} does not belong here" for name in there)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != NAME and not path.name.endswith(".lock"):
            yield path.relative_to(folder).as_posix(), path


def _sum(path: Path, before: Sum | None) -> Sum:
    status = path.stat()
    if before and before[:2] == (status.st_size, status.st_mtime_ns):
        return before
    return status.st_size, status.st_mtime_ns, _digest(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()

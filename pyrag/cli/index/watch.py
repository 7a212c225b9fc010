"""Work of `pyrag index --watch`: updates an index whenever a document changes, until interrupted."""

from __future__ import annotations

import glob
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyrag.errors import PyRAGError

_State = dict[str, tuple[int, int, int]]


def build_and_watch(
    paths: Sequence[Path], out: Path, every: float | None, update: Callable[..., object], *, rebuild: bool
) -> None:
    """Build an index, and update it whenever its documents change, until Ctrl-C.

    Args:
        paths: Files, folders and globs of documents.
        out: Folder of the index, whose own files are not watched.
        every: Seconds between two checks of the files; None to build only once.
        update: Function that updates the index. If it fails after a change, the error is printed on stderr, and the
            next change tries again.
        rebuild: Whether to build the index from scratch first.
    """
    if every is None:
        update(rebuild=rebuild)
        return
    try:
        _watch(paths, out, every, update, rebuild=rebuild)
    except KeyboardInterrupt:
        print("no longer watching", file=sys.stderr, flush=True)


def _watch(paths: Sequence[Path], out: Path, every: float, update: Callable[..., object], *, rebuild: bool) -> None:
    state = _state(paths, out)
    update(rebuild=rebuild)
    sys.stdout.flush()
    print(f"watching for changes every {every:g} s (Ctrl-C ends)", file=sys.stderr, flush=True)
    while True:
        time.sleep(every)
        if (now := _state(paths, out)) != state:
            state = now
            _tried(update)


def _tried(update: Callable[..., object]) -> None:
    try:
        update(rebuild=False)
    except PyRAGError as error:
        print(f"pyrag: {error}", file=sys.stderr)
    sys.stdout.flush()


def _state(paths: Sequence[Path], out: Path) -> _State:
    """Return inode, size and modification time of all files below some paths."""
    own = os.path.realpath(out)
    state: _State = {}
    for path in paths:
        places = [str(path)] if path.exists() else glob.glob(str(path), recursive=True)  # noqa: PTH207 (keeps quoted globs)
        for place in places:
            for entry in _files(place, own):
                state[entry] = _stat(entry)
    return state


def _files(place: str, own: str) -> Iterator[str]:
    if not os.path.isdir(place):  # noqa: PTH112 (strings are kept, as there may be many)
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if os.path.realpath(f"{folder}/{name}") != own]
        yield from (f"{folder}/{name}" for name in names)


def _stat(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 (strings, as above)
    except OSError:
        return (0, 0, 0)
    return status.st_ino, status.st_size, status.st_mtime_ns

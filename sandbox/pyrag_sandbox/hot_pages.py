"""The memory pages that any program makes a worker write to, copied for it at once, before its program is there.

A fork shares its parent's memory until it writes: each first write to a page then is a fault. Of the eight hundred
pages that a worker copies it copies some seven hundred whatever its program is; a first worker, the scout, shows which.
Systems that do not tell (`/proc/PID/pagemap`) or cannot copy (`process_madvise`, for one's own memory since Linux 6.13)
leave it to the faults.
"""

from __future__ import annotations

import array
import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

_PRESENT, _EXCLUSIVE = 1 << 63, 1 << 56  # bits of an entry of the page map
_ENTRY_BYTES, _RANGE_BYTES = 8, 16
_PROCESS_MADVISE = 440  # the number is the same on every architecture
_MADV_POPULATE_WRITE = 23
_MOST_RANGES = 1024  # of a call

Range = tuple[int, int]  # first address and the one behind the last


def shared_memory() -> list[Range]:
    """This process's private memory that it has written to, but its stack: what its forks will share."""
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:  # noqa: PTH123 - `Path.open` is the same
        return list(_pages(pagemap.fileno(), list(_writable()), _PRESENT))


def copied(pagemap: int, shared: list[Range]) -> bytes:
    """What a fork has copied of the memory it shared, by its page map, while others share the originals.

    As `HotPages` takes it: an address and a length in bytes for each range, 64 bits each.
    """
    found = _pages(pagemap, shared, _PRESENT | _EXCLUSIVE)
    return array.array("Q", [number for first, end in found for number in (first, end - first)]).tobytes()


def _writable() -> Iterator[Range]:
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, permissions, *rest = line.split()
        if permissions.startswith("rw") and permissions.endswith("p") and rest[-1] != "[stack]":
            first, _, end = addresses.partition("-")
            yield int(first, 16), int(end, 16)


def _pages(pagemap: int, ranges: list[Range], wanted: int) -> Iterator[Range]:
    """The parts of `ranges` whose pages' entries have the bits `wanted`."""
    size = resource.getpagesize()
    for start, end in ranges:
        entries = array.array(
            "Q", os.pread(pagemap, (end - start) // size * _ENTRY_BYTES, start // size * _ENTRY_BYTES)
        )
        first = start
        for at, entry in zip(range(start, end, size), entries, strict=True):
            if entry & wanted != wanted:
                if first < at:
                    yield first, at
                first = at + size
        if first < end:
            yield first, end


class HotPages:
    """Calling it in a fork gives that process copies of the pages noted. Never fails; at worst it does nothing."""

    def __init__(self) -> None:
        self._count = 0
        self._ranges = ctypes.create_string_buffer(_MOST_RANGES * _RANGE_BYTES)
        self._address = ctypes.addressof(self._ranges)
        self._syscall = ctypes.CDLL(None).syscall
        self._syscall.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, *[ctypes.c_long] * 3]

    def note(self, ranges: bytes) -> None:
        """Take what `copied` found, up to the number of ranges that fit in one call."""
        self._count = min(len(ranges) // _RANGE_BYTES, _MOST_RANGES)
        ctypes.memmove(self._address, ranges, self._count * _RANGE_BYTES)

    def __call__(self) -> None:
        if sys.platform != "linux":
            return
        try:
            myself = os.pidfd_open(os.getpid())
        except OSError:
            return
        self._syscall(_PROCESS_MADVISE, myself, self._address, self._count, _MADV_POPULATE_WRITE, 0)
        os.close(myself)

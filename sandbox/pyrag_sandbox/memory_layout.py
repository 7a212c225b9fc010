"""Where objects lie in the memory that workers share: together, so that workers write to few pages.

A fork shares its parent's memory until it writes, and each page that it writes to is copied. Counting a reference is a
write. So what every program uses should lie in the same pages, and what a program makes in fresh ones.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import CodeType, FunctionType

_SPARE_NAMES = 4000
_SMALL_HOLES = 300  # of each size
_MOST_BYTES = 512 * 1024  # of each size: with other allocators, blocks may never lie in a row
_BYTES_HEADER, _CHUNK_HEADER = sys.getsizeof(b""), 8  # what an empty bytes object takes, and malloc for itself
_POOL_BYTES = 16 * 1024  # the interpreter's allocator cuts these into blocks of one size, up to 512 bytes
_CHUNKS = (*(2**power for power in range(15, 10, -1)), *range(1040, 527, -16))  # of malloc, which serves the rest
_CHUNKS_IN_A_ROW = 8
_kept: list[object] = []


def gather_code(run: Callable[[], None]) -> None:
    """Have the code of what `run` calls lie side by side; between the pieces are those that no program uses."""
    called: set[CodeType] = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code))
    run()
    sys.setprofile(None)
    _fill_holes()
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__ in called:
            _kept.append(function.__code__)  # where it was, nothing else shall come
            function.__code__ = _copied(function.__code__, called)


def _copied(code: CodeType, called: set[CodeType]) -> CodeType:
    parts = [_copied(part, called) if part in called else part for part in code.co_consts]
    return code.replace(co_consts=tuple(parts))


def settle() -> None:
    """Call it last. A full table of interned strings would be grown by every worker anew (0.4 MB)."""
    spare = [sys.intern(f"spare {number}") for number in range(_SPARE_NAMES)]
    del spare
    _fill_holes()


def _fill_holes() -> None:
    """Have new objects lie side by side in fresh pages, not in holes all over the memory."""
    gc.collect()
    for _ in range(_SMALL_HOLES):
        _kept.extend((object(), float("1")))  # the blocks that bytes are too large for: of 16 and of 32
    for size in range(48, 513, 16):
        _fill_holes_of(size, size - _BYTES_HEADER, _POOL_BYTES // size - 2)
    for size in _CHUNKS:
        _fill_holes_of(size, size - _BYTES_HEADER - _CHUNK_HEADER, _CHUNKS_IN_A_ROW)


def _fill_holes_of(size: int, length: int, in_a_row: int) -> None:
    """Take blocks of a size until some lay one behind the other: then they come from fresh memory."""
    last = found = 0
    for _ in range(_MOST_BYTES // size):
        _kept.append(bytes(length))
        found = found + 1 if id(_kept[-1]) == last + size else 0
        last = id(_kept[-1])
        if found >= in_a_row:
            return

"""Recognise iterables that run no code of the program: their items may be taken early."""

from __future__ import annotations

import gc
import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from types import GeneratorType
from typing import Any

_CONTAINERS: tuple[Any, ...] = (
    *([], (), "", "é", b"", bytearray(), set(), frozenset(), {}, Counter(), OrderedDict(), defaultdict(), deque()),
    *({}.keys(), {}.values(), {}.items(), range(0), range(2**70)),
)
_BACKWARDS: tuple[Any, ...] = ([], {}, {}.keys(), {}.values(), {}.items(), range(0), range(2**70), deque())
_ITERATORS = frozenset(type(iter(example)) for example in _CONTAINERS)
_REVERSED = frozenset(type(reversed(example)) for example in _BACKWARDS)
_QUIET = frozenset(type(example) for example in _CONTAINERS) | _REVERSED
# They take items from others, which they hold in tuples.
_WRAPPERS: frozenset[type] = frozenset(
    {enumerate, zip, reversed, itertools.chain, itertools.islice, itertools.zip_longest, itertools.pairwise}
    | {itertools.product, itertools.combinations, itertools.permutations, itertools.repeat, itertools.cycle}
)
_TUPLES = frozenset({tuple, type(iter(()))})
_MAX_LEVELS = 6


def is_quiet(source: Iterable[Any]) -> bool:
    """Certainly no code of the program runs when items are taken: no generator, no function that `map` calls.

    A bare iterator is not quiet: the program may go on with what is left of it.
    """
    return type(source) in _QUIET or (type(source) in _WRAPPERS and not _runs_code(source, _MAX_LEVELS))


def begins_quietly(expression: object) -> bool:
    """Likewise for what a generator expression of ours, not begun yet, takes its items from."""
    assert isinstance(expression, GeneratorType)
    assert expression.gi_frame is not None
    head = expression.gi_frame.f_locals[".0"]
    return type(head) in _ITERATORS or is_quiet(head)


def _runs_code(source: object, levels: int) -> bool:
    for part in gc.get_referents(source):
        kind = type(part)
        if kind in _WRAPPERS or kind in _TUPLES:
            if levels == 0 or _runs_code(part, levels - 1):
                return True
        elif isinstance(part, Iterator) and kind not in _ITERATORS and kind not in _REVERSED:
            return True
    return False

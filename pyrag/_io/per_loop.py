"""Values that belong to one event loop, such as locks and queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value for each event loop, made at its first use there and forgotten with the loop."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Return the running loop's value."""
        loop = asyncio.get_running_loop()
        try:
            return self._values[loop]
        except KeyError:
            return self._values.setdefault(loop, self._make())

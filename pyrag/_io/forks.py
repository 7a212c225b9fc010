"""Objects that drop resources inherited from the parent process after a fork (`os.fork`, multiprocessing)."""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol


class Forkable(Protocol):
    """Object with resources that a child process must not use."""

    def after_fork(self) -> None:
        """Drop the parent's resources. Called in the child, where no other thread runs."""
        ...


_instances: weakref.WeakSet[Any] = weakref.WeakSet()
_inherited: list[Any] = []


def watch(instance: Forkable) -> None:
    """Call the object's `after_fork` in every child process, as long as the object lives."""
    _instances.add(instance)


def keep(resources: object) -> None:
    """Keep the parent's resources alive, since their destructors would affect the parent."""
    _inherited.append(resources)


def _in_child() -> None:
    for instance in list(_instances):
        instance.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

"""Tasks, and the namespaces they run in. They are plain records, which the scheduler updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from greenlet import greenlet  # type: ignore[import-untyped] # it ships no types

from pyrag_sandbox.dataflow.units import Unit

NONE: frozenset[int] = frozenset()
NONE_BOUND: frozenset[str] = frozenset()
IMMUTABLE: tuple[type, ...] = (str, int, float, bool, type(None), bytes, complex)
_ABSENT = object()


class Scope:
    """Namespace with the provenance of its names: ids of the calls whose results are in their values.

    An iteration has its own scope, on top of its loop's scope. Names whose objects iterations mutate in turn are
    `shared`: the part of an iteration that runs ahead uses their provenance from the start of the loop; the rest uses
    the base's provenance.
    """

    __slots__ = ("ahead", "base", "base_ahead", "elements", "names", "origins", "shared")

    def __init__(
        self,
        names: dict[str, Any],
        base: Scope | None = None,
        shared: frozenset[str] = NONE_BOUND,
        *,
        base_ahead: bool = True,
    ) -> None:
        self.names = names
        self.origins: dict[str, frozenset[int]] = {}
        self.elements: dict[str, list[frozenset[int]]] = {}  # for names whose value is a list, the origins of each item
        self.base = base
        self.shared = shared
        self.base_ahead = base_ahead  # whether the loop itself runs ahead
        self.ahead: Counter[str] = Counter()  # names bound by tasks that run ahead of their turn

    def began(self, scope: Scope, *, ahead: bool) -> None:
        """Copy the current provenance of another scope.

        Args:
            scope: Scope of the loop.
            ahead: Whether to use the view of a task that runs ahead of its turn.
        """
        self.origins = dict(scope.origins)
        self.elements = dict(scope.elements)
        for name in scope.shared:
            home = scope.home(name, ahead=ahead)
            self.origins[name] = home.origins.get(name, NONE)
            self.elements.pop(name, None)

    def home(self, name: str, *, ahead: bool) -> Scope:
        """Return the scope in which the provenance of a name is recorded.

        Args:
            name: The name, bound or not.
            ahead: Whether to use the view of a task that runs ahead of its turn, which does not leave this scope.
        """
        scope = self
        while scope.base is not None and name in scope.shared and not ahead:
            scope, ahead = scope.base, scope.base_ahead
        return scope

    def _tables(self) -> tuple[dict[str, Any], ...]:
        return self.names, self.origins, self.elements

    def forget(self, name: str) -> None:
        """Remove a name and its provenance."""
        for table in self._tables():
            table.pop(name, None)

    def take(self, name: str, other: Scope) -> None:
        """Copy a name's value and provenance from another scope.

        Args:
            name: The name; if the other scope lacks it, it is removed here.
            other: Scope to copy from.
        """
        for mine, theirs in zip(self._tables(), other._tables(), strict=True):
            value = theirs.get(name, _ABSENT)
            if value is _ABSENT:
                mine.pop(name, None)
            else:
                mine[name] = value

    def of(self, names: Iterable[str], *, ahead: bool) -> frozenset[int]:
        """Return the ids of the calls whose results are in the values of names.

        Args:
            names: The names; those without provenance add nothing.
            ahead: Whether to use the view of a task that runs ahead of its turn.
        """
        if ahead or self.base is None:
            own = self.origins
            return NONE.union(*[own[name] for name in names if name in own])
        return NONE.union(*[self.home(name, ahead=ahead).origins.get(name, NONE) for name in names])

    def part(self, names: Iterable[str]) -> Scope:
        """Return a scope with only these names."""
        part = Scope({})
        for name in names:
            part.take(name, self)
        return part


@dataclass(slots=True)
class Printed:
    """Text that a program printed."""

    text: str
    emitted: bool = False


@dataclass(eq=False, slots=True)
class Task:
    """Running part of a program: a unit, an element of a comprehension, or an iteration."""

    parent: Task | None
    unit: Unit
    scope: Scope
    context: frozenset[int] = NONE  # calls that decided whether this runs
    inherited: frozenset[int] = NONE  # calls that its starter had made before
    ahead: bool = True  # runs, or may run, before its turn
    turn: bool = False  # everything before it within its parent has succeeded
    green: Green | None = None
    parked: bool = False
    done: bool = False
    killed: bool = False
    error: Exception | None = None
    value: Any = None
    waits_for: int | None = None
    last_call: int = -1
    own: set[int] = field(default_factory=set)
    log: list[int | Printed] = field(default_factory=list)
    flushed: int = 0
    children: list[Task] = field(default_factory=list)
    gathered: list[frozenset[int]] | None = None
    undo: Scope | None = None

    def origins_of(self, names: Iterable[str]) -> frozenset[int]:
        """Return the ids of the calls whose results are in the values of names."""
        return self.scope.of(names, ahead=self.ahead)

    @property
    def live(self) -> bool:
        """True if a sequential run would be at this point now."""
        task: Task | None = self
        while task is not None:
            if not task.turn:
                return False
            task = task.parent
        return True


class Green(greenlet):  # type: ignore[misc] # untyped
    """Greenlet of a task."""

    task: Task


def calls_so_far(task: Task) -> tuple[int, ...]:
    """Return the calls that a sequential run would have made up to a task, in order."""
    while task.parent is not None:
        task = task.parent
    return tuple(entry for entry in _live_log(task) if isinstance(entry, int))


def _live_log(task: Task) -> list[int | Printed]:
    log = list(task.log)
    for child in task.children:
        if child.turn:
            log += _live_log(child)
    return log


class Atoms:
    """Test for values that are deeply immutable."""

    def __init__(self, types: tuple[type, ...] = ()) -> None:
        self.types = frozenset(IMMUTABLE + types)

    def __call__(self, value: Any) -> bool:
        if type(value) is tuple or type(value) is frozenset:
            return len(value) < 100 and all(self(item) for item in value)
        return type(value) in self.types

"""`Effects`: what running a piece of a program may do."""

from __future__ import annotations

from dataclasses import dataclass, field

NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class Effects:
    """What running a node may do. `reads`, `binds` and `mutates` are global names."""

    reads: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    mutates: set[str] = field(default_factory=set)
    calls: bool = False  # of primitives
    prints: bool = False
    ordered: bool = False  # must not run before everything earlier has succeeded
    unsure: bool = False  # may do anything to whatever it can reach
    lazy: bool = False  # a lazy iterator outlives the expression
    deep: bool = False  # mutates more than the very objects that the names in `mutates` are bound to

    @property
    def pure(self) -> bool:
        return not (self.mutates or self.ordered or self.unsure or self.lazy)

    def merge(self, other: Effects) -> None:
        self.reads |= other.reads
        self.binds |= other.binds
        self.mutates |= other.mutates
        self.calls |= other.calls
        self.prints |= other.prints
        self.ordered |= other.ordered
        self.unsure |= other.unsure
        self.lazy |= other.lazy
        self.deep |= other.deep

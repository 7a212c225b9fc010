"""Parts of a plan and their dependencies. Frozen data, which the scheduler runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pyrag_sandbox.dataflow.aliases import Aliases
from pyrag_sandbox.dataflow.effects import NOTHING, Effects
from pyrag_sandbox.dataflow.syntax import is_look

SourceKind = Literal["", "call", "copy", "item", "unpack", "list", "spread", "gather"]


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Known origin of a simple assignment's value, for provenance."""

    kind: SourceKind = ""
    targets: tuple[str, ...] = ()
    source: str = ""
    index: int = 0
    parts: tuple[frozenset[str], ...] = ()


class Unit(NamedTuple):  # created in a third of the time of a frozen dataclass
    """Part of a program that runs as a whole."""

    tree: ast.Module
    reads: frozenset[str] = NOTHING
    header: frozenset[str] = NOTHING  # reads of the unit's own code, without the blocks it runs
    binds: frozenset[str] = NOTHING
    own_binds: frozenset[str] = NOTHING  # bound by the unit's own code
    mutates: frozenset[str] = NOTHING
    pure: bool = False
    early: bool = False  # may run before everything earlier has succeeded
    unsure: bool = False
    calls: bool = True  # may call a primitive
    after: tuple[int, ...] = ()  # earlier units of the block that an early unit waits for ...
    unless_atoms: tuple[tuple[int, frozenset[str]], ...] = ()  # ... and those it need not wait for if these hold atoms
    value_source: ValueSource = ValueSource()
    compound: bool = True


ROOT = Unit(ast.Module([], []))  # stands for the whole program


@dataclass(frozen=True, slots=True)
class Loop:
    """Relation between the iterations of a `%each` block. The sets hold names."""

    item: str  # the name that holds the iteration's item
    local: frozenset[str]  # bound by every iteration separately
    carried: frozenset[str]  # passed from iteration to iteration, in order
    shared: frozenset[str]  # outer names whose objects iterations may mutate, in order
    read: frozenset[str]  # outer names read ahead of their turn ...
    mutated: frozenset[str]  # ... which must not reach the objects these are bound to


@dataclass(frozen=True, slots=True)
class Block:
    """Units in program order, with the relation between iterations if it is a loop's body."""

    units: tuple[Unit, ...]
    loop: Loop | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Program cut into units."""

    root: Block
    blocks: tuple[Block, ...]
    aliases: dict[str, frozenset[str]] = field(default_factory=dict)  # name -> all names of its class


@dataclass(slots=True)
class Draft:
    """Unit without its links."""

    tree: ast.Module
    effects: Effects
    own: Effects
    early: bool
    unsure: bool
    value_source: ValueSource
    compound: bool


class Linker:
    """Linker of units by their dependencies: reads and writes of names, and reads after mutations of alias classes."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases
        self.bound: dict[str, int] = {}
        self.readers: dict[str, list[int]] = {}
        self.mutated: dict[str, int] = {}
        self.barrier = -1

    def add(self, index: int, draft: Draft) -> Unit:
        """Return the next unit of a block, linked to the units before it.

        Args:
            index: Position in the block; units are added in order.
            draft: The unit without its links.
        """
        effects = draft.effects
        after = {self.bound[n] for n in effects.reads | effects.binds if n in self.bound}
        for name in effects.binds:
            after.update(self.readers.get(name, ()))
        if self.barrier >= 0:
            after.add(self.barrier)
        soft: dict[int, set[str]] = {}
        for name in effects.reads if self.mutated and not is_look(draft.tree.body[0]) else ():
            mutator = self.mutated.get(self.aliases.find(name), -1)
            if mutator >= 0 and mutator not in after:
                soft.setdefault(mutator, set()).add(name)
        self._note(index, draft)
        return Unit(
            tree=draft.tree,
            reads=frozenset(effects.reads),
            header=frozenset(draft.own.reads),
            binds=frozenset(effects.binds),
            own_binds=frozenset(draft.own.binds),
            mutates=frozenset(effects.mutates),
            pure=effects.pure and not draft.unsure,
            early=draft.early,
            unsure=draft.unsure,
            calls=effects.calls or draft.unsure,
            after=tuple(sorted(after)) if draft.early else (),
            unless_atoms=tuple((i, frozenset(n)) for i, n in sorted(soft.items())) if draft.early else (),
            value_source=draft.value_source,
            compound=draft.compound,
        )

    def _note(self, index: int, draft: Draft) -> None:
        for name in draft.effects.binds:
            self.bound[name] = index
            self.readers[name] = []
        for name in draft.effects.reads:
            self.readers.setdefault(name, []).append(index)
        for name in draft.effects.mutates:
            self.mutated[self.aliases.find(name)] = index
        if draft.unsure:
            self.barrier = index

"""Provenance: the calls that a name's value depends on.

A name has the calls whose results are in its value; `closure` adds the calls that those depend on. No call is ever
missing, but there may be too many. Provenance is exact for a call's own result, copies, items at a constant index of
lists with known parts, and elements of a gathered comprehension. A compound statement's own code is treated as a whole,
and its blocks separately.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from pyrag_sandbox.dataflow.units import Plan
from pyrag_sandbox.worker.tasks import NONE, Scope, Task, calls_so_far

_BINDS_FOR_CERTAIN = (ast.Assign, ast.AugAssign, ast.FunctionDef, ast.Import, ast.ImportFrom)


class Provenance:
    """Record of the provenance of names, updated in their `Scope` when units end."""

    def __init__(self, plan: Plan, is_atom: Callable[[Any], bool]) -> None:
        self.plan = plan
        self._is_atom = is_atom
        self.depends: list[tuple[int, ...]] = []  # dependencies of each call

    def settle(self, task: Task, before: frozenset[int]) -> None:
        """Record the provenance of the names that a unit bound or mutated, after it has ended, even with an error.

        Args:
            task: Task of the unit.
            before: Ids of the calls behind the names that its header reads, at the time of its start.
        """
        unit, scope = task.unit, task.scope
        flow = before | task.origins_of(unit.header) if unit.compound else before
        flow = flow | task.own | task.context
        if unit.unsure:
            flow = flow.union(calls_so_far(task))
        if isinstance(unit.tree.body[0], ast.Try):  # whether its blocks raised anything depends on these calls
            flow = flow.union(entry for entry in task.log if isinstance(entry, int))
        if unit.value_source.kind and unit.value_source.targets:
            self._bind(task, flow)
            if len(unit.binds) > len(unit.value_source.targets):  # bound by functions that the value calls
                self.taint(scope, unit.binds.difference(unit.value_source.targets), flow)
        elif unit.compound or unit.unsure or not isinstance(unit.tree.body[0], _BINDS_FOR_CERTAIN):
            self.taint(scope, unit.binds, flow)
        else:
            for name in unit.binds:
                scope.elements.pop(name, None)
                scope.origins[name] = flow
        self._taint_mutated(task, flow)

    def taint(self, scope: Scope, names: Iterable[str], origins: frozenset[int]) -> None:
        """Add calls to the provenance of names, and discard the provenance of single list items.

        Args:
            scope: Scope in which the names are recorded.
            names: Names, which may be unbound.
            origins: Ids of the calls.
        """
        for name in names:
            scope.elements.pop(name, None)
            scope.origins[name] = scope.origins.get(name, NONE) | origins

    def _taint_mutated(self, task: Task, flow: frozenset[int]) -> None:
        if not task.unit.mutates:
            return
        names = {m for n in task.unit.mutates for m in self.plan.aliases.get(n, (n,))}
        scope: Scope | None = task.scope
        while scope is not None:
            here = names - scope.shared
            held, ahead = scope.names, scope.ahead
            self.taint(scope, [n for n in here if n in held and not ahead[n] and not self._is_atom(held[n])], flow)
            names, scope = names - here, scope.base

    def _bind(self, task: Task, flow: frozenset[int]) -> None:
        """Record the provenance of the names that a simple assignment binds, and of the items of a list."""
        value_source, scope = task.unit.value_source, task.scope
        whole, parts = self._value_origins(task, flow)
        spread = value_source.kind in ("unpack", "spread")
        for index, name in enumerate(value_source.targets):
            known = spread and parts is not None and len(parts) == len(value_source.targets)
            scope.origins[name] = (parts[index] if known and parts is not None else whole) | task.context
            if parts is not None and not spread:
                scope.elements[name] = [part | task.context for part in parts]
            else:
                scope.elements.pop(name, None)

    def _value_origins(self, task: Task, flow: frozenset[int]) -> tuple[frozenset[int], list[frozenset[int]] | None]:
        value_source = task.unit.value_source
        if value_source.kind == "call":
            return (frozenset({task.last_call}) if task.last_call >= 0 else flow), None
        if value_source.kind == "gather":
            return flow, task.gathered
        if value_source.kind in ("list", "spread"):
            return flow, [task.origins_of(part) | task.own for part in value_source.parts]
        listed = task.scope.home(value_source.source, ahead=task.ahead).elements.get(value_source.source)
        if value_source.kind == "item":
            known = listed is not None and -len(listed) <= value_source.index < len(listed)
            return (listed[value_source.index] if known and listed is not None else flow), None
        return flow, listed

    def closure(self, ids: Iterable[int]) -> tuple[int, ...]:
        """Return the ids of calls with everything they depend on, in ascending order."""
        seen: set[int] = set()
        todo = list(ids)
        while todo:
            call_id = todo.pop()
            if call_id not in seen:
                seen.add(call_id)
                todo += self.depends[call_id]
        return tuple(sorted(seen))

"""Independence of a loop's iterations: whether some of them read objects that others mutate."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from pyrag_sandbox.dataflow.units import Loop
from pyrag_sandbox.worker.tasks import Atoms

REACH = 10_000  # number of examined objects after which two values count as connected


def are_entangled(is_atom: Atoms, names: dict[str, Any], loop: Loop) -> bool:
    """Return True if objects that iterations read early may reach an object that other iterations mutate.

    Args:
        is_atom: Test for values that reach no other object.
        names: Values of the names outside the loop.
        loop: Names that iterations read and mutate; the result is also True if more than `REACH` objects must be
            examined.
    """
    targets = {id(names[n]) for n in loop.mutated if n in names}
    todo = [names[n] for n in loop.read if n in names]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        if id(value) in targets or len(seen) > REACH:
            return True
        if is_atom(value) or id(value) in seen:
            continue
        seen.add(id(value))
        inner = _contents(value)
        if inner is None:
            return True
        todo += inner
    return False


def _contents(value: Any) -> list[Any] | None:
    """Return the objects that a value refers to directly; None if they are unknown."""
    if type(value) is FunctionType:
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, (type, ModuleType)):
        return []
    if type(value) in (list, tuple, set, frozenset):
        return list(value)
    return [*value.keys(), *value.values()] if type(value) is dict else None

"""Shapes of assignments: the known origin of a name's value, before the value exists."""

from __future__ import annotations

import ast
from typing import TypeGuard

from pyrag_sandbox.dataflow.analyzer import Analyzer
from pyrag_sandbox.dataflow.hoisting import gatherable
from pyrag_sandbox.dataflow.units import Shape


def shape_of(a: Analyzer, statement: ast.stmt) -> Shape:
    """Return the known origin of a simple assignment's value; an empty `Shape` for anything else.

    Args:
        a: Analysis of the program.
        statement: The statement.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return Shape()
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return _shape_of_name(a, target.id, value)
    if not isinstance(target, (ast.Tuple, ast.List)) or not all(isinstance(e, ast.Name) for e in target.elts):
        return Shape()
    names = tuple(e.id for e in target.elts if isinstance(e, ast.Name))
    if len(set(names)) == len(names):
        if isinstance(value, ast.Name):
            return Shape("unpack", names, value.id)
        if _is_display(value) and len(value.elts) == len(names):
            return Shape("spread", names, parts=_parts(a, value))
    return Shape()


def _shape_of_name(a: Analyzer, name: str, value: ast.expr) -> Shape:
    if a.calls_primitive(value):
        return Shape("call", (name,))
    if isinstance(value, ast.Name):
        return Shape("copy", (name,), value.id)
    if _is_display(value):
        return Shape("list", (name,), parts=_parts(a, value))
    if isinstance(value, ast.ListComp) and len(value.generators) == 1 and not value.generators[0].ifs:
        return Shape("gather", (name,)) if gatherable(a, value) else Shape()
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        index = _constant_index(value.slice)
        if index is not None:
            return Shape("item", (name,), value.value.id, index)
    return Shape()


def _parts(a: Analyzer, value: ast.List | ast.Tuple) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(a.effects(e).reads) for e in value.elts)


def _is_display(node: ast.expr) -> TypeGuard[ast.List | ast.Tuple]:
    return isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(e, ast.Starred) for e in node.elts)


def _constant_index(node: ast.expr) -> int | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    return sign * value if isinstance(value, int) and not isinstance(value, bool) else None

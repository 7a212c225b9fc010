"""Sources of values: what is known about the origin of a name's value before the value exists."""

from __future__ import annotations

import ast
from typing import TypeGuard

from pyrag_sandbox.dataflow.analyzer import Analyzer
from pyrag_sandbox.dataflow.hoisting import gatherable
from pyrag_sandbox.dataflow.units import ValueSource


def value_source_of(a: Analyzer, statement: ast.stmt) -> ValueSource:
    """Return the known origin of a simple assignment's value; an empty `ValueSource` for anything else.

    Args:
        a: Analysis of the program.
        statement: The statement.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ValueSource()
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return _value_source_of_name(a, target.id, value)
    if not isinstance(target, (ast.Tuple, ast.List)) or not all(isinstance(e, ast.Name) for e in target.elts):
        return ValueSource()
    names = tuple(e.id for e in target.elts if isinstance(e, ast.Name))
    if len(set(names)) == len(names):
        if isinstance(value, ast.Name):
            return ValueSource("unpack", names, value.id)
        if _is_display(value) and len(value.elts) == len(names):
            return ValueSource("spread", names, parts=_parts(a, value))
    return ValueSource()


def _value_source_of_name(a: Analyzer, name: str, value: ast.expr) -> ValueSource:
    if a.calls_primitive(value):
        return ValueSource("call", (name,))
    if isinstance(value, ast.Name):
        return ValueSource("copy", (name,), value.id)
    if _is_display(value):
        return ValueSource("list", (name,), parts=_parts(a, value))
    if isinstance(value, ast.ListComp) and len(value.generators) == 1 and not value.generators[0].ifs:
        return ValueSource("gather", (name,)) if gatherable(a, value) else ValueSource()
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        index = _constant_index(value.slice)
        if index is not None:
            return ValueSource("item", (name,), value.value.id, index)
    return ValueSource()


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

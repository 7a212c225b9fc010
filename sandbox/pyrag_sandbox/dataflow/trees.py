"""Walks over syntax trees, using a table of the fields that can hold nodes, which is faster than `ast`'s walks.

Expression contexts and operators (`Load`, `Add`) are skipped by all walks: they contain nothing and are all allowed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
Kinds = dict[type[ast.AST], list[Any]]  # nodes by their class

# Fields of text, numbers, contexts and operators, in any class.
_PLAIN_FIELDS = frozenset(
    {
        *("arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "is_lazy", "kind", "kwd_attrs", "level"),
        *("lineno", "module", "op", "ops", "rest", "simple", "str", "tag", "type_comment", "type_ignores"),
    }
)
_PLAIN_FIELDS_OF = {
    "Constant": {"value"},
    "MatchSingleton": {"value"},
    "Global": {"names"},
    "Nonlocal": {"names"},
}
_NAME_IS_A_NODE = frozenset({"TypeAlias"})
_WITH_GAPS = (ast.Dict, ast.arguments)  # lists that may hold None


def _kinds(kind: type[ast.AST]) -> Iterator[type[ast.AST]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _child_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    plain = _PLAIN_FIELDS | _PLAIN_FIELDS_OF.get(kind.__name__, set())
    if kind.__name__ not in _NAME_IS_A_NODE:
        plain |= {"name"}
    return tuple(name for name in kind._fields if name not in plain)


CHILD_FIELDS = {kind: _child_fields(kind) for kind in _kinds(ast.AST)}


def children(node: ast.AST) -> list[Any]:
    """Return the direct children of a node, in the order of their fields."""
    nodes: list[Any] = []
    for name in CHILD_FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            nodes += value
        elif value is not None:
            nodes.append(value)
    return [child for child in nodes if child is not None] if isinstance(node, _WITH_GAPS) else nodes


def walk(node: ast.AST) -> list[Any]:
    """Return a node and all nodes below it, each before its children, later siblings first."""
    return walk_all([node])


def walk_all(nodes: list[Any]) -> list[Any]:
    """Return these nodes and all nodes below them, each before its children, later siblings first."""
    stack = list(nodes)
    visited: list[Any] = []
    while stack:
        node = stack.pop()
        visited.append(node)
        for name in CHILD_FIELDS[node.__class__]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                stack += value if None not in value else [item for item in value if item is not None]
            elif value is not None:
                stack.append(value)
    return visited


def by_kind(nodes: Iterable[Any]) -> Kinds:
    """Return nodes grouped by their class."""
    groups: Kinds = {}
    for node in nodes:
        same = groups.get(node.__class__)
        if same is None:
            groups[node.__class__] = [node]
        else:
            same.append(node)
    return groups


def located(node: _Node, at: ast.AST) -> _Node:
    """Return `node` with a position for each of its nodes that has none.

    Args:
        node: The tree, which is changed.
        at: Node whose position is used.
    """
    for part in walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node


def replace_children(node: ast.AST, visit: Callable[[Any], Any]) -> None:
    """Replace each child by the result of `visit`.

    Args:
        node: The parent, which is changed.
        visit: Function that returns a node, a list of statements, or None to drop the child.
    """
    for name in CHILD_FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            value[:] = _visited(value, visit)
        elif value is not None:
            made = visit(value)
            if made is not value:
                setattr(node, name, made)


def _visited(nodes: list[Any], visit: Callable[[Any], Any]) -> list[Any]:
    results: list[Any] = []
    for node in nodes:
        made = node if node is None else visit(node)
        if made.__class__ is list:
            results += made
        elif made is not None or node is None:
            results.append(made)
    return results


def handlers(cls: type, prefix: str = "visit_") -> dict[type[ast.AST], Callable[[Any, Any], Any]]:
    """Return the methods `visit_Name` of a visitor and its bases, by the class of node that they handle."""
    methods = {}
    for kind in CHILD_FIELDS:
        method = getattr(cls, prefix + kind.__name__, None)
        if method is not None:
            methods[kind] = method
    return methods


class _ByTable:
    """Base class that gives subclasses a table of their `visit_` methods when they are defined."""

    table: dict[type[ast.AST], Callable[[Any, Any], Any]]

    def __init_subclass__(cls) -> None:
        cls.table = handlers(cls)


class Visitor(_ByTable):
    """Visitor like `ast.NodeVisitor`, with a table of methods."""

    def visit(self, node: ast.AST) -> None:
        """Visit a node with its own method, or else visit its children."""
        handler = self.table.get(node.__class__)
        if handler is not None:
            handler(self, node)
        else:
            self.visit_children(node)

    def visit_children(self, node: ast.AST) -> None:
        """Visit the children of a node."""
        for child in children(node) if CHILD_FIELDS[node.__class__] else ():
            self.visit(child)


class Transformer(_ByTable):
    """Transformer like `ast.NodeTransformer`, with a table of methods."""

    def visit(self, node: ast.AST) -> Any:
        """Return the replacement of a node, made by its own method or else by replacing its children."""
        handler = self.table.get(node.__class__)
        return handler(self, node) if handler is not None else self.visit_children(node)

    def visit_children(self, node: _Node) -> _Node:
        """Return a node with its children replaced."""
        replace_children(node, self.visit)
        return node

"""Walking syntax trees, three times as fast as `ast` does: by a table of the fields that can hold nodes.

Left out of every walk are expression contexts and operators (`Load`, `Add`), which hold nothing and are all allowed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
Kinds = dict[type[ast.AST], list[Any]]  # nodes by their class

# Fields of text, numbers, contexts and operators, in whichever class they are.
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
    """The nodes right below, in the order of their fields."""
    found: list[Any] = []
    for name in CHILD_FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += value
        elif value is not None:
            found.append(value)
    return [child for child in found if child is not None] if isinstance(node, _WITH_GAPS) else found


def walk(node: ast.AST) -> list[Any]:
    """The node and all below it, each before what is below it, later siblings first."""
    return walk_all([node])


def walk_all(nodes: list[Any]) -> list[Any]:
    stack = list(nodes)
    found: list[Any] = []
    while stack:
        node = stack.pop()
        found.append(node)
        for name in CHILD_FIELDS[node.__class__]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                stack += value if None not in value else [item for item in value if item is not None]
            elif value is not None:
                stack.append(value)
    return found


def by_kind(nodes: Iterable[Any]) -> Kinds:
    """The nodes of each class that any is of."""
    found: Kinds = {}
    for node in nodes:
        same = found.get(node.__class__)
        if same is None:
            found[node.__class__] = [node]
        else:
            same.append(node)
    return found


def located(node: _Node, at: ast.AST) -> _Node:
    """Return `node` with a position for each of its nodes that has none.

    Args:
        node: the tree; it is changed.
        at: the node to take the position of.
    """
    for part in walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node


def replace_children(node: ast.AST, visit: Callable[[Any], Any]) -> None:
    """Replace each child by the result of `visit`.

    Args:
        node: the parent; it is changed.
        visit: returns a node, a list of statements, or None to drop the child.
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
    found: list[Any] = []
    for node in nodes:
        made = node if node is None else visit(node)
        if made.__class__ is list:
            found += made
        elif made is not None or node is None:
            found.append(made)
    return found


def handlers(cls: type, prefix: str = "visit_") -> dict[type[ast.AST], Callable[[Any, Any], Any]]:
    """The methods `visit_Name` and so on of a visitor, its bases' included, by the kind of node they take."""
    found = {}
    for kind in CHILD_FIELDS:
        method = getattr(cls, prefix + kind.__name__, None)
        if method is not None:
            found[kind] = method
    return found


class _ByTable:
    """Each subclass gets the table of its `visit_` methods when it is made."""

    table: dict[type[ast.AST], Callable[[Any, Any], Any]]

    def __init_subclass__(cls) -> None:
        cls.table = handlers(cls)


class Visitor(_ByTable):
    """`ast.NodeVisitor` by table."""

    def visit(self, node: ast.AST) -> None:
        handler = self.table.get(node.__class__)
        if handler is not None:
            handler(self, node)
        else:
            self.visit_children(node)

    def visit_children(self, node: ast.AST) -> None:
        for child in children(node) if CHILD_FIELDS[node.__class__] else ():
            self.visit(child)


class Transformer(_ByTable):
    """`ast.NodeTransformer` by table."""

    def visit(self, node: ast.AST) -> Any:
        handler = self.table.get(node.__class__)
        return handler(self, node) if handler is not None else self.visit_children(node)

    def visit_children(self, node: _Node) -> _Node:
        replace_children(node, self.visit)
        return node

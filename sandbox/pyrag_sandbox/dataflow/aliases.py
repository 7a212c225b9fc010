"""Classes of global names that may share a mutable object, for the whole program at once.

The analysis deliberately ignores control flow: two names that may ever share an object are in one class. Results of
primitives share nothing with other values, nor do strings and numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pyrag_sandbox.dataflow.analyzer import Analyzer
from pyrag_sandbox.dataflow.syntax import dotted, has_shared_defaults, is_atomic, target_names
from pyrag_sandbox.dataflow.trees import children, walk_all
from pyrag_sandbox.dataflow.vocabulary import ATOMIC, KEYED_METHODS, STRING_METHODS

_RAISED = "%raised"  # stands for the objects that exceptions hold
_HAVE_STATEMENTS = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)


class Aliases:
    """Union-find structure over names."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.a = analyzer
        self.parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the representative of a name's class."""
        path = []
        while (up := self.parent.get(name, name)) != name:
            path.append(name)
            name = up
        for step in path:
            self.parent[step] = name
        return name

    def union(self, names: Iterable[str]) -> None:
        """Merge the classes of these names."""
        heads = list(map(self.find, names))
        for head in heads[1:]:
            self.parent[self.find(head)] = self.find(heads[0])

    def classes(self, names: Iterable[str]) -> frozenset[str]:
        """Return the representatives of these names' classes."""
        return frozenset(map(self.find, names))

    def members(self) -> dict[str, frozenset[str]]:
        """Return the whole class of each name that is not alone in it."""
        groups: dict[str, set[str]] = {}
        for name in self.parent:
            groups.setdefault(self.find(name), {self.find(name)}).add(name)
        return {name: frozenset(group) for group in groups.values() for name in group}

    # -- building the classes

    def add(self, statement: ast.stmt) -> None:
        """Add a statement and everything inside it; function bodies count through their summaries."""
        self._add(statement, unsure=self.a.effects(statement).unsure)

    def _add(self, statement: ast.stmt, *, unsure: bool) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            self._add_function(statement)
            return
        for expression in _expressions(statement) if unsure else ():
            if self.a.effects(expression).unsure:
                self.union(self.a.effects(expression).reads)
        self._add_inside(_expressions(statement))
        self._add_binding(statement)
        if isinstance(statement, _HAVE_STATEMENTS):
            for child in _statements(statement):
                self._add(child, unsure=unsure)

    def _add_function(self, statement: ast.FunctionDef | ast.ClassDef) -> None:
        summary = self.a.summaries.get(statement.name)
        if isinstance(statement, ast.FunctionDef):
            self.union([statement.name, *self.shares(statement.args)])
        if summary is None or not summary.pure:
            effects = summary or self.a.effects(statement)
            self.union([statement.name, *effects.reads, *effects.binds])

    def _add_binding(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._bind(target, statement.value)
            if len(statement.targets) > 1 and not is_atomic(statement.value):
                self.union(name for target in statement.targets for name in self._held_by(target))
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
            self._bind(statement.target, statement.value)
        elif isinstance(statement, ast.For):
            self._bind(statement.target, statement.iter)
        elif isinstance(statement, ast.Raise) and statement.exc is not None:
            self.union([_RAISED, *self.shares(statement.exc)])
        elif isinstance(statement, ast.Try):
            self.union([_RAISED, *(handler.name for handler in statement.handlers if handler.name)])
        elif isinstance(statement, (ast.With, ast.Match)):
            effects = self.a.effects(statement)
            self.union(effects.reads | effects.binds)

    def _bind(self, target: ast.expr, value: ast.AST) -> None:
        names = self._held_by(target)
        if names:
            self.union([*names, *self.shares(value)])

    def _held_by(self, target: ast.expr) -> list[str]:
        """Return the names that a target binds, or the names that may reach the object it changes."""
        base = target
        while isinstance(base, (ast.Subscript, ast.Attribute, ast.Starred)):
            base = base.value
        return target_names(target) or sorted(self.shares(base))

    def _add_inside(self, expressions: list[ast.expr]) -> None:
        for child in walk_all(expressions):
            if isinstance(child, ast.NamedExpr):
                self._bind(child.target, child.value)
            elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
                self._add_method(child, child.func)

    def _add_method(self, call: ast.Call, func: ast.Attribute) -> None:
        if func.attr in STRING_METHODS | KEYED_METHODS:
            return
        names = self.shares(func.value)
        first = 1 if func.attr in ("setdefault", "insert") else 0
        for argument in (*call.args[first:], *(k.value for k in call.keywords)):
            names |= self.shares(argument)
        self.union(names)

    def shares(self, node: ast.AST) -> set[str]:
        """Return the global names that the value of an expression may share a mutable object with."""
        if isinstance(node, ast.Name):
            if self._is_pure_function(node.id):
                return set()  # nothing is mutated through it, and a call's result is handled at the call
            return {node.id} if node.id.startswith("%") or self.a.bound[node.id] else set()
        if is_atomic(node):
            return set()
        if isinstance(node, ast.Call):
            return self._shared_by_call(node)
        if isinstance(node, ast.Subscript):
            return self.shares(node.value)
        names: set[str] = set()
        for child in children(node):
            names |= self.shares(child)
        return names

    def _is_pure_function(self, name: str) -> bool:
        """Return True if no mutable object can be reached through a function's name."""
        summary = self.a.summaries.get(name)
        return summary is not None and summary.pure and not has_shared_defaults(self.a.functions[name])

    def _shared_by_call(self, node: ast.Call) -> set[str]:
        name = self.a.known(node, frozenset()) or dotted(node.func)
        if name in self.a.primitives or (name in ATOMIC - {"sum"} and not self.a.bound[name]):
            return set()
        if isinstance(node.func, ast.Attribute) and node.func.attr in STRING_METHODS:
            return set()
        names: set[str] = set()
        for child in (node.func, *node.args, *node.keywords):
            names |= self.shares(child)
        if name in self.a.summaries:
            names |= {n for n in self.a.summaries[name].reads if self.a.bound[n] and n not in self.a.summaries}
        return names


def _expressions(statement: ast.stmt) -> list[ast.expr]:
    return [c for c in children(statement) if isinstance(c, ast.expr)]


def _statements(node: ast.AST) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for child in children(node):
        if isinstance(child, ast.stmt):
            statements.append(child)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            statements += _statements(child)
    return statements

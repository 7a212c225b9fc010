"""Shape of a program for the flow analysis: the helpers that can be analysed, and the calls that cannot."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

_NESTED = (ast.Lambda, ast.GeneratorExp, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SEARCHES = frozenset(("retrieve", "open_document"))
_LISTS = _SEARCHES | {"documents"}


@dataclass(frozen=True, slots=True)
class ListKind:
    """Kind of list that an expression certainly holds.

    Attributes:
        makers: Primitives that always return a list of this kind.
        is_nested: Whether an item may be a list of the same kind.
    """

    makers: frozenset[str]
    is_nested: bool


ANY_LIST = ListKind(_LISTS, True)
"""Passages and documents, of which slices, sums and lengths never fail."""

EVIDENCE = ListKind(_SEARCHES, True)
"""Passages, which `answer` reads."""

ITEMS = ListKind(_LISTS, False)
"""Passages and documents, of which `each` asks a question."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Place in a program from which its control flow depends on retrieved text.

    Attributes:
        line: Line of the program, from 1.
        text: Clause that describes what the program does there.
    """

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line} {self.text}"


@dataclass(slots=True)
class Shape:
    """Names and helpers of a program.

    Attributes:
        sources: Names of primitives whose results depend on passages.
        effects: Names of primitives with effects.
        helpers: Functions that are followed into: defined once at the top level, without decorators or `yield`.
        lists: Names that only ever hold lists of a kind, by kind.
        unfollowed: Use of a primitive with effects that the analysis cannot follow; None if there is no such use.
    """

    tree: ast.Module
    sources: frozenset[str]
    effects: frozenset[str]
    bound: Counter[str] = field(init=False)
    helpers: dict[str, ast.FunctionDef] = field(init=False)
    lists: dict[ListKind, frozenset[str]] = field(init=False)
    unfollowed: Cause | None = field(init=False)
    _used: dict[str, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.bound = Counter(name for node in ast.walk(self.tree) for name in _names_bound(node))
        functions = [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]
        self.helpers = {node.name: node for node in functions if self._is_helper(node)}
        self._used = {name: names_in(helper) for name, helper in self.helpers.items()}
        self.lists = {kind: self._names_of(kind) for kind in (ANY_LIST, EVIDENCE, ITEMS)}
        self.unfollowed = self._unfollowed()

    def _is_helper(self, node: ast.FunctionDef) -> bool:
        if node.decorator_list or self.bound[node.name] > 1:
            return False
        return not any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node))

    def _names_of(self, kind: ListKind) -> frozenset[str]:
        """Return the names whose every binding is a list of a kind."""
        values: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        values.setdefault(target.id, []).append(node.value)
        names = {name for name, assigned in values.items() if len(assigned) == self.bound[name]}
        while True:
            wrong = {name for name in names if not all(self.is_list(value, kind, names) for value in values[name])}
            if not wrong:
                return frozenset(names)
            names -= wrong

    def is_list(self, node: ast.expr, kind: ListKind, names: Set[str] | None = None) -> bool:
        """Return True for an expression whose value is certainly a list of a kind.

        An empty list is not one: it does not depend on passages, so a program may put anything into it later.

        Args:
            node: The expression.
            kind: The kind of list.
            names: Names that hold such lists; None for the names in `lists`.
        """
        names = self.lists[kind] if names is None else names
        match node:
            case ast.Name(id=name):
                return name in names
            case ast.Call(func=ast.Name(id=name)):
                return name in kind.makers & self.sources and not self.bound[name]
            case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=step)):
                return self.is_list(value, kind, names) and all(map(_is_place, (lower, upper, step)))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.is_list(left, kind, names) and self.is_list(right, kind, names)
            case ast.List(elts=[_, *_] as items):
                return kind.is_nested and all(self.is_list(item, kind, names) for item in items)
            case ast.ListComp(elt=item):
                return kind.is_nested and self.is_list(item, kind, names)
        return False

    def helpers_that_mention(self, names: Set[str]) -> frozenset[str]:
        """Return the helpers whose code uses one of these variables, directly or through other helpers.

        Args:
            names: Names of variables and primitives.
        """
        used = self._used
        todo = [name for name, inside in used.items() if not names.isdisjoint(inside)]
        users: dict[str, list[str]] = {}
        for name, inside in used.items():
            for callee in inside & used.keys():
                users.setdefault(callee, []).append(name)
        reached = set(todo)
        while todo:
            further = [name for name in users.get(todo.pop(), ()) if name not in reached]
            reached.update(further)
            todo += further
        return frozenset(reached)

    def _unfollowed(self) -> Cause | None:
        names = self.effects | self.helpers_that_mention(self.effects)
        for node in ast.walk(self.tree):
            if name := next((bound for bound in _names_bound(node) if bound in self.effects | self.sources), ""):
                return Cause(getattr(node, "lineno", 1), f"binds the name {name}")
        called = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id in names and id(node) not in called:
                return Cause(node.lineno, f"uses {node.id} as a value")
            if isinstance(node, _NESTED) and not self._is_followed(node) and mentions(node, names):
                return Cause(node.lineno, "makes the call inside a lambda, generator, class or nested function")
        return None

    def _is_followed(self, node: ast.AST) -> bool:
        return isinstance(node, ast.FunctionDef) and self.helpers.get(node.name) is node


def names_in(node: ast.AST) -> frozenset[str]:
    """Return the variables that a node uses."""
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def mentions(node: ast.AST, names: Set[str]) -> bool:
    """Return True if a node uses one of these variables.

    Args:
        node: Any part of a program.
        names: Names of variables.
    """
    return not names.isdisjoint(names_in(node))


def _is_place(node: ast.expr | None) -> bool:
    """Return True for a slice bound that never fails: a missing one, or a whole number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return node is None or (isinstance(node, ast.Constant) and type(node.value) is int)


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]

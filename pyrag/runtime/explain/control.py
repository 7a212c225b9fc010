"""Control flow of a program: which lines depend on answers, and how often they are reached."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_ANSWERING = frozenset(("answer", "each"))
_TESTED = (ast.If, ast.While, ast.IfExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class CallSite:
    """Call of a primitive in a program.

    Attributes:
        sure: False if it depends on an answer whether the call is made.
        repeats: True if it depends on an answer how often the call is made.
        typed: True if the request is repeated after a reply without the requested type.
    """

    line: int
    name: str
    sure: bool = True
    repeats: bool = False
    typed: bool = False


def call_sites(source: str, primitives: Iterable[str], tools: Mapping[str, bool]) -> tuple[CallSite, ...]:
    """Return the calls of primitives in a program, in order of their lines.

    Args:
        source: Source code of the program. If it does not parse, there are no calls.
        primitives: Names of all functions that are served outside the sandbox.
        tools: Names of the tools among them, whose results are not known before they run.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = frozenset(primitives)
    walk = _CourseWalk(names, _tainted(tree, _ANSWERING | tools.keys()))
    walk.visit(tree)
    return tuple(sorted(walk.sites, key=lambda site: site.line))


def _tainted(tree: ast.AST, sources: frozenset[str]) -> frozenset[str]:
    """Return the names that may depend on the result of a source, including the sources."""
    targets_of: dict[str, list[list[str]]] = defaultdict(list)  # by each name in the value that is bound
    for node in ast.walk(tree):
        for targets, value in _bindings(node):
            for name in set(_names(value)):
                targets_of[name].append(targets)
    tainted, todo = set(sources), list(sources)
    while todo:
        for targets in targets_of.pop(todo.pop(), ()):
            todo += [name for name in targets if name not in tainted]
            tainted.update(targets)
    return frozenset(tainted)


def _bindings(node: ast.AST) -> Iterator[tuple[list[str], ast.AST]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield [name for target in targets for name in _names(target)], value
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield list(_names(target)), value
        case ast.NamedExpr(target=target, value=value):
            yield list(_names(target)), value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield list(_names(target)), value
        case ast.FunctionDef(name=name):
            yield [name], node
        case ast.Call(func=ast.Attribute(value=value), args=args):  # rows.append(answer)
            for argument in args:
                yield list(_names(value)), argument


def _is_typed(node: ast.Call) -> bool:
    """Return True for a call with a third argument, `returns`, or with arguments that are not in the source."""
    return len(node.args) > 2 or any(keyword.arg in ("returns", None) for keyword in node.keywords)


def _names(node: ast.AST) -> Iterator[str]:
    return (child.id for child in ast.walk(node) if isinstance(child, ast.Name))


class _CourseWalk:
    """Walk through a program that keeps whether the present place is reached for sure."""

    def __init__(self, primitives: frozenset[str], tainted: frozenset[str]) -> None:
        self._primitives, self._tainted = primitives, tainted
        self.sites: list[CallSite] = []

    def visit(self, tree: ast.AST) -> None:
        """Add the calls inside a program, which may be nested more deeply than Python's stack allows.

        Args:
            tree: The program.
        """
        todo: list[tuple[ast.AST, bool, bool]] = [(tree, True, False)]
        while todo:
            todo += reversed([*self._visited(*todo.pop())])

    def _visited(self, node: ast.AST, sure: bool, repeats: bool) -> Iterator[tuple[ast.AST, bool, bool]]:
        """Add a node if it is a call. Yield its parts, each with whether it is certainly reached, and repeated."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._primitives:
            self.sites.append(CallSite(node.lineno, node.func.id, sure, repeats, _is_typed(node)))
        test = getattr(node, "test", None) if isinstance(node, _TESTED) else None
        decided = test is not None and self._depends(test)
        over = getattr(node, "iter", None) if isinstance(node, ast.For) else None
        looped = (over is not None and self._depends(over)) or (isinstance(node, ast.While) and decided)
        if isinstance(node, _COMPREHENSIONS):
            parts = [part for generator in node.generators for part in (generator.iter, *generator.ifs)]
            looped = any(map(self._depends, parts))
        for child in ast.iter_child_nodes(node):
            first = child is test or child is over
            inside = first or not (decided or looped or isinstance(child, ast.ExceptHandler))
            yield child, sure and inside, repeats or (looped and not first)

    def _depends(self, node: ast.AST) -> bool:
        return not self._tainted.isdisjoint(_names(node))

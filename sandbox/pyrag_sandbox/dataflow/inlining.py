"""Puts the statements of functions that a program calls once in place of the call, so that they may run side by side.

    def main():                                def main(): pass
        docs = retrieve("a")                   main:docs = retrieve("a")
        return answer("b", docs)               %1 = answer("b", main:docs)
    final_answer = main()                      final_answer = %1

`place` says for each statement which function it belongs to and where that was called, for tracebacks. Left out, and
run as ever: functions that are mentioned twice, nested, decorated, with defaults or keyword parameters, that return
early, or whose names may be read before they are bound (Python tells those mistakes from names that do not exist).
Names with a colon are for this pass: no source can spell them, and they are gone when the program ends.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pyrag_sandbox.dataflow.syntax import in_comprehension_targets, loads, parameters, target_names
from pyrag_sandbox.dataflow.trees import Transformer, walk, walk_all

_LEFT_OUT = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom),
    *(ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Match),
)
_MAX_LEVELS = 8  # of inlined functions that call inlined functions


class Place(NamedTuple):
    """The frames a statement runs in, as a traceback shows them: its own name, and the calls that led there."""

    name: str = "<module>"
    sites: tuple[tuple[int, str], ...] = ()  # line and name, outermost first


MODULE = Place()


class Inliner:
    """Rewrites a module's body. `place` is filled on the way; statements of the module itself are not in it."""

    def __init__(self, tree: ast.Module, fresh_name: Callable[[], str]) -> None:
        self.fresh_name = fresh_name
        self.place: dict[ast.stmt, Place] = {}
        self._tree = tree
        self._functions: dict[str, ast.FunctionDef] = {}

    def run(self) -> None:
        definitions = [s for s in self._tree.body if isinstance(s, ast.FunctionDef)]
        if not definitions:
            return
        mentions = Counter(node.id for node in walk(self._tree) if isinstance(node, ast.Name))
        self._once = {s.name for s in definitions if mentions[s.name] == 1}
        names = Counter(s.name for s in definitions)
        body: list[ast.stmt] = []
        for statement in self._tree.body:
            body += self._expanded(statement, MODULE)
            if isinstance(statement, ast.FunctionDef) and names[statement.name] == 1 and _plain(statement):
                self._functions[statement.name] = statement
        self._tree.body = body

    def _expanded(self, statement: ast.stmt, place: Place) -> list[ast.stmt]:
        if _is_main_guard(statement) and isinstance(statement, ast.If):
            return [part for inner in statement.body for part in self._expanded(inner, place)]
        call = _single_call(statement)
        function = self._called(call)
        if call is None or function is None or len(place.sites) == _MAX_LEVELS:
            return [self._placed(statement, place)]
        return self._inlined(statement, call, function, place)

    def _called(self, call: ast.Call | None) -> ast.FunctionDef | None:
        if call is None or not isinstance(call.func, ast.Name) or call.func.id not in self._once:
            return None
        function = self._functions.get(call.func.id)
        if function is None or call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        return function if len(call.args) == len(parameters(function.args)) else None

    def _placed(self, statement: ast.stmt, place: Place) -> ast.stmt:
        if place is not MODULE:
            self.place[statement] = place
        return statement

    def _inlined(self, statement: ast.stmt, call: ast.Call, function: ast.FunctionDef, place: Place) -> list[ast.stmt]:
        rename = _Rename({name: f"{function.name}:{name}" for name in _locals(function)})
        found = [
            self._placed(_assign(rename.names[parameter], argument, statement), place)
            for parameter, argument in zip(parameters(function.args), call.args, strict=True)
        ]
        inside = Place(function.name, (*place.sites, (call.lineno, place.name)))
        value: ast.expr = ast.copy_location(ast.Constant(None), call)
        for part in function.body:
            rename.visit(part)
            if isinstance(part, ast.Return):
                name = self.fresh_name()
                result = part.value or ast.copy_location(ast.Constant(None), part)
                value = ast.copy_location(ast.Name(name, ast.Load()), call)
                found += self._expanded(_assign(name, result, part), inside)
            else:
                found += self._expanded(part, inside)
        function.body = [ast.copy_location(ast.Pass(), function.body[0])]  # nobody calls it any more
        if isinstance(statement, ast.Assign):
            found.append(self._placed(_assign_to(statement.targets, value, statement), place))
        return found


def _is_main_guard(statement: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, which the policy has folded by now."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.test, ast.Compare):
        return False
    test = statement.test
    sides = [test.left, *test.comparators]
    same = all(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    return same and len(sides) == 2 and isinstance(test.ops[0], ast.Eq)


def _single_call(statement: ast.stmt) -> ast.Call | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    simple = all(isinstance(target, ast.Name) for target in statement.targets)
    return statement.value if simple else None


def _assign_to(targets: list[ast.expr], value: ast.expr, at: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Assign(targets, value), at)


def _assign(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    return _assign_to([ast.copy_location(ast.Name(name, ast.Store()), at)], value, at)


def _plain(function: ast.FunctionDef) -> bool:
    args = function.args
    special: list[ast.AST | None] = [
        args.vararg,
        args.kwarg,
        *args.kwonlyargs,
        *args.defaults,
        *function.decorator_list,
    ]
    nodes = walk_all(list(function.body))
    if any(special) or any(isinstance(node, _LEFT_OUT) or _has_keyword_defaults(node) for node in nodes):
        return False
    returns = [node for node in nodes if isinstance(node, ast.Return)]
    if returns and (len(returns) > 1 or returns[0] is not function.body[-1]):
        return False
    return _Certain(_locals(function)).after(function.body, frozenset(parameters(args))) is not None


def _has_keyword_defaults(node: ast.AST) -> bool:
    return isinstance(node, ast.Lambda) and any(node.args.kw_defaults)


def _locals(function: ast.FunctionDef) -> frozenset[str]:
    nodes = walk_all(list(function.body))
    elsewhere = in_comprehension_targets(nodes)
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in elsewhere}
    caught = {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
    return frozenset({*stored, *caught, *parameters(function.args)})


class _Certain:
    """Follows which names are bound for certain. None: something reads one that may not be."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def after(self, body: Iterable[ast.stmt], bound: frozenset[str] | None) -> frozenset[str] | None:
        for statement in body:
            if bound is None:
                return None
            bound = self._statement(statement, bound)
        return bound

    def _reads(self, node: ast.AST | None, bound: frozenset[str]) -> bool:
        return node is None or not (loads(node) & self.names) - bound

    def _statement(self, node: ast.stmt, bound: frozenset[str]) -> frozenset[str] | None:
        if isinstance(node, ast.If):
            return self._both(node.test, [node.body, node.orelse], bound)
        if isinstance(node, ast.While):
            return bound if self._both(node.test, [node.body, node.orelse], bound) is not None else None
        if isinstance(node, ast.For):
            inside = self.after(node.body, bound | set(target_names(node.target)))
            fine = self._reads(node.iter, bound) and self._reads(node.target, bound)
            return bound if fine and inside is not None and self.after(node.orelse, bound) is not None else None
        if isinstance(node, ast.Try):
            return self._try(node, bound)
        if isinstance(node, ast.With):
            targets = {n for item in node.items if item.optional_vars for n in target_names(item.optional_vars)}
            fine = all(self._reads(item, bound) for item in node.items)
            return self.after(node.body, bound | targets) if fine else None
        rebound = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in bound
        return bound | set(target_names(node)) if self._reads(node, bound) and not rebound else None

    def _both(self, test: ast.expr, bodies: list[list[ast.stmt]], bound: frozenset[str]) -> frozenset[str] | None:
        first, second = (self.after(body, bound) for body in bodies)
        if first is None or second is None or not self._reads(test, bound):
            return None
        return first & second

    def _try(self, node: ast.Try, bound: frozenset[str]) -> frozenset[str] | None:
        ends = [self.after(node.orelse, self.after(node.body, bound))]
        for handler in node.handlers:
            caught = {handler.name} if handler.name else set()
            end = self.after(handler.body, bound | caught) if self._reads(handler.type, bound) else None
            ends.append(None if end is None else end - caught)
        last = self.after(node.finalbody, bound)
        if last is None:
            return None
        common = self.names
        for end in ends:
            if end is None:
                return None
            common &= end
        return common | last


class _Rename(Transformer):
    """Gives a function's own names, in a copy of its statements, the names that stand for them outside."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> ast.AST:
        renamed: ast.AST = super().visit(node)
        return renamed

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:  # noqa: N802
        if node.name:
            node.name = self.names.get(node.name, node.name)
        return self.visit_children(node)

    def _without(self, hidden: set[str], node: ast.AST) -> ast.AST:
        names = self.names
        self.names = {name: new for name, new in names.items() if name not in hidden}
        self.visit_children(node)
        self.names = names
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:  # noqa: N802
        args = node.args
        args.defaults = [default for default in map(self.visit, args.defaults) if isinstance(default, ast.expr)]
        defaults, args.defaults = args.defaults, []
        self._without(set(parameters(args)), node)
        args.defaults = defaults
        return node

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        first = node.generators[0]
        source = self.visit(first.iter)
        first.iter = ast.copy_location(ast.Constant(None), source)
        self._without({name for g in node.generators for name in target_names(g.target)}, node)
        if isinstance(source, ast.expr):
            first.iter = source
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

"""First wall: which programs are compiled, and to what code. RestrictedPython, extended for programs by models.

Two steps, both on syntax trees:

    check_program(tree, ...)   once per program: size, depth and every rule that is visible in the source
    compile_module(tree)       for the program or a piece of it: RestrictedPython's own rules, guards, bytecode

Attribute names are literals in the source, so nearly all rules are checked before the program runs. The remaining
checks at run time (`getattr` with a computed name, `str.format`, stores) are in `guards.py`. Names that start with
"%" belong to our own passes, since source code cannot contain them.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any, TypeVar

from RestrictedPython.transformer import RestrictingNodeTransformer

from pyrag_sandbox.dataflow.trees import Transformer, handlers, located, replace_children
from pyrag_sandbox.policy.offered import ALLOWED_METHODS, GUARDED_ATTRIBUTES, OFFERED_MODULES, REFUSED_ATTRIBUTES
from pyrag_sandbox.policy.rules import Refused, check_program, identifier_problem, node_problem

__all__ = ["FILENAME", "Refused", "check_program", "compile_module"]

FILENAME = "<program>"
_Node = TypeVar("_Node", bound=ast.AST)


def compile_module(tree: ast.Module) -> CodeType:
    """Return guarded bytecode of `tree`, which is consumed.

    Raises:
        Refused: The tree breaks a rule.
        SyntaxError: Python itself refuses the tree.
    """
    _RestrictingTransformer().visit(tree)
    return compile(tree, FILENAME, "exec", dont_inherit=True)


def compile_open(tree: ast.Module) -> CodeType:
    """Return bytecode of `tree` without the policy, for workers that rely only on their kernel wall."""
    _MemoryErrors().visit(tree)
    return compile(tree, FILENAME, "exec", dont_inherit=True)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _looking(node: Any, block: str) -> ast.AST:
    """Return `node` with a check of the current exception: programs must not handle exhausted memory and refusals."""
    statements = getattr(node, block)
    if statements:
        look = ast.Expr(ast.Call(_name("_caught_"), [], []))
        located(look, statements[0])
        statements.insert(0, look)
    result: ast.AST = node
    return result


class _MemoryErrors(Transformer):
    """Transformer that only adds the checks of exceptions."""

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:  # noqa: N802
        return _looking(self.visit_children(node), "body")

    def visit_Try(self, node: ast.Try) -> ast.AST:  # noqa: N802
        return _looking(self.visit_children(node), "finalbody")


class _RestrictingTransformer(RestrictingNodeTransformer):
    """Transformer like RestrictedPython's, without the guards that are not needed here.

    Containers and iterators are plain Python objects, so item access, iteration, unpacking and calls need no hook:
    native code is faster, evaluates once and has Python's own error messages.
    """

    def visit(self, node: ast.AST) -> Any:
        """Return the replacement of a node, found in a table. RestrictedPython refuses nodes without a rule."""
        handler = _HANDLERS.get(node.__class__)
        return handler(self, node) if handler is not None else self.generic_visit(node)

    def node_contents_visit(self, node: _Node) -> _Node:
        replace_children(node, self.visit)
        return node

    def error(self, node: ast.AST, info: str) -> None:
        raise Refused(info, getattr(node, "lineno", None))

    def not_allowed(self, node: ast.AST) -> None:
        self.error(node, node_problem(node))

    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:
        if name is None or (allow_magic_methods and name in ALLOWED_METHODS):
            return
        problem = identifier_problem(name)
        if problem:
            self.error(node, problem)

    # Names, attributes and items

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        self.check_name(node, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        node = self.node_contents_visit(node)
        if node.attr.startswith("_") or node.attr in REFUSED_ATTRIBUTES:
            self.error(node, f"attribute {node.attr!r} is not available")
        if not isinstance(node.ctx, ast.Load):
            node.value = self._guard("_write_", node.value)
        elif node.attr in GUARDED_ATTRIBUTES:
            return self._guard("_getattr_", node.value, ast.Constant(node.attr), at=node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:  # noqa: N802
        node = self.node_contents_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = self._guard("_write_", node.value)
        return node

    def _guard(self, guard: str, *args: ast.expr, at: ast.expr | None = None) -> ast.Call:
        call = ast.Call(func=_name(guard), args=list(args), keywords=[])
        located(call, at or args[0])
        return call

    # Comparisons with a value that was not found: neither `is` nor a set calls a method of it, so these are guarded

    def visit_Compare(self, node: ast.Compare) -> ast.AST:  # noqa: N802
        node = self.node_contents_visit(node)
        match node:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                test = self._guard("_none_", node.left, at=node)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[container]):
                test = self._guard("_in_", node.left, container, at=node)
            case _:
                return node
        if isinstance(node.ops[0], ast.Is | ast.In):
            return test
        return ast.copy_location(ast.UnaryOp(ast.Not(), test), node)

    # Statements and expressions that need no guard

    visit_Assign = visit_With = visit_Call = visit_Module = guard_iter = node_contents_visit  # noqa: N815
    visit_AugAssign = node_contents_visit  # noqa: N815 - `_write_(d)[k] += 1` evaluates d and k once

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.node_contents_visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def _checked_names(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        for name in node.names:
            self.check_name(node, name)
        return node

    visit_Global = visit_Nonlocal = _checked_names  # noqa: N815

    # Imports become assignments of facades

    def visit_Import(self, node: ast.Import) -> Any:  # noqa: N802
        return [self._import(node, alias, alias.asname or alias.name, alias.name) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:  # noqa: N802
        if node.module == "__future__":
            return ast.copy_location(ast.Pass(), node)
        module = node.module or ""
        return [self._import(node, alias, alias.asname or alias.name, module, alias.name) for alias in node.names]

    def _import(self, node: ast.stmt, alias: ast.alias, target: str, *path: str) -> ast.Assign:
        if path[0] not in OFFERED_MODULES:
            self.error(node, f"import of {path[0]!r} is not available")
        self.check_name(alias, target)
        call = ast.Call(_name("_import_"), [ast.Constant(part) for part in path], [])
        assign = ast.Assign([ast.Name(target, ast.Store())], call)
        located(assign, node)
        return assign

    # Functions, classes, exceptions, patterns

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802
        self.check_name(node, node.name, allow_magic_methods=True)
        self.check_function_argument_names(node)
        node.returns = None
        return self.node_contents_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:  # noqa: N802
        self.check_name(node, node.name)
        node = self.node_contents_visit(node)
        keyword = ast.keyword("metaclass", _name("__metaclass__"))
        located(keyword, node)
        node.keywords = [keyword]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:  # noqa: N802
        self.check_name(node, node.name)
        return _looking(self.node_contents_visit(node), "body")

    def visit_Try(self, node: ast.Try) -> ast.AST:  # noqa: N802
        return _looking(self.node_contents_visit(node), "finalbody")

    def _pattern(self, node: Any) -> Any:
        self.check_name(node, getattr(node, "name", None))
        self.check_name(node, getattr(node, "rest", None))
        return self.node_contents_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:  # noqa: N802
        if node.kwd_attrs:
            self.not_allowed(node)
        return self.node_contents_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:  # noqa: N802
        if any(isinstance(part, ast.Attribute) for part in ast.walk(node)):
            self.not_allowed(node)
        return self.node_contents_visit(node)

    visit_Match = visit_match_case = visit_MatchSingleton = visit_MatchSequence = _pattern  # noqa: N815
    visit_MatchMapping = visit_MatchStar = visit_MatchAs = visit_MatchOr = _pattern  # noqa: N815


_HANDLERS = handlers(_RestrictingTransformer)

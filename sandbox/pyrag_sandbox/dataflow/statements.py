# ruff: noqa: N802 - methods are named after the kinds of nodes they take
"""Properties of single statements, and small rewritings of them, for the plan."""

from __future__ import annotations

import ast

from pyrag_sandbox.dataflow.syntax import target_names
from pyrag_sandbox.dataflow.trees import Transformer, children, located

JUMPS = {ast.Break, ast.Continue, ast.Return}


class Substitute(Transformer):
    """Rewriter that replaces uses of a name by its temporary, except in nested functions and classes."""

    def __init__(self, copies: dict[str, str]) -> None:
        self.copies = copies

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.copies:
            return ast.copy_location(ast.Name(self.copies[node.id], ast.Load()), node)
        return node

    def _unchanged(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_ClassDef = visit_Lambda = _unchanged  # noqa: N815

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        names = {n for g in node.generators for n in target_names(g.target)}
        if not names & set(self.copies):
            return self.visit_children(node)
        node.generators[0].iter = self.visit(node.generators[0].iter)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815


def plain_annotation(statement: ast.stmt) -> ast.stmt:
    """Return `x = 0` for `x: int = 0`, since annotations of variables are not evaluated in this sandbox."""
    if isinstance(statement, ast.AnnAssign) and statement.value and isinstance(statement.target, ast.Name):
        return ast.copy_location(ast.Assign([statement.target], statement.value), statement)
    return statement


def expression_of(statement: ast.stmt) -> str:
    """Return the name of the field whose expression is evaluated first, once and unconditionally."""
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr)):
        return "value"
    if isinstance(statement, (ast.If, ast.Assert)):
        return "test"
    return "iter" if isinstance(statement, ast.For) else ""


def is_compound(statement: ast.stmt) -> bool:
    """Return True for statements whose bodies can become blocks."""
    return isinstance(statement, (ast.If, ast.For, ast.While, ast.Try))


def jumps(statement: ast.AST, *, in_loop: bool = False) -> bool:
    """Return True if a `break`, `continue` or `return` leaves the statement.

    Args:
        statement: The statement, or a part of one.
        in_loop: Whether it is inside an inner loop, which its `break` and `continue` refer to.
    """
    if isinstance(statement, (ast.Break, ast.Continue)):
        return not in_loop
    if isinstance(statement, ast.Return):
        return True
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.expr)):
        return False
    if isinstance(statement, (ast.For, ast.While)):
        body = any(jumps(s, in_loop=True) for s in statement.body)
        return body or any(jumps(s, in_loop=in_loop) for s in statement.orelse)
    return any(jumps(child, in_loop=in_loop) for child in children(statement))


def invoke(function: str, arguments: list[ast.expr], at: ast.stmt) -> ast.stmt:
    """Return a statement that calls a helper.

    Args:
        function: Name of the helper.
        arguments: Argument expressions.
        at: Statement whose position is used.
    """
    call = ast.Call(ast.Name(function, ast.Load()), arguments, [])
    return located(ast.Expr(call), at)

"""Check of the Python expressions that compute an answer from earlier answers."""

from __future__ import annotations

import ast
import builtins

from pyrag.errors import BadOutputError
from pyrag_helpers import HELPERS

NAMED = "answer_of_a_step"  # replaces placeholders in code that is checked


def check_expression(code: str, owner: str) -> None:
    """Check that code is one Python expression over known names.

    Args:
        code: The expression, with `NAMED` in place of its placeholders.
        owner: Goal or agent that the expression belongs to, for the error message.

    Raises:
        BadOutputError: The code is not an expression, uses an unknown name, or has a placeholder inside a text.
    """
    try:
        tree = ast.parse(code, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadOutputError(f'"compute" of {owner} is not a Python expression: {error}') from error
    nodes = list(ast.walk(tree))
    if any(NAMED in str(node.value) for node in nodes if isinstance(node, ast.Constant)):
        raise BadOutputError(f'"compute" of {owner} has a placeholder inside a text: write it outside the quotes')
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    known = {NAMED, *HELPERS, *bound, *dir(builtins)}
    if unknown := [node.id for node in nodes if isinstance(node, ast.Name) and node.id not in known]:
        raise BadOutputError(f'"compute" of {owner} uses the unknown name {unknown[0]}')

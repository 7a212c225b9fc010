"""Names that a program binds, which take precedence over the primitives over the corpus."""

from __future__ import annotations

import ast


def bound_names(source: str) -> set[str]:
    """Return the names that a program binds and never calls; empty if the program does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    bound: set[str] = set()
    called: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.Call(func=ast.Name(id=name)):
                called.add(name)
    return bound - called

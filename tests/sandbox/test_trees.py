"""Our walks of syntax trees reach what Python's own do."""

from __future__ import annotations

import ast
import json
import statistics
import typing
from collections import Counter
from pathlib import Path

import pytest

from pyrag_sandbox.dataflow.trees import children, walk

SOURCES = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in (statistics, typing, json, ast)]
PATTERNS = """
match x:
    case {"a": 1, **rest} | [1, *other] | str(name) as whole if whole: pass
    case None | Point(x=0): pass
try: pass
except* ValueError as e: pass
async def f(a, /, b: int = 1, *c, d=None, e, **g) -> int:
    async with a as b: return {**a, 1: [i async for i in b if (c := i)]}
lambda *, a, b=2: f"{a!r:>{b}}"
global z
"""
LEAVES = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


@pytest.mark.parametrize("source", [*SOURCES, PATTERNS], ids=["statistics", "typing", "json", "ast", "patterns"])
def test_every_node_is_reached_once(source: str) -> None:
    tree = ast.parse(source)
    expected = Counter(node for node in ast.walk(tree) if not isinstance(node, LEAVES))
    assert Counter(walk(tree)) == expected
    for node in expected:
        assert children(node) == [child for child in ast.iter_child_nodes(node) if not isinstance(child, LEAVES)]

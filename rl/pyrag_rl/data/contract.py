"""Adaptation of other planners' programs to the contract of the prompts, whose rule 2 is "the same query in both".

The embedded planner searches with keywords and asks in a sentence; a language model that learns its programs verbatim
would learn to break the rule. Each search therefore gets the query of the question about its documents, and a default
`topk` is removed. If there is no such query, the program is not learnt. All other rules are left to the plan checks and
the answer.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from pyrag.settings import Settings

BROKEN = "whose program searches for another query than it asks"


def under_contract(source: str) -> str | None:
    """Return a program in which each search has the same query as the question about its documents.

    Args:
        source: A program that runs.

    Returns:
        The program; None if several questions are asked about the same documents, or if a question uses a value that is
        only computed after the search.
    """
    tree = ast.parse(source)
    searches = _searches(tree)
    questions = _questions(tree)
    replaced: list[tuple[ast.expr, str]] = []
    for name, search in searches.items():
        asked = questions.get(name, search.args[:1])
        query = asked[0]
        if any(ast.dump(question) != ast.dump(query) for question in asked[1:]):
            return None
        if ast.dump(search.args[0]) != ast.dump(query) and not _names(query) <= _bound_before(tree, search):
            return None
        text = ast.get_source_segment(source, query) or ast.unparse(query)
        replaced.append((search, f"retrieve({text}{_depth(search)})"))
    return _with(source, replaced)


def _depth(search: ast.Call) -> str:
    """Return the depth of a search as written in its call; empty for the default."""
    arguments = [*search.args[1:2], *(keyword.value for keyword in search.keywords if keyword.arg == "topk")]
    return "".join(
        f", topk={ast.unparse(argument)}" for argument in arguments if ast.unparse(argument) != str(Settings().topk)
    )


def _searches(tree: ast.Module) -> dict[str, ast.Call]:
    """Return the searches by the name of their documents, except for names that are bound again."""
    bound: defaultdict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            bound[node.targets[0].id].append(node.value)
    return {
        name: value
        for name, (value, *more) in bound.items()
        if not more and isinstance(value, ast.Call) and _calls(value, "retrieve") and value.args
    }


def _questions(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Return the queries of all calls `answer(query, documents)`, by the name of the documents."""
    asked: defaultdict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _calls(node, "answer") and len(node.args) > 1:
            documents = node.args[1]
            if isinstance(documents, ast.Name):
                asked[documents.id].append(node.args[0])
    return asked


def _calls(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _names(node: ast.expr) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _bound_before(tree: ast.Module, search: ast.Call) -> set[str]:
    return {name for name, line in _bindings(tree) if line < search.lineno}


def _bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def _with(source: str, replaced: list[tuple[ast.expr, str]]) -> str:
    """Return the program with expressions replaced, the last one first, so that earlier positions stay valid."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]  # columns count bytes
    for node, text in sorted(
        replaced, key=lambda replacement: (replacement[0].lineno, replacement[0].col_offset), reverse=True
    ):
        assert node.end_lineno is not None
        first, last = node.lineno - 1, node.end_lineno - 1
        lines[first : last + 1] = [lines[first][: node.col_offset] + text.encode() + lines[last][node.end_col_offset :]]
    return b"".join(lines).decode()

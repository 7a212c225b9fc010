"""The questions that a program asks of documents, where its planner wrote no list of sub-queries."""

from __future__ import annotations

import ast

from pyrag.agents.parsing.sub_queries import MAX_QUERY, MAX_SUB_QUERIES


def program_queries(source: str) -> tuple[str, ...]:
    """Return the questions of a program's `answer(query, documents)` calls, in their order and each once.

    A value in a question is shown as `#1` where it is the answer of the first of them, else by its expression in
    braces. A program that gives no documents to `answer` is represented by what it searches for.

    Args:
        source: The program; one that does not parse has no questions.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = _Queries()
    for node in _in_order(tree.body):
        found.read(node)
    queries = found.answered or found.searched
    return tuple(query[:MAX_QUERY] for query in queries if query)[:MAX_SUB_QUERIES]


def _in_order(body: list[ast.stmt]) -> list[ast.Assign | ast.Call]:
    """The calls and assignments of a program, in the order in which they end: inner ones come before outer ones."""
    nodes = [node for one in body for node in ast.walk(one) if isinstance(node, ast.Assign | ast.Call)]
    return sorted(
        nodes, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0, isinstance(node, ast.Assign))
    )


class _Queries:
    """Questions of the calls read so far, and the values of names."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.searched: list[str] = []
        self._texts: dict[str, str] = {}  # by name, what a question would show in its place

    def read(self, node: ast.Assign | ast.Call) -> None:
        """Take in one call or assignment."""
        match node:
            case ast.Call(func=ast.Name(id="answer" | "retrieve" as name), args=[query, *more]):
                reads = name == "answer" and bool(more or node.keywords)
                found, text = self.answered if reads else self.searched, self._shown(query)
                if (reads or name == "retrieve") and text not in found:
                    found.append(text)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._texts[name] = self._value(value)

    def _value(self, value: ast.expr) -> str:
        match value:
            case ast.Call(func=ast.Name(id="answer"), args=[query, *_]) if self._shown(query) in self.answered:
                return f"#{self.answered.index(self._shown(query)) + 1}"
        return self._shown(value)

    def _shown(self, value: ast.expr) -> str:
        """The text of a question, or of a value inside one."""
        match value:
            case ast.Constant(value=str(text)):
                return " ".join(text.split())
            case ast.FormattedValue(value=inner):
                return self._shown(inner)
            case ast.Name(id=name) if name in self._texts:
                return self._texts[name]
            case ast.JoinedStr(values=parts):
                texts = [str(one.value) if isinstance(one, ast.Constant) else self._shown(one) for one in parts]
                return " ".join("".join(texts).split())
        return f"{{{ast.unparse(value)}}}"

"""Sub-queries extracted from a program, used if its planner wrote no list of them."""

from __future__ import annotations

import ast

from pyrag.agents.parsing.sub_queries import MAX_QUERY, MAX_SUB_QUERIES


def program_queries(source: str) -> tuple[str, ...]:
    """Return the queries of a program's `answer(query, documents)` calls, in order and each once.

    A variable in a query is shown as `#1` if it holds the first query's answer, otherwise as its expression in braces.
    For a program that passes no documents to `answer`, its search queries are returned.

    Args:
        source: The program; one that does not parse has no queries.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    reader = _Queries()
    for node in _in_order(tree.body):
        reader.read(node)
    queries = reader.answered or reader.searched
    return tuple(query[:MAX_QUERY] for query in queries if query)[:MAX_SUB_QUERIES]


def _in_order(body: list[ast.stmt]) -> list[ast.Assign | ast.Call]:
    """Return the calls and assignments of a program in the order in which they end: inner ones before outer ones."""
    nodes = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Assign | ast.Call)]
    return sorted(
        nodes, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0, isinstance(node, ast.Assign))
    )


class _Queries:
    """Queries of the calls read so far, and the values of variables."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.searched: list[str] = []
        self._texts: dict[str, str] = {}  # text that stands for each name in a query

    def read(self, node: ast.Assign | ast.Call) -> None:
        """Add the query of a call, or the value of an assignment."""
        match node:
            case ast.Call(func=ast.Name(id="answer" | "retrieve" as name), args=[query, *more]):
                reads = name == "answer" and bool(more or node.keywords)
                queries, text = self.answered if reads else self.searched, self._shown(query)
                if (reads or name == "retrieve") and text not in queries:
                    queries.append(text)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._texts[name] = self._value(value)

    def _value(self, value: ast.expr) -> str:
        match value:
            case ast.Call(func=ast.Name(id="answer"), args=[query, *_]) if self._shown(query) in self.answered:
                return f"#{self.answered.index(self._shown(query)) + 1}"
        return self._shown(value)

    def _shown(self, value: ast.expr) -> str:
        """Return the text of a query, or of a value inside one."""
        match value:
            case ast.Constant(value=str(text)):
                return " ".join(text.split())
            case ast.FormattedValue(value=inner):
                return self._shown(inner)
            case ast.Name(id=name) if name in self._texts:
                return self._texts[name]
            case ast.JoinedStr(values=parts):
                texts = [str(part.value) if isinstance(part, ast.Constant) else self._shown(part) for part in parts]
                return " ".join("".join(texts).split())
        return f"{{{ast.unparse(value)}}}"

"""The last answer as the final answer, if a synthesis would only repeat it (the setting `synthesis: needed`).

A chain of look-ups ends with the answer itself: "Where was {director} born?" answers "Where was the director of
Alpha born?". Asking the model again with the facts costs a call and cannot improve the answer. A program's last
statement, `final_answer = answer("Given: …")`, is therefore replaced by the name of the last answer under two
conditions:

    every other answer is used in a later query, so that there is nothing to combine
    the question is the last query with a description in place of the name: equal words before and after it, or the
        same noun after "what" or "which"; a question for a year matches a query for a date, of which the year is
        used

Any other synthesis is left unchanged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from pyrag._io.lines import lines_of

_RESULT = "final_answer"
_SLOT = "\0"
_WORD = re.compile(rf"\w+|{_SLOT}")
_ARTICLES = frozenset(("the", "a", "an"))
_YEAR = re.compile(r"(?:in |of |from )?(?:what|which) year\b")
_DATE = re.compile(r"when\b|on (?:what|which) (?:date|day)\b|what (?:date|day)\b")
_THING = re.compile(r"(?:(?:in|on|at|of|from|to|for|by) )?(?:what|which) (?:(?:is|was|are|were) )?(.*)", re.DOTALL)
_ASKING = frozenset((
    "who", "whom", "whose", "what", "which", "when", "where", "why", "how", "is", "was", "are", "were", "did", "does",
    "do", "has", "have", "had", "of", "in", "on", "at", "to", "by", "for", "from", "with", "that", "name",
    "named", "called", "_", _SLOT,
))  # fmt: skip
_VAGUE = frozenset(("", "name", "one", "person", "thing"))


@dataclass(frozen=True, slots=True)
class _LookUp:
    """Statement `name = answer(query, documents)`; `query` has a slot for each value, and `uses` holds their names."""

    name: str
    query: str
    uses: frozenset[str]


def without_synthesis(source: str, question: str) -> str:
    """Return the program with the last answer as its final answer, if this answers the question.

    Args:
        source: Source code of a program.
        question: The user's question.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Assign) or last.col_offset or not _is_synthesis(last):
        return source
    steps = list(_steps(tree))
    if not steps or _assigned_elsewhere(tree, last) or not _is_chain(steps, last):
        return source
    replacement = _replacement(_normalised(question), _normalised(steps[-1].query), steps[-1].name, last)
    if replacement is None:
        return source
    before = lines_of(source, keepends=True)[: last.lineno - 1]
    return "".join(before) + replacement + "\n"


def _is_synthesis(statement: ast.Assign) -> bool:
    """Return True for `final_answer = answer(facts)`, without documents."""
    value, targets = statement.value, statement.targets
    return (
        [ast.unparse(target) for target in targets] == [_RESULT]
        and isinstance(value, ast.Call)
        and ast.unparse(value.func) == "answer"
        and len(value.args) == 1
        and not value.keywords
    )


def _steps(tree: ast.Module) -> Iterator[_LookUp]:
    """Yield the queries about documents at the top level, in order.

    Queries inside branches and loops are not yielded, so that such a program is not a chain.
    """
    values: dict[str, ast.expr] = {}
    for statement in tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        name, value = statement.targets[0].id, statement.value
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "answer" and len(value.args) == 2:
            query = value.args[0]
            query = values.get(query.id, query) if isinstance(query, ast.Name) else query
            yield _LookUp(name, _text(query), _names(query))
        values[name] = value


def _text(query: ast.expr) -> str:
    """Return a query with a slot for each value; only a slot if the expression is not a text."""
    if isinstance(query, ast.Constant):
        return str(query.value)
    if not isinstance(query, ast.JoinedStr):
        return _SLOT
    return "".join(str(part.value) if isinstance(part, ast.Constant) else _SLOT for part in query.values)


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _assigned_elsewhere(tree: ast.Module, last: ast.Assign) -> bool:
    """Return True if a final answer is set before the last statement, or if statements branch."""
    return any(
        not isinstance(statement, ast.Assign | ast.Expr | ast.Import | ast.ImportFrom) or _RESULT in _names(statement)
        for statement in tree.body
        if statement is not last
    )


def _is_chain(steps: list[_LookUp], last: ast.Assign) -> bool:
    """Return True if every answer but the last is used by a later query, and the synthesis adds no other values."""
    names = {step.name for step in steps}
    used = frozenset[str]().union(*(step.uses for step in steps[1:]))
    facts = _names(last.value) - {"answer"}
    return len(names) == len(steps) and names - used == {steps[-1].name} and facts <= names and steps[-1].name in facts


def _normalised(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text.casefold()) if word not in _ARTICLES)


def _replacement(question: str, query: str, name: str, last: ast.Assign) -> str | None:
    """Return the statement that replaces the synthesis, or None if the question may be asking for something else."""
    if _is_filled(question, query) or (_thing(question) not in _VAGUE and _thing(question) == _thing(query)):
        return f"{_RESULT} = {name}"
    year, date = _YEAR.match(question), _DATE.match(query)
    if year and date and _is_filled(question[year.end() :], query[date.end() :]):
        return f"try:\n    {_RESULT} = str(parse_year({name}))\nexcept ValueError:\n    {ast.unparse(last)}"
    return None


def _is_filled(question: str, query: str) -> bool:
    """Return True if the question is the query with a description in its only slot."""
    before, slot, after = query.partition(_SLOT)
    return (
        bool(slot)
        and not _ASKING.issuperset((before + after).split())
        and _SLOT not in after
        and question.startswith(before)
        and question.endswith(after)
        and len(question) > len(before + after)
    )


def _thing(question: str) -> str:
    """Return the noun that a question asks for after "what" or "which", such as "largest city"; empty without one."""
    asked = _THING.match(question)
    return " ".join(takewhile(lambda word: word not in _ASKING, asked[1].split())) if asked else ""

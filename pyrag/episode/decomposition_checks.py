"""Checks that a program searches often enough, and that its searches build on each other (paper, section 3.4, F1)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from pyrag.episode.question_hops import hops_of

_COMPARING = re.compile(
    r"\b(which of|who of|compare|both|same|older|younger|earlier|later|first|last|larger|smaller|bigger|longer|shorter"
    r"|higher|lower|taller|more|less|fewer|before|after|closer|difference|common|share|older|newer)\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"#([1-9]\d?)(?!\d)")


def decomposition_faults(
    searches: Sequence[ast.Call],
    values: Mapping[str, Sequence[ast.expr]],
    sub_queries: Sequence[str],
    question: str,
    *,
    repeated: bool,
) -> Iterator[str]:
    """Yield faults of a program's decomposition, worded for the planner.

    Args:
        searches: The program's calls of `retrieve`.
        values: Expressions assigned to each name of the program.
        sub_queries: Sub-queries that the program was written for; possibly only the question itself.
        question: The original question; may be empty.
        repeated: Whether the program has loops or functions, so that its calls may run any number of times.
    """
    queries = [_resolved(_query(call), values) for call in searches]
    varying = [query for query in queries if not isinstance(query, ast.Constant)]
    if not queries or (repeated and varying):
        return
    distinct = len({query.value if isinstance(query, ast.Constant) else ast.dump(query) for query in queries})
    hops = hops_of(question)
    needed = {query for i, query in enumerate(sub_queries) if not (i >= 2 and _COMPARING.search(query))}
    if distinct < len(needed):
        yield (
            f"under-decomposition: there are {len(needed)} sub-queries but only {_counted(distinct, queries)}; "
            "each sub-query that needs evidence needs a retrieve() and an answer() of its own"
        )
    elif distinct < hops.minimum:
        yield (
            f"under-decomposition: the question needs at least {hops.minimum} look-ups and the program does "
            f"{_counted(distinct, queries)}: "
            + ("look up the inner description first, then search with its answer" if hops.chained else _EACH)
        )
    elif not varying and (hops.chained or _builds_on_answers(sub_queries, question)):
        yield (
            "no search uses the answer of an earlier step, though the question asks about something that has to be "
            'looked up first: put that answer into the next query, as in retrieve(f"Where was {a1} born?")'
        )


def _builds_on_answers(sub_queries: Sequence[str], question: str) -> bool:
    """Return whether a sub-query refers to the answer of another one, as in "Where was #1 born?".

    A number without such a sub-query, and a number in the question itself, are part of a name.
    """
    numbers = {int(number) for query in sub_queries for number in _REFERENCE.findall(query)}
    names = {int(number) for number in _REFERENCE.findall(question)}
    return len(sub_queries) > 1 and any(number <= len(sub_queries) for number in numbers - names)


_EACH = "look each of the compared things up with a retrieve() and an answer() of its own"


def _counted(distinct: int, queries: Sequence[ast.expr]) -> str:
    calls = f"{distinct} retrieve() call{'' if distinct == 1 else 's'}"
    return calls if distinct == len(queries) else f"{calls} with different queries"


def _query(call: ast.Call) -> ast.expr:
    named = next((word.value for word in call.keywords if word.arg == "query"), None)
    return call.args[0] if call.args else named or ast.Constant("")


def _resolved(query: ast.expr, values: Mapping[str, Sequence[ast.expr]]) -> ast.expr:
    """Return the text of a query if it is constant; otherwise return the expression."""
    match query:
        case ast.Name(id=name) if len(values.get(name, ())) == 1:
            return _resolved(values[name][0], {key: value for key, value in values.items() if key != name})
        case ast.JoinedStr(values=parts):
            known = [_resolved(part.value if isinstance(part, ast.FormattedValue) else part, values) for part in parts]
            texts = [str(part.value) for part in known if isinstance(part, ast.Constant)]
            return ast.Constant("".join(texts)) if len(texts) == len(known) else query
    return query

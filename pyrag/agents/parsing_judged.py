"""What a model's reply means, part five: a judged answer and a rewritten query.

Both are one JSON object. A server that enforces a schema makes these checks idle; the others get asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyrag.agents.fields import decision_of, line_of, object_with, positions_of
from pyrag.agents.parsing_answer import MAX_ANSWER, find_citations, is_unknown, strip_citations
from pyrag.errors import BadOutputError
from pyrag.trace import UNKNOWN

_MAX_QUERY = 500  # characters


@dataclass(frozen=True, slots=True)
class Judged:
    """`citations` count from 0; `missing` is empty where the documents suffice."""

    text: str
    known: bool
    citations: tuple[int, ...]
    confidence: float | None
    analysis: str
    missing: str


def parse_judged(text: str, documents: int) -> Judged:
    """Raises `BadOutputError` where the reply is not in form, or decides one thing and says another."""
    value = object_with(text, "decision")
    known = decision_of(value["decision"])
    answer = strip_citations(line_of(value, "answer"))[:MAX_ANSWER]
    analysis = line_of(value, "analysis")
    if known and is_unknown(answer):
        raise BadOutputError('the decision is YES, but there is no answer in "answer"')
    return Judged(
        answer if known else UNKNOWN,
        known,
        positions_of(value.get("documents"), documents) or find_citations(analysis, documents) if known else (),
        _confidence(value.get("confidence")),
        analysis,
        "" if known else line_of(value, "missing"),
    )


def parse_rewrite(text: str) -> tuple[str, tuple[str, ...], str]:
    """The query, its keywords and the strategy of a reply. Raises `BadOutputError`."""
    value = object_with(text, "query")
    query = line_of(value, "query")
    if not query:
        raise BadOutputError('"query" is empty')
    if len(query) > _MAX_QUERY:
        raise BadOutputError(f"the query has {len(query)} characters; {_MAX_QUERY} are the most allowed")
    keywords = value.get("keywords") or []
    if not isinstance(keywords, list) or not all(isinstance(word, str) for word in keywords):
        raise BadOutputError('"keywords" must be a list of strings')
    return query, tuple(keywords), line_of(value, "strategy")


def _confidence(said: Any) -> float | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= 1:
        raise BadOutputError(f'"confidence" must be a number from 0 to 1, not {repr(said)[:80]}')
    return float(said)

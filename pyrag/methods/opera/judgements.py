"""What a model's reply means, part five: a judged answer and a rewritten query.

Both are one JSON object. A server that enforces a schema makes these checks idle; the others get asked again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyrag.agents.parsing.answer_places import extracted, is_form
from pyrag.agents.parsing.answers import checked_span, cleaned, salvage_answer
from pyrag.agents.parsing.citations import find_citations
from pyrag.agents.parsing.fields import (
    decision_of,
    loose_line_of,
    object_with,
    positions_of,
    share_of,
    texts_of,
    worded,
)
from pyrag.agents.parsing.json_values import split_thinking
from pyrag.agents.parsing.spans import shortened
from pyrag.errors import BadOutputError
from pyrag.trace.model import UNKNOWN
from pyrag_sandbox.unknown import is_unknown

_MAX_QUERY = 500  # characters
_MIN_WORDS, _MAX_WORDS = 3, 25  # of a reply that may be a query alone
_SPEAKING = frozenset(
    ("i", "i'm", "i’m", "sorry", "unfortunately", "please", "here", "the", "let", "to", "we", "sure", "my")
)
_QUOTED = re.compile(r"\A[`\"“'](.{1,500})[`\"”']\Z")
_LABEL = re.compile(
    r"\A[\s*_#>-]{0,8}(?:(?:re-?written|new|search|refined)\s)?query[*_]{0,2}\s?[:：]\s?[*_]{0,2}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Judged:
    """`citations` count from 0; `missing` is empty where the documents suffice; `note` names fields that were "
    "ignored."""

    text: str
    known: bool
    citations: tuple[int, ...]
    confidence: float | None
    analysis: str
    missing: str
    note: str = ""


def parse_judged(text: str, documents: int, query: str = "") -> Judged:
    """Read a judgement.

    Args:
        text: The reply.
        documents: How many documents it may cite.
        query: What was asked. Yes or no to a question for something else, and a sentence for a span, are out of form.

    Raises:
        BadOutputError: the reply is not in form, or decides one thing and says another.
    """
    value = _judgement(text)
    answer = cleaned(loose_line_of(value, "answer"), documents, query)
    said = is_unknown(answer)
    known = decision_of(value["decision"]) if "decision" in value else not said
    if known and (said or is_form(answer)):
        raise BadOutputError('the decision is YES, but there is no answer in "answer"')
    if known and query:
        checked_span(answer, query)
    rest = "" if "{" in text else text  # labelled lines, whose citations may stand anywhere
    return _judged(value, answer, documents, rest, known=known)


def salvage_judged(text: str, documents: int, query: str) -> Judged | None:
    """The best reading of a judgement when asking again did not help; None if nothing.

    The arguments are those of `parse_judged`.
    """
    try:
        judged = parse_judged(text, documents)
    except BadOutputError:
        rest = split_thinking(text, r"(?i)<answer>")[1]
        found = salvage_answer(text, documents, query) if extracted(rest, query) is not None else None
        return Judged(found.text, found.known, found.citations, None, found.rationale, "") if found else None
    short = shortened(query, judged.text) if judged.known else judged.text
    return Judged(
        short, judged.known, judged.citations, judged.confidence, judged.analysis, judged.missing, judged.note
    )


def _judgement(text: str) -> dict[str, Any]:
    """The object with the decision; one with an answer decides by it."""
    try:
        return object_with(text, "decision")
    except BadOutputError:
        try:
            return object_with(text, "answer")
        except BadOutputError:
            pass
        raise


def _judged(value: dict[str, Any], answer: str, documents: int, rest: str, *, known: bool) -> Judged:
    analysis, confidence = loose_line_of(value, "analysis"), share_of(value.get("confidence"))
    unread = value.get("confidence") not in (None, "") and confidence is None
    cited = positions_of(value.get("documents"), documents) or find_citations(analysis or rest, documents)
    return Judged(
        answer if known else UNKNOWN,
        known,
        cited if known else (),
        confidence,
        analysis,
        "" if known else loose_line_of(value, "missing"),
        f"ignored a confidence that cannot be read: {repr(value.get('confidence'))[:80]}" if unread else "",
    )


def parse_rewrite(text: str) -> tuple[str, tuple[str, ...], str]:
    """The query, its keywords and the strategy of a reply. Raises `BadOutputError`."""
    try:
        value = object_with(text, "query")
    except BadOutputError:
        value = {"query": _bare_query(text)}
        if not value["query"]:
            raise
    query = worded(_query_of(value["query"]))
    if not query:
        raise BadOutputError('"query" is empty')
    if len(query) > _MAX_QUERY:
        raise BadOutputError(f"the query has {len(query)} characters; {_MAX_QUERY} are the most allowed")
    if is_form(query):
        raise BadOutputError("it repeats the form, and has no query in it")
    return query, tuple(texts_of(value.get("keywords"))), loose_line_of(value, "strategy")


def salvage_rewrite(text: str) -> str:
    """A reply that is one line of search terms and nothing else, when asking again did not help; else an empty text."""
    lines = [line.strip(' *`"“”') for line in split_thinking(text, "(?!)")[1].splitlines() if line.strip()]
    line = lines[0] if len(lines) == 1 else ""
    words = line.split()
    plain = _MIN_WORDS <= len(words) <= _MAX_WORDS and not line.startswith(("{", "[", "<")) and not is_form(line)
    return line if plain and words and words[0].casefold().strip(",") not in _SPEAKING and not is_unknown(line) else ""


def _query_of(said: Any) -> str:
    """One query: the first of several."""
    if isinstance(said, list):
        said = next((one for one in said if one), "")
    if isinstance(said, dict):
        said = next((said[key] for key in ("query", "text", "q") if key in said), next(iter(said.values()), ""))
    return " ".join(said.split()) if isinstance(said, str) else ""


def _bare_query(text: str) -> str:
    """A reply that is a query alone, in quotes or behind a label; empty where it may be anything else."""
    lines = [line.strip() for line in split_thinking(text, r"(?i)\bquery\s?[:：]")[1].splitlines() if line.strip()]
    labelled = [line[found.end() :] for line in lines if (found := _LABEL.match(line))]
    line = labelled[-1] if labelled else lines[0] if len(lines) == 1 else ""
    quoted = _QUOTED.match(line.strip("* "))
    return quoted[1] if quoted else line.strip("*` ") if labelled else ""

"""Parser of an analyst's reply: a judged answer, one JSON object.

If a server enforces the schema, these checks never fail; otherwise the model is asked again.
"""

from __future__ import annotations

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
)
from pyrag.agents.parsing.spans import shortened
from pyrag.agents.parsing.thinking import split_thinking
from pyrag.errors import BadOutputError
from pyrag.trace.model import UNKNOWN
from pyrag_helpers.unknown import is_unknown


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged answer.

    Attributes:
        citations: Positions in the documents, from 0.
        confidence: Confidence in [0, 1]; None if the reply has no readable one.
        missing: Information that the documents lack; empty if they suffice.
        note: Remark that names ignored fields.
    """

    text: str
    known: bool
    citations: tuple[int, ...]
    confidence: float | None
    analysis: str
    missing: str
    note: str = ""


def parse_judged(text: str, documents: int, query: str = "") -> Judged:
    """Parse a judgement.

    Args:
        text: The reply.
        documents: Number of documents that it may cite.
        query: The query. A yes or no to a question that asks for something else is malformed, as is a sentence instead
            of a span.

    Raises:
        BadOutputError: The reply is malformed, or its decision and its answer contradict each other.
    """
    value = _judgement(text)
    answer = cleaned(loose_line_of(value, "answer"), documents, query)
    refuses = is_unknown(answer)
    known = decision_of(value["decision"]) if "decision" in value else not refuses
    if known and (refuses or is_form(answer)):
        raise BadOutputError('the decision is YES, but there is no answer in "answer"')
    if known and query:
        checked_span(answer, query)
    rest = "" if "{" in text else text  # labelled lines; citations may be anywhere in them
    return _judged(value, answer, documents, rest, known=known)


def salvage_judged(text: str, documents: int, query: str) -> Judged | None:
    """Return the best reading of a judgement after repeated requests failed; None if there is none.

    Args:
        text: The reply.
        documents: Number of documents that it may cite.
        query: The query, which is used to shorten the answer; the answer's form is not enforced.
    """
    try:
        judged = parse_judged(text, documents)
    except BadOutputError:
        rest = split_thinking(text, r"(?i)<answer>")[1]
        answer = salvage_answer(text, documents, query) if extracted(rest, query) is not None else None
        return Judged(answer.text, answer.known, answer.citations, None, answer.rationale, "") if answer else None
    short = shortened(query, judged.text) if judged.known else judged.text
    return Judged(
        short, judged.known, judged.citations, judged.confidence, judged.analysis, judged.missing, judged.note
    )


def _judgement(text: str) -> dict[str, Any]:
    """Return the object with the decision; if it has only an answer, the answer implies the decision."""
    try:
        return object_with(text, "decision")
    except BadOutputError:
        try:
            return _with_status(object_with(text, "answer"))
        except BadOutputError:
            pass
        raise


def _with_status(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its status as the decision, as in OPERA's release; unchanged if that is not yes or no.

    The object's analysis then becomes the missing information.
    """
    status = next((text for key, text in value.items() if str(key).strip().casefold() == "status"), None)
    try:
        decision_of(status)
    except BadOutputError:
        return value
    return {"missing": value.get("analysis"), **value, "decision": status}


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

"""Confidence of an answer, lowered if the answer does not fully fit its question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pyrag.agents.protocol import Reading
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.checks.shortfall import shortfall
from pyrag.embedded.reader.neural.objections import names_of_question
from pyrag.embedded.words import content_stems, fold
from pyrag.trace.model import Passage

FALLS_SHORT = 0.2
"""Confidence of an answer that falls short. A smaller share of such answers to the labelled questions is right."""


def believable(reading: Reading, analysis: QuestionAnalysis, passages: Sequence[Passage]) -> Reading:
    """Return a reading, marked as weak if its answer does not fully fit the question.

    Args:
        reading: The reading; citations are positions in `passages`.
        analysis: The question.
        passages: Passages that were read.
    """
    if not reading.known or (reading.confidence or 0.0) <= FALLS_SHORT:
        return reading
    cited = [passages[place] for place in reading.citations] or passages
    reasons = [shortfall(analysis, page.text, reading.text, page.title) or unnamed(analysis, page) for page in cited]
    other = _one_of_rows(analysis, reading, passages)
    if not other and (not reasons or not all(reasons)):
        return reading
    reasons = [other or reasons[0]]
    return replace(reading, confidence=FALLS_SHORT, rationale=f"{reading.rationale}; but {reasons[0]}")


def _one_of_rows(analysis: QuestionAnalysis, reading: Reading, passages: Sequence[Passage]) -> str:
    """Return why a figure in a record of a table may be one of several, since other records have the same words."""
    if len(reading.citations) != 1 or not _FIGURE.search(analysis.question):
        return ""
    cited = passages[reading.citations[0]]
    rows = [row for row in passages if row.metadata and row.source == cited.source and row.id != cited.id]
    asked = content_stems(analysis.question)
    if not cited.metadata or len(_RECORD.findall(cited.text)) < 2 or not asked.intersection(content_stems(cited.text)):
        return ""
    named = asked.intersection(content_stems(f"{cited.title} {cited.text}"))
    same = any(named <= content_stems(f"{row.title} {row.text}") for row in rows)
    return "other rows of its table have the same words of the question" if same else ""


def unnamed(analysis: QuestionAnalysis, page: Passage) -> str:
    """Return a name in the question that a passage does not mention, or "".

    A short question may name a thing in two ways, so that one of its names is enough. A long question is about several
    things, and a passage that lacks one of them is about something else.

    Args:
        analysis: The question.
        page: The passage.
    """
    names = [name for name in names_of_question(analysis.question) if not analysis.question.startswith(name)]
    if analysis.kind == "choice" or not names:
        return ""
    there = set(f"{fold(page.title)} {fold(page.text)}".split())
    missing = [name for name in names if not _is_named(name, there)]
    is_long = len(content_stems(analysis.question)) >= _LONG
    return f"the passage does not name {missing[0]}" if missing and (is_long or missing == names) else ""


_FIGURE = re.compile(r"\bhow (?:much|many)\b|\b(?:total|number|amount|sum|average|share)\b", re.IGNORECASE)
_RECORD = re.compile(r"[^\W\d_)]: ")
_LONG = 9  # words of a question beside stop words


def _is_named(name: str, there: set[str]) -> bool:
    """Return whether a passage's words have a word of a name; names of single letters always count as present."""
    parts = [word for word in fold(name).split() if len(word) > 1]
    return not parts or any({word, f"{word}s"} & there for word in parts)

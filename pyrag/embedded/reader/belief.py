"""Confidence of an answer, lowered if the answer does not fully fit its question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrag.agents.protocol import Reading
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.neural.objections import names_of_question
from pyrag.embedded.reader.shortfall import shortfall
from pyrag.embedded.words import content_stems, fold
from pyrag.trace.model import Passage

FALLS_SHORT = 0.2
"""Confidence of an answer that falls short; of such answers to the labelled questions, fewer than that are right."""


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
    if not reasons or not all(reasons):
        return reading
    return replace(reading, confidence=FALLS_SHORT, rationale=f"{reading.rationale}; but {reasons[0]}")


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


_LONG = 9  # words of a question beside stop words


def _is_named(name: str, there: set[str]) -> bool:
    """Return whether a passage's words have a word of a name; names of single letters always count as present."""
    parts = [word for word in fold(name).split() if len(word) > 1]
    return not parts or any({word, f"{word}s"} & there for word in parts)

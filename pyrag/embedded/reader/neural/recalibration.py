"""Confidence of an answer by the part of the reader that found it, as measured on Wikipedia questions.

Patterns report their own strength, and the network's curve was fitted on questions about one thing. Fewer
than two in three answers of the kinds below are right, whatever confidence they start with
(docs/notes/own-documents.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pyrag.agents.protocol import Reading
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.neural.doubts import ASKING, WEAK
from pyrag.embedded.relations.people import CAREER, KIN, LIFE, MEMBERSHIPS, PUPILS
from pyrag.embedded.relations.works import MAKERS
from pyrag.embedded.words import content_stems, fold, sentences
from pyrag.trace.model import Passage
from pyrag.trace.sentences import split_sentences

Source = Literal["comparison", "table", "pattern", "network"]

RESTATED = 0.9
"""Confidence of an answer from a short sentence that says all that the question says, if there is no doubt about it."""

_SURE_PATTERN = 0.8
_OF_PEOPLE = frozenset(relation.name for relation in (*LIFE, *KIN, *CAREER, *MEMBERSHIPS, *MAKERS, *PUPILS))
_LONG = 13  # words; each name counts as one word
_FACTOR = 0.6
_SHORT = 12  # words of a sentence that says little else
_NAME = re.compile(r"[A-Z0-9][\w.'’&-]*(?:,? (?:(?:of|the|and|de|von|in|for|to|a) )*[A-Z0-9(][\w.'’&)-]*)*")


def recalibrated(reading: Reading, analysis: QuestionAnalysis, source: Source, passages: Sequence[Passage]) -> Reading:
    """Return a reading with the confidence that answers of its kind deserve.

    Args:
        reading: The reading.
        analysis: The question.
        source: Part of the reader that found the answer.
        passages: Passages that the reading cites by their positions.
    """
    confidence = reading.confidence or 0.0
    if not reading.known or confidence <= WEAK:
        return reading
    if source != "comparison" and not _is_long(analysis.question) and _is_restated(reading, analysis, passages):
        return replace(reading, confidence=max(confidence, RESTATED))
    if not _is_doubtful(confidence, analysis, source):
        return reading
    if not _is_long(analysis.question) and _is_stated(reading, analysis.subject, passages):
        return reading
    return replace(reading, confidence=min(WEAK, round(_FACTOR * confidence, 4)))


def _is_doubtful(confidence: float, analysis: QuestionAnalysis, source: Source) -> bool:
    if source == "pattern":
        is_weak = confidence < _SURE_PATTERN and analysis.relation in _OF_PEOPLE
        return is_weak or _is_long(analysis.question)
    return source == "network" and (_is_long(analysis.question) or analysis.relation == "place of birth")


def _is_stated(reading: Reading, subject: str, passages: Sequence[Passage]) -> bool:
    """Return whether a short sentence of a cited passage names both the subject in full and the answer."""
    texts = [passages[place].text for place in reading.citations if place < len(passages)]
    sentences = [fold(text[start:stop]) for text in texts for start, stop in split_sentences(text)]
    name, answer = fold(subject), fold(reading.text)
    if not answer or len(name.split()) < 2:  # "Peter" may be anybody
        return False
    return any(name in text and answer in text and len(text.split()) <= _SHORT for text in sentences)


def _is_restated(reading: Reading, analysis: QuestionAnalysis, passages: Sequence[Passage]) -> bool:
    """Return whether a short sentence of a cited passage has the answer and all telling words of the question."""
    asked, answer = content_stems(ASKING.sub(" ", analysis.question)), f" {fold(reading.text)} "
    texts = [passages[place].text for place in reading.citations if place < len(passages)]
    lines = [line for text in texts for line in sentences(text)] if asked and answer.strip() else []
    short = [line for line in lines if len(fold(line.text).split()) <= _SHORT and asked.issubset(line.stems)]
    return any(answer in f" {fold(line.text)} " for line in short)


def _is_long(question: str) -> bool:
    """Return whether a question says too much for one look-up: several things are to be joined."""
    text = re.sub(r"[\"“][^\"”]*[\"”]", "X", question)
    return len(_NAME.sub("X", text[:1].lower() + text[1:]).split()) >= _LONG

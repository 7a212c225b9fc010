"""Neural answerer, which combines the lexical reader with a network that marks answers in passages.

The lexical reader decides yes/no and either-or questions, and questions about facts in the query. For other questions,
fields of records and tables are read first. Then patterns for the question's relation are tried, since they are right
more often than the network. The network answers the remaining questions: a candidate's score is its margin over "no
answer", and is higher if the page is about the question's subject or if a pattern agrees. The calibrated score of the
best candidate is the confidence. Below a threshold, the answer is unknown.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Protocol

from pyrag.agents.protocol import Reading
from pyrag.embedded.plain_question import plain_question
from pyrag.embedded.question_analysis import QuestionAnalysis, analyse
from pyrag.embedded.reader.belief import believable
from pyrag.embedded.reader.mentions import mention_of
from pyrag.embedded.reader.neural.decode import MarkedSpan, trim
from pyrag.embedded.reader.neural.doubts import WEAK, doubt
from pyrag.embedded.reader.neural.network import MODEL_FOLDER, Calibration, load
from pyrag.embedded.reader.neural.objections import objection
from pyrag.embedded.reader.neural.recalibration import Source, recalibrated
from pyrag.embedded.reader.reader import by_pattern, read_views
from pyrag.embedded.reader.reader import read as read_lexically
from pyrag.embedded.reader.rows import narrowed
from pyrag.embedded.reader.tables import by_table, other_label, other_row
from pyrag.embedded.reader.view import View, views
from pyrag.embedded.record_fields import by_record
from pyrag.embedded.words import fold
from pyrag.trace.model import UNKNOWN, Passage

COMPUTED = ("yesno", "choice")  # kinds of questions that the lexical reader answers


class SpanReader(Protocol):
    """Interface of an object that marks answers, such as `Model`."""

    @property
    def calibration(self) -> Calibration: ...

    def spans(self, question: str, texts: Sequence[tuple[str, str]], count: int = 3) -> list[MarkedSpan]:
        """Return the best spans of all passages, best first.

        Args:
            question: Question to answer.
            texts: Title and text of each passage.
            count: Maximum number of spans per window of a passage.
        """
        ...


@dataclass(slots=True)
class NeuralAnswerer:
    """Answerer of single-hop questions.

    Args:
        folder: Folder of the network, which is loaded when the first question arrives.
        eagerness: Factor on the confidence before it is compared with the threshold. Values above 1 give fewer unknown
            answers.
        reader: Reader to use instead of the network in `folder`.
        min_evidence: Minimum confidence of a known answer, if it is below the threshold of the network. None to use
            that threshold.
    """

    folder: Path = MODEL_FOLDER
    eagerness: float = 1.0
    reader: SpanReader | None = field(default=None, repr=False)
    min_evidence: float | None = None
    _loading: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Answer a question in a thread, so that the event loop is not blocked.

        Args:
            query: Question. Without passages, "Given: FACTS. Answer the question: QUESTION".
            passages: Passages to read. None to read the facts in the query.

        Raises:
            ServiceError: The network is needed and cannot be loaded.
        """
        return await asyncio.to_thread(self.read, query, passages)

    def read(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Answer a question in the calling thread.

        Args:
            query: Question. Without passages, "Given: FACTS. Answer the question: QUESTION".
            passages: Passages to read. None to read the facts in the query.

        Raises:
            ServiceError: The network is needed and cannot be loaded.
        """
        if passages is None:
            return read_lexically(query, None, self.eagerness)
        if (mention := mention_of(query, passages)) is not None:
            return mention
        analysis = analyse(plain_question(query))
        reading, source = self._believed(analysis, passages)
        return recalibrated(reading, analysis, source, passages)

    def _look_up(self, query: str, passages: Sequence[Passage]) -> Reading:
        """Answer a question that a yes/no question rests on, whose threshold is for first confidences."""
        if (mention := mention_of(query, passages)) is not None:
            return mention
        return self._believed(analyse(plain_question(query)), passages)[0]

    def _believed(self, analysis: QuestionAnalysis, passages: Sequence[Passage]) -> tuple[Reading, Source]:
        if (field := by_record(analysis, passages)) is not None:
            return field, "table"
        passages = narrowed(analysis, passages)
        reading, source = self._read(analysis, passages)
        return believable(reading, analysis, passages), source

    def _read(self, analysis: QuestionAnalysis, passages: Sequence[Passage]) -> tuple[Reading, Source]:
        pages = views(analysis, passages)
        if analysis.kind in COMPUTED:
            look_up = partial(self._look_up, passages=passages)
            return read_views(analysis, pages, passages, self.eagerness, look_up), "comparison"
        cell = by_table(analysis, pages, passages)
        if cell is not None:
            return cell, "table"
        sure = by_pattern(analysis, pages, self.eagerness)
        if sure is not None and not _has_objection(analysis, pages, sure):
            return _doubted(sure, analysis, pages, by_pattern=True), "pattern"
        model = self.model
        answers = [
            candidate
            for candidate in candidates(model, analysis, passages, pages)
            if not _is_elsewhere(analysis, passages[candidate.span.passage], candidate.span.start)
        ]
        answers = supported(answers, analysis, pages)
        reading = answer(answers, model.calibration, passages, self.eagerness, self.min_evidence)
        return _doubted(reading, analysis, pages), "network"

    def evidence(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """Return the probability that a passage answers a question, for each passage.

        Args:
            query: Question to answer.
            passages: Passages to rate.

        Returns:
            Probabilities in the order of the passages. A passage without a possible answer has 0.

        Raises:
            ServiceError: The network cannot be loaded.
        """
        model, analysis = self.model, analyse(plain_question(query))
        pages = views(analysis, passages)
        best = [0.0] * len(passages)
        for candidate in candidates(model, analysis, passages, pages, by_pattern(analysis, pages)):
            probability = _probability(candidate.score(model.calibration), model.calibration)
            best[candidate.span.passage] = max(best[candidate.span.passage], probability)
        return best

    @property
    def model(self) -> SpanReader:
        """Network, loaded on first use."""
        with self._loading:  # several threads may read at once
            if self.reader is None:
                self.reader = load(self.folder)
            return self.reader


@dataclass(frozen=True, slots=True)
class Candidate:
    """Possible answer of the network.

    Args:
        span: Span of the answer.
        text: Text of the answer, with corrected edges.
        about: Certainty that the passage is about the question's subject, in [0, 1].
        agrees: The lexical reader's confidence in the same answer, in [0, 1].
    """

    span: MarkedSpan
    text: str
    about: float
    agrees: float

    def score(self, calibration: Calibration) -> float:
        """Return the margin, increased if the passage is about the subject and if the lexical reader agrees."""
        return self.span.margin + calibration.about * self.about + calibration.agrees * self.agrees


def answer(
    answers: Sequence[Candidate],
    calibration: Calibration,
    passages: Sequence[Passage],
    eagerness: float = 1.0,
    min_evidence: float | None = None,
) -> Reading:
    """Return the best candidate as a reading, or unknown if its probability is too low.

    Args:
        answers: Candidates in any order. Without candidates, the answer is unknown.
        calibration: Calibration of the scores, and threshold of known answers.
        passages: Passages of the candidates' spans.
        eagerness: Factor on the probability before it is compared with the threshold.
        min_evidence: A second threshold. The lower of the two is used.
    """
    if not answers:
        return Reading(UNKNOWN, False, (), "there is nothing to read", 0.0)
    best = ordered(answers, calibration)[0]
    confidence = round(_probability(best.score(calibration), calibration), 4)
    threshold = calibration.threshold if min_evidence is None else min(min_evidence, calibration.threshold)
    if confidence * eagerness < threshold:
        return Reading(UNKNOWN, False, (), "no passage answers the question well enough", confidence)
    position = best.span.passage
    return Reading(best.text, True, (position,), _because(passages[position].text, best.span), confidence)


def supported(answers: Sequence[Candidate], analysis: QuestionAnalysis, pages: Sequence[View]) -> list[Candidate]:
    """Return the candidates that `objection` accepts, in their order.

    Args:
        answers: Candidates.
        analysis: Analysis of the question.
        pages: View of each passage, in the order of the passages.
    """
    return [
        candidate for candidate in answers if not objection(analysis, pages[candidate.span.passage], candidate.text)
    ]


def _is_elsewhere(analysis: QuestionAnalysis, passage: Passage, start: int) -> bool:
    """Return whether a span belongs to a different row or label than the question names."""
    return other_row(analysis, passage, start) or other_label(analysis, passage, start)


def _doubted(
    reading: Reading, analysis: QuestionAnalysis, pages: Sequence[View], *, by_pattern: bool = False
) -> Reading:
    """Return a reading, with a lower confidence if there is a doubt about it."""
    confidence = reading.confidence or 0.0
    if not reading.known or confidence <= WEAK:
        return reading
    why = next(
        (why for at in reading.citations if (why := doubt(analysis, pages[at], reading.text, by_pattern=by_pattern))),
        "",
    )
    return replace(reading, confidence=WEAK, rationale=f"{reading.rationale}; but {why}") if why else reading


def _has_objection(analysis: QuestionAnalysis, pages: Sequence[View], reading: Reading) -> bool:
    """Return whether there is an objection to an answer on a page that it cites."""
    return any(objection(analysis, pages[position], reading.text) for position in reading.citations)


def ordered(answers: Sequence[Candidate], calibration: Calibration) -> list[Candidate]:
    """Return candidates best first; equally good ones in the order of the passages.

    Args:
        answers: Candidates in any order.
        calibration: Calibration of the scores.
    """
    return sorted(
        answers, key=lambda candidate: (-candidate.score(calibration), candidate.span.passage, candidate.span.start)
    )


def candidates(
    model: SpanReader,
    analysis: QuestionAnalysis,
    passages: Sequence[Passage],
    pages: Sequence[View],
    lexical: Reading | None = None,
) -> list[Candidate]:
    """Return the network's answers in each passage, plus a pattern's answer if the network does not mark it.

    Args:
        model: Network that marks answers.
        analysis: Analysis of the question.
        passages: Passages to read.
        pages: View of each passage, in the order of `passages`.
        lexical: Answer of a pattern. Candidates with the same text get its confidence as `agrees`.
    """
    spans = model.spans(analysis.question, [(passage.title, passage.text) for passage in passages])
    about = [page.about for page in pages]
    confidence = (lexical.confidence or 0.0) if lexical is not None and lexical.known else 0.0
    answers = []
    for span in spans:
        text = trim(passages[span.passage].text, span.start, span.end, analysis)
        if text:
            is_same = lexical is not None and confidence > 0 and fold(text) == fold(lexical.text)
            answers.append(Candidate(span, text, about[span.passage], confidence if is_same else 0.0))
    if lexical is not None and confidence > 0 and not any(candidate.agrees for candidate in answers):
        answers += _missed(lexical, spans, passages, about, confidence)
    return answers


def _missed(
    lexical: Reading,
    spans: Sequence[MarkedSpan],
    passages: Sequence[Passage],
    about: Sequence[float],
    confidence: float,
) -> list[Candidate]:
    """Return the lexical answer as a candidate, with the network's lowest margin in its passage."""
    if not lexical.citations:
        return []
    position = lexical.citations[0]
    start = passages[position].text.find(lexical.text)
    margin = min((span.margin for span in spans if span.passage == position), default=0.0)
    if start < 0:
        return []
    return [
        Candidate(
            MarkedSpan(position, start, start + len(lexical.text), margin), lexical.text, about[position], confidence
        )
    ]


def _probability(score: float, calibration: Calibration) -> float:
    """Return the probability that an answer with this score is right."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, calibration.scale * score + calibration.offset))))


def _because(text: str, span: MarkedSpan) -> str:
    """Return the rationale for a span: the text around it."""
    around = text[max(0, span.start - 60) : span.end + 60].strip()
    return f"“{around}” of [{span.passage + 1}] reads like the answer"

"""The neural answerer: a small network marks the answer in each passage, or that there is none.

Either-or and yes/no questions, and answers from facts already found, are computed by the lexical reader, which
compares dates and names; where one of its patterns of a known relation is sure, that stands too (on training questions
patterns are right more often than the network). Everything else is read by the network. A candidate's score is its
margin over "no answer", more for a passage about the question's subject, and more where the lexical reader's patterns
found the same. The best score, calibrated, is the confidence; below a threshold the answer is unknown.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Protocol

from pyrag.agents.protocol import Reading
from pyrag.embedded.asking import plain_question
from pyrag.embedded.question_analysis import QuestionAnalysis, analyse
from pyrag.embedded.reader.neural.decode import MarkedSpan, trim
from pyrag.embedded.reader.neural.doubts import WEAK, doubt
from pyrag.embedded.reader.neural.network import MODEL_FOLDER, Calibration, load
from pyrag.embedded.reader.neural.objections import objection
from pyrag.embedded.reader.reader import by_pattern, read_views
from pyrag.embedded.reader.reader import read as read_lexically
from pyrag.embedded.reader.tables import by_table, other_label, other_row
from pyrag.embedded.reader.view import View, views
from pyrag.embedded.words import fold
from pyrag.trace.model import UNKNOWN, Passage

COMPUTED = ("yesno", "choice")  # kinds of questions that the lexical reader decides by comparing


class SpanReader(Protocol):
    """An object that marks answers: a `Model`, or a stand-in."""

    @property
    def calibration(self) -> Calibration: ...

    def spans(self, question: str, texts: Sequence[tuple[str, str]], count: int = 3) -> list[MarkedSpan]:
        """Return the best spans of every passage, best first.

        Args:
            question: The question.
            texts: Title and text of each passage.
            count: Most spans of one window of a passage.
        """
        ...


@dataclass(slots=True)
class NeuralAnswerer:
    """Answers single-hop questions; `eagerness` above 1 says unknown less often.

    Without a `reader`, the network of `folder` loads with the first question. `least` lowers its threshold.
    """

    folder: Path = MODEL_FOLDER
    eagerness: float = 1.0
    reader: SpanReader | None = field(default=None, repr=False)
    least: float | None = None
    _loading: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Answer a question in a thread, so that the event loop goes on.

        Args:
            query: The question; without passages, "Given: FACTS. Answer the question: QUESTION".
            passages: The passages to read, or None to read the query's own facts.

        Raises:
            ServiceError: the network is needed and cannot be loaded.
        """
        return await asyncio.to_thread(self.read, query, passages)

    def read(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Do as `answer` without the event loop.

        Args:
            query: The question; without passages, "Given: FACTS. Answer the question: QUESTION".
            passages: The passages to read, or None to read the query's own facts.

        Raises:
            ServiceError: the network is needed and cannot be loaded.
        """
        if passages is None:
            return read_lexically(query, None, self.eagerness)
        analysis = analyse(plain_question(query))
        pages = views(analysis, passages)
        if analysis.kind in COMPUTED:
            return read_views(analysis, pages, passages, self.eagerness, lambda asked: self.read(asked, passages))
        cell = by_table(analysis, pages, passages)
        if cell is not None:
            return cell
        sure = by_pattern(analysis, pages, self.eagerness)
        if sure is not None and not _objected(analysis, pages, sure):
            return _doubted(sure, analysis, pages, by_pattern=True)
        model = self.model
        found = candidates(model, analysis, passages, pages)
        found = [each for each in found if not _elsewhere(analysis, passages[each.span.passage], each.span.start)]
        reading = answer(supported(found, analysis, pages), model.calibration, passages, self.eagerness, self.least)
        return _doubted(reading, analysis, pages)

    def evidence(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """Rate how likely each passage answers the question; for gates and rerankers.

        Args:
            query: The question.
            passages: The passages to rate.

        Returns:
            A probability for each passage, in their order; 0 where nothing in it may be an answer.

        Raises:
            ServiceError: the network cannot be loaded.
        """
        model, analysis = self.model, analyse(plain_question(query))
        pages = views(analysis, passages)
        found = candidates(model, analysis, passages, pages, by_pattern(analysis, pages))
        best = [0.0] * len(passages)
        for each in found:
            likely = _probability(each.score(model.calibration), model.calibration)
            best[each.span.passage] = max(best[each.span.passage], likely)
        return best

    @property
    def model(self) -> SpanReader:
        with self._loading:  # questions of one moment are read in threads
            if self.reader is None:
                self.reader = load(self.folder)
            return self.reader


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer and what speaks for it, the latter two in [0, 1]."""

    span: MarkedSpan
    text: str
    about: float  # how surely the passage is about the question's subject
    agrees: float  # how sure the lexical reader is of the same answer

    def score(self, calibration: Calibration) -> float:
        return self.span.margin + calibration.about * self.about + calibration.agrees * self.agrees


def answer(
    found: Sequence[Candidate],
    calibration: Calibration,
    passages: Sequence[Passage],
    eagerness: float = 1.0,
    least: float | None = None,
) -> Reading:
    """Return the best candidate as a reading, or unknown where it is not likely enough.

    Args:
        found: Candidates in any order; none makes the answer unknown.
        calibration: Turns scores into probabilities, and holds the threshold.
        passages: The passages that the candidates' spans count in.
        eagerness: Factor on the probability before it is held against the threshold.
        least: Another threshold; the lower of both counts.
    """
    if not found:
        return Reading(UNKNOWN, False, (), "there is nothing to read", 0.0)
    best = ordered(found, calibration)[0]
    confidence = round(_probability(best.score(calibration), calibration), 4)
    threshold = calibration.threshold if least is None else min(least, calibration.threshold)
    if confidence * eagerness < threshold:
        return Reading(UNKNOWN, False, (), "no passage answers the question well enough", confidence)
    place = best.span.passage
    return Reading(best.text, True, (place,), _because(passages[place].text, best.span), confidence)


def supported(found: Sequence[Candidate], analysis: QuestionAnalysis, pages: Sequence[View]) -> list[Candidate]:
    """Return the candidates whose sentence is not about another thing than the question
    (`pyrag.embedded.reader.neural.objections`).

    Args:
        found: The candidates; their order is kept.
        analysis: The question.
        pages: A view of each passage, in the order that the candidates' spans count in.
    """
    return [each for each in found if not objection(analysis, pages[each.span.passage], each.text)]


def _elsewhere(analysis: QuestionAnalysis, passage: Passage, start: int) -> bool:
    return other_row(analysis, passage, start) or other_label(analysis, passage, start)


def _doubted(
    reading: Reading, analysis: QuestionAnalysis, pages: Sequence[View], *, by_pattern: bool = False
) -> Reading:
    """Return the reading, as a weak one if there is a doubt about it."""
    confidence = reading.confidence or 0.0
    if not reading.known or confidence <= WEAK:
        return reading
    why = next(
        (why for at in reading.citations if (why := doubt(analysis, pages[at], reading.text, by_pattern=by_pattern))),
        "",
    )
    return replace(reading, confidence=WEAK, rationale=f"{reading.rationale}; but {why}") if why else reading


def _objected(analysis: QuestionAnalysis, pages: Sequence[View], said: Reading) -> bool:
    return any(objection(analysis, pages[place], said.text) for place in said.citations)


def ordered(found: Sequence[Candidate], calibration: Calibration) -> list[Candidate]:
    """Return the candidates best first; of equals, those of earlier passages.

    Args:
        found: Candidates in any order.
        calibration: Weighs what speaks for a candidate besides its margin.
    """
    return sorted(found, key=lambda each: (-each.score(calibration), each.span.passage, each.span.start))


def candidates(
    model: SpanReader,
    analysis: QuestionAnalysis,
    passages: Sequence[Passage],
    pages: Sequence[View],
    said: Reading | None = None,
) -> list[Candidate]:
    """Return the network's marks in each passage, and the finding of a pattern where the network missed it.

    Args:
        model: Marks the answers.
        analysis: The question.
        passages: The passages to read.
        pages: A view of each passage, in the order of `passages`.
        said: A pattern's answer; candidates of the same text gain by its confidence.
    """
    spans = model.spans(analysis.question, [(passage.title, passage.text) for passage in passages])
    about = [page.about for page in pages]
    sure = (said.confidence or 0.0) if said is not None and said.known else 0.0
    found = []
    for span in spans:
        text = trim(passages[span.passage].text, span.start, span.end, analysis)
        if text:
            same = said is not None and sure > 0 and fold(text) == fold(said.text)
            found.append(Candidate(span, text, about[span.passage], sure if same else 0.0))
    if said is not None and sure > 0 and not any(each.agrees for each in found):
        found += _missed(said, spans, passages, about, sure)
    return found


def _missed(
    said: Reading, spans: Sequence[MarkedSpan], passages: Sequence[Passage], about: Sequence[float], sure: float
) -> list[Candidate]:
    """The lexical answer as a candidate, with the least margin that the network gave in its passage."""
    if not said.citations:
        return []
    place = said.citations[0]
    start = passages[place].text.find(said.text)
    margin = min((span.margin for span in spans if span.passage == place), default=0.0)
    if start < 0:
        return []
    return [Candidate(MarkedSpan(place, start, start + len(said.text), margin), said.text, about[place], sure)]


def _probability(score: float, calibration: Calibration) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, calibration.scale * score + calibration.offset))))


def _because(text: str, span: MarkedSpan) -> str:
    around = text[max(0, span.start - 60) : span.end + 60].strip()
    return f"“{around}” of [{span.passage + 1}] reads like the answer"

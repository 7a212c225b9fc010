"""From token scores to an answer: best spans, trimmed by the kind of answer the question asks for. Pure and small.

The network marks the right place; its edges are at times off. A date is completed ("5 June" to "5 June 1961") or cut
out of "5 June 1961 – 3 May 2010" by what is asked, a name loses its quotes, a birthplace what lies around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.neural.windows import Window
from pyrag.embedded.reader.patterns import DATE

ANSWER_TOKENS = 20
_BEST = 12  # starts and ends looked at
_YEAR = re.compile(r"\b\d{3,4}\b")
_WHOLE_DATE = re.compile(rf"{DATE.pattern}|\b\d{{3,4}}\b(?:\s?(?:BCE?|CE|AD))?")


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """A candidate answer: characters of a passage's text, and by how much its score exceeds that of "no answer"."""

    passage: int
    start: int
    end: int
    margin: float


def best_spans(window: Window, scores: Sequence[Sequence[float]], count: int = 3) -> list[MarkedSpan]:
    """Return the best spans of a window that do not overlap, at most `ANSWER_TOKENS` tokens long each.

    Args:
        window: The input that was scored.
        scores: A start and an end score for each token of the input; those of token 0 stand for "no answer".
        count: Most spans to return.

    Returns:
        Spans in characters of the passage's text, best first.
    """
    null = scores[0][0] + scores[0][1]
    places = range(len(window.offsets))
    starts = _top(places, [scores[window.first + at][0] for at in places])
    ends = _top(places, [scores[window.first + at][1] for at in places])
    found = [
        (scores[window.first + start][0] + scores[window.first + end][1], -start, -end)
        for start in starts
        for end in ends
        if start <= end < start + ANSWER_TOKENS
    ]
    chosen: list[tuple[float, int, int]] = []
    for score, start, end in sorted(found, reverse=True):
        if len(chosen) == count:
            break
        if not any(-start <= -other[2] and -other[1] <= -end for other in chosen):
            chosen.append((score, start, end))
    return [
        MarkedSpan(window.passage, window.offsets[-start][0], window.offsets[-end][1], score - null)
        for score, start, end in chosen
    ]


def _top(places: Iterable[int], scores: Sequence[float]) -> list[int]:
    return sorted(places, key=lambda at: -scores[at])[:_BEST]


def trim(text: str, start: int, end: int, analysis: QuestionAnalysis) -> str:
    """Return the answer at these characters, its edges put right for the kind of answer wanted.

    Args:
        text: The whole text of the passage; a date may be completed from it.
        start: First character of the answer.
        end: Character after its last.
        analysis: The question.
    """
    if analysis.kind == "date":
        found = _date(text, start, end, analysis)
        if found:
            return found
    answer = _bare(text[start:end])
    return answer.partition(",")[0].strip() if analysis.relation in ("place of birth", "place of death") else answer


def _bare(answer: str) -> str:
    """Without what surrounds a name in running text: quotes, brackets, commas, a possessive."""
    answer = re.sub(r"\s+", " ", answer).strip(' ,;:"“”‘’`')
    answer = re.sub(r"(?<=[^\W\d_]{2})['’]s?$", "", answer) if re.search(r"['’]s$", answer) else answer
    if answer.count("(") != answer.count(")"):
        answer = answer.strip("() ")
    return answer.rstrip(".") if re.search(r"[a-z0-9)]{3}\.$", answer) else answer


def _date(text: str, start: int, end: int, analysis: QuestionAnalysis) -> str:
    """The date that the span touches; of "born – died", the one asked for."""
    dates = _WHOLE_DATE.finditer(text, max(0, start - 24), min(len(text), end + 60))
    touched = [match for match in dates if match.start() < end and match.end() > start]
    if not touched:
        return ""
    match = touched[-1 if analysis.relation == "date of death" else 0]
    year = _YEAR.search(match.group()) if analysis.year_only else None
    return year.group() if year else match.group().strip()

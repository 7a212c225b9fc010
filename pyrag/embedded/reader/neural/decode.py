"""From token scores to an answer: best spans, trimmed by the kind of answer the question asks for. Pure and small.

The network marks the right place; its edges are at times off. A date is completed ("5 June" to "5 June 1961") or cut
out of "5 June 1961 – 3 May 2010" by what is asked, a nationality loses its noun, a name its quotes and description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyrag.embedded.lexicon import COUNTRIES, PEOPLES, ROLES
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.neural.windows import Window
from pyrag.embedded.reader.spans import DATE
from pyrag_helpers.measures.amounts import whole_amount

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
    if text[start:end].strip().isascii() and _HOW.match(analysis.question) and text[start:end].strip()[-1:].isdigit():
        start, end = whole_amount(text, start, end)
    answer = _bare(_SENTENCE_END.split(text[start:end])[0])
    if analysis.kind in ("nationality", "country"):
        return _nation(answer)
    if analysis.relation in ("place of birth", "place of death"):
        return answer.partition(",")[0].strip()
    if analysis.kind == "person":
        return _person(answer)
    if analysis.wh == "where":
        dated = _DATED_PLACE.search(answer)
        return dated["place"] if dated else _AT.sub("", answer)
    return answer


_HOW = re.compile(
    r"How (?:fast|heavy|hot|cold|warm|deep|wide|tall|high|long|thick|far|large|big|loud)\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[a-z\d]{3})[.!?]\s+(?=[A-Z])|(?<=\.\d)\.\s+(?=[A-Z])|\n\s*\n")
_DATED_PLACE = re.compile(r"\bin \d{4}\b.*\b(?:in|at) (?P<place>[^a-z\s].*)$")  # "Ida Lind in 2019 as a trial in Ghent"
_AT = re.compile(r"^(?:in|at|on) (?=the |an? |[^a-z\s])")


def _bare(answer: str) -> str:
    """Without what surrounds a name in running text: quotes, brackets, commas, a possessive."""
    answer = re.sub(r"\s+", " ", answer).strip(' ,;:"“”‘’`')
    answer = re.sub(r"(?<=[^\W\d_]{2})['’]s?$", "", answer) if re.search(r"['’]s$", answer) else answer
    if answer.count("(") != answer.count(")"):
        answer = answer.strip("() ")
    return answer.rstrip(".") if re.search(r"[a-z0-9)]{3}\.$", answer) else answer


def _date(text: str, start: int, end: int, analysis: QuestionAnalysis) -> str:
    """The date that the span touches; of "born – died", the one asked for."""
    low, high = _bracket(text, start, end)
    dates = list(_WHOLE_DATE.finditer(text, low, high))
    touched = [match for match in dates if match.start() < end and match.end() > start]
    if not touched:
        return ""
    match = touched[0]
    if analysis.relation == "date of death" and (len(touched) > 1 or _before_range(text, match)):
        later = [each for each in dates if each.start() > match.start()]
        match = touched[-1] if len(touched) > 1 else later[0] if later else match
    year = _YEAR.search(match.group()) if analysis.year_only else None
    return year.group() if year else match.group().strip()


def _bracket(text: str, start: int, end: int) -> tuple[int, int]:
    """The characters of the sentence part in which a date around the span may lie."""
    return max(0, start - 24), min(len(text), end + 60)


def _before_range(text: str, match: re.Match[str]) -> bool:
    """Return whether the date opens "born – died"."""
    return bool(re.match(r"[^()]{0,40}?\s?[–—-]\s?[^()]*\)", text[match.end() : match.end() + 100]))


def _nation(answer: str) -> str:
    """The country or people named last: "Slovak" of "male Slovak racewalker", "Iran" of "Jask County, Iran"."""
    words = re.findall(r"[\w'’.-]+", answer)
    runs = [" ".join(words[at : at + size]) for size in (3, 2, 1) for at in range(len(words) - size, -1, -1)]
    named = [run for run in runs if run in PEOPLES or run in COUNTRIES]
    return named[0] if named and answer.removeprefix("the ") not in COUNTRIES else answer


def _person(answer: str) -> str:
    """Without a description in front: "American rapper Jay-Z" is "Jay-Z"."""
    words = answer.split()
    while len(words) > 1 and (words[0] in PEOPLES or words[0].lower() in ROLES):
        words = words[1:]
    return " ".join(words)

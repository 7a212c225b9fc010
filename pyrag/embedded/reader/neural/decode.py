"""Answers from the scores of tokens: the best spans, with edges corrected for the kind of answer.

The network finds the right place, but its edges may be off. A date is completed ("5 June" to "5 June 1961"), or cut
out of "5 June 1961 – 3 May 2010". E-mail addresses and links are never cut. A nationality loses its noun, and a name
its quotes and description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyrag.embedded.lexicon import any_of
from pyrag.embedded.lexicon.measures import MEASURED
from pyrag.embedded.lexicon.people import ROLES
from pyrag.embedded.lexicon.regions import COUNTRIES, PEOPLES
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.neural.windows import Window
from pyrag.embedded.reader.spans import DATE
from pyrag_helpers.measures.amounts import whole_amount

ANSWER_TOKENS = 20
_BEST = 12  # starts and ends that are tried
_YEAR = re.compile(r"\b\d{3,4}\b")
_FIGURES = r"\b\d{1,2}[./]\d{1,2}[./]\d{4}\b"  # of a date
_WHOLE_DATE = re.compile(rf"{_FIGURES}|{DATE.pattern}|\b\d{{3,4}}\b(?:\s?(?:BCE?|CE|AD))?")
_INDIVISIBLE = re.compile(
    r"[\w.+'-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|\bwww\.)[^\s<>\"'()\[\]|]*[^\W_]/?"
    rf"|{_FIGURES}|\b\d{{4}}-\d\d-\d\d\b"
)
_MAX_ADDRESS = 200  # characters on each side of a span
_MAX_SPAN = 1000  # characters of a span that may cut an address


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """Span that the network marks as an answer.

    Args:
        passage: Index of the passage.
        start: First character of the answer in the passage's text.
        end: Character after the last one.
        margin: Score minus the score of "no answer".
    """

    passage: int
    start: int
    end: int
    margin: float


def best_spans(window: Window, scores: Sequence[Sequence[float]], count: int = 3) -> list[MarkedSpan]:
    """Return the best spans of a window that do not overlap, each of at most `ANSWER_TOKENS` tokens.

    Args:
        window: Input of the network.
        scores: Start and end score of each token. The scores of token 0 stand for "no answer".
        count: Maximum number of spans.

    Returns:
        Spans of characters in the passage's text, best first.
    """
    no_answer = scores[0][0] + scores[0][1]
    tokens = range(len(window.offsets))
    starts = _top(tokens, [scores[window.first + at][0] for at in tokens])
    ends = _top(tokens, [scores[window.first + at][1] for at in tokens])
    spans = [
        (scores[window.first + start][0] + scores[window.first + end][1], -start, -end)
        for start in starts
        for end in ends
        if start <= end < start + ANSWER_TOKENS
    ]
    chosen: list[tuple[float, int, int]] = []
    for score, start, end in sorted(spans, reverse=True):
        if len(chosen) == count:
            break
        if not any(-start <= -other[2] and -other[1] <= -end for other in chosen):
            chosen.append((score, start, end))
    return [
        MarkedSpan(window.passage, window.offsets[-start][0], window.offsets[-end][1], score - no_answer)
        for score, start, end in chosen
    ]


def _top(tokens: Iterable[int], scores: Sequence[float]) -> list[int]:
    """Return the tokens with the highest scores, best first."""
    return sorted(tokens, key=lambda at: -scores[at])[:_BEST]


def trim(text: str, start: int, end: int, analysis: QuestionAnalysis) -> str:
    """Return the answer in a span, with its edges corrected for the kind of answer.

    Args:
        text: Text of the passage, from which a date may be completed.
        start: First character of the span.
        end: Character after the last one.
        analysis: Analysis of the question.
    """
    if analysis.kind == "date":
        date = _date(text, start, end, analysis)
        if date:
            return date
    start, end = _whole_address(text, start, end)
    if text[start:end].strip().isascii() and _HOW.match(analysis.question) and text[start:end].strip()[-1:].isdigit():
        start, end = whole_amount(text, start, end)
    answer = _without_marks(_SENTENCE_END.split(text[start:end])[0])
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


def _whole_address(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span that contains each e-mail address, link and date in figures as a whole that it overlaps."""
    if end - start > _MAX_SPAN:
        return start, end
    low, high = max(0, start - _MAX_ADDRESS), end + _MAX_ADDRESS
    matches = (match.span() for match in _INDIVISIBLE.finditer(text, low, high))
    spans = [(start, end), *(span for span in matches if span[0] < end and span[1] > start)]
    return min(first for first, _ in spans), max(last for _, last in spans)


_HOW = re.compile(rf"How {any_of(MEASURED)}\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[a-z\d]{3})[.!?]\s+(?=[A-Z])|(?<=\.\d)\.\s+(?=[A-Z])|\n\s*\n")
_DATED_PLACE = re.compile(r"\bin \d{4}\b.*\b(?:in|at) (?P<place>[^a-z\s].*)$")  # "Ida Lind in 2019 as a trial in Ghent"
_AT = re.compile(r"^(?:in|at|on) (?=the |an? |[^a-z\s])")


def _without_marks(answer: str) -> str:
    """Return an answer without surrounding quotes, brackets and commas, and without a possessive."""
    answer = re.sub(r"\s+", " ", answer).strip(' ,;:"“”‘’`')
    answer = re.sub(r"(?<=[^\W\d_]{2})['’]s?$", "", answer) if re.search(r"['’]s$", answer) else answer
    if answer.count("(") != answer.count(")"):
        answer = answer.strip("() ")
    return answer.rstrip(".") if re.search(r"[a-z0-9)]{3}\.$", answer) else answer


def _date(text: str, start: int, end: int, analysis: QuestionAnalysis) -> str:
    """Return the date that overlaps a span; for "born – died", return the date that the question asks for."""
    dates = list(_WHOLE_DATE.finditer(text, max(0, start - 24), min(len(text), end + 60)))
    overlapping = [match for match in dates if match.start() < end and match.end() > start]
    if not overlapping:
        return ""
    match = overlapping[0]
    if analysis.relation == "date of death" and (len(overlapping) > 1 or _opens_range(text, match)):
        later = [date for date in dates if date.start() > match.start()]
        match = overlapping[-1] if len(overlapping) > 1 else later[0] if later else match
    year = _YEAR.search(match.group()) if analysis.year_only else None
    return year.group() if year else match.group().strip()


def _opens_range(text: str, match: re.Match[str]) -> bool:
    """Return whether a date is the first of two in brackets: "born – died"."""
    return bool(re.match(r"[^()]{0,40}?\s?[–—-]\s?[^()]*\)", text[match.end() : match.end() + 100]))


def _nation(answer: str) -> str:
    """Return the last country or people in an answer, or the answer if it names none.

    For example, "Slovak" for "male Slovak racewalker" and "Iran" for "Jask County, Iran".
    """
    words = re.findall(r"[\w'’.-]+", answer)
    runs = [" ".join(words[at : at + size]) for size in (3, 2, 1) for at in range(len(words) - size, -1, -1)]
    nations = [run for run in runs if run in PEOPLES or run in COUNTRIES]
    return nations[0] if nations and answer.removeprefix("the ") not in COUNTRIES else answer


def _person(answer: str) -> str:
    """Return a name without nationality and role: "Jay-Z" for "American rapper Jay-Z"."""
    words = answer.split()
    while len(words) > 1 and (words[0] in PEOPLES or words[0].lower() in ROLES):
        words = words[1:]
    return " ".join(words)

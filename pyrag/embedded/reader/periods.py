"""Periods in which a person was active, reigned or held an office: "1914–1935".

Periods consist only of years, since programs compare and intersect them by year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.patterns import ALL_DATES
from pyrag.embedded.reader.people import PageFact
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, content_stem, content_stems, fold

_DATE = rf"(?:{ALL_DATES.pattern})"
_FROM_TO = re.compile(
    rf"\b(?:from|between)\s+(?P<start>{_DATE})\s*(?:to|until|till|through|and|[–—-])\s*"
    rf"(?:(?:his|her|its|their) (?:death|retirement|abdication|resignation)[^.;\d]{{0,30}}?)?"
    rf"(?P<end>{_DATE}|\d{{2}}\b|the present|present|today)"
)
_DASH = re.compile(r"\b(?P<start>[12]\d{3})\s*[–—-]\s*(?P<end>[12]?\d?\d{2}\b|present)")
_SINCE = re.compile(rf"\b(?:since|from)\s+(?P<start>{_DATE})(?!\s*(?:to|until|till|[–—-]))")
_YEAR = re.compile(r"\d{3,4}")
_DOING = re.compile(
    r"\b(?:active|career|reign\w*|rul(?:ed?|er|ing)|king|queen|emperor|empress|pope|president|minister|chancellor"
    r"|governor|mayor|monarch|office|power|throne|serv(?:ed|ing)|term|played|worked|perform(?:ed|ing))\b",
    re.IGNORECASE,
)
_LIFE = re.compile(r"^[^()]{0,60}\([^()]*$")


def period(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the periods that sentences state for an office or activity.

    The dates of a life, in brackets after a name, do not count.

    Args:
        page: Page to read.
        analysis: Analysis of the question. A period is stronger if its clause shares an office or activity with it.
    """
    question_stems = content_stems(analysis.question)
    for sentence in page.sentences:
        for pattern, strength in ((_FROM_TO, 1.0), (_DASH, 0.9), (_SINCE, 0.6)):
            for match in pattern.finditer(sentence.text):
                fit = _fit(sentence, match, question_stems)
                text = _years(match)
                if text and fit:
                    yield PageFact(text, strength * fit - 0.03 * min(sentence.index, 6), sentence.index, match.group())


def _fit(sentence: Sentence, match: re.Match[str], question_stems: set[str]) -> float:
    """Return the certainty that a period belongs to the question's office or activity, judged by the nearby words.

    It is 0 if there is no office or activity near the period.
    """
    clause = re.split(r"[.;]", sentence.text[: match.start()])[-1][-90:]
    activities = _DOING.findall(f"{clause} {sentence.text[match.end() : match.end() + 25]}")
    if not activities or (
        sentence.index == 0 and _LIFE.match(sentence.text[: match.start()]) and "reign" not in clause
    ):
        return 0.0
    return 1.0 if any(content_stem(fold(word)) in question_stems for word in activities) else 0.75


def _years(match: re.Match[str]) -> str:
    """Return a period as "1914–1935" or "1914–present", or "" if it ends before it starts."""
    start, end = _YEAR.search(match["start"]), _YEAR.search(match.groupdict().get("end") or "")
    if start is None:
        return ""
    if end is None:
        short = re.fullmatch(r"\d{2}", (match.groupdict().get("end") or "").strip())
        return f"{start.group()}–{start.group()[:-2]}{short.group()}" if short else f"{start.group()}–present"
    last = end.group() if len(end.group()) >= len(start.group()) else start.group()[: -len(end.group())] + end.group()
    return f"{start.group()}–{last}" if int(last) >= int(start.group()) else ""

"""Years, versions and other numbers that distinguish things with the same name, in question and passage."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from functools import lru_cache

from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, fold, without_quotations
from pyrag.trace.sentences import UPPER_CLASS

_YEAR = re.compile(r"(?<![\d.,/-])(?:1[5-9]|20)\d{2}(?![\d]|[.,]\d)(?!s\b)")
_LIMITED = re.compile(
    r"\b(?:before|after|since|until|till|by|from|between|and|to|than)\s+(?:the year |[A-Z][a-z]+ )?$", re.IGNORECASE
)
_COUNTED_NOUNS = (
    r"version|release|edition|part|chapter|volume|room|line|season|episode|article|section|phase|step|level|floor|route"
    r"|gate|platform|unit|model|draft|revision|sprint|milestone|batch|lot|item|ticket|issue|invoice|order|appendix|figure"
    r"|table|protocol|report|experiment|lesson|exercise|recipe|policy|memo|law|proposal|motion|option|plan|team|group|project|flight|bus|train|warehouse|building|zone|district|paragraph|test|act|stage|round|day|week|quarter|grade|class|flat|house|no\.|number|question|task|rule|v"
)
_NUMBERED = re.compile(
    rf"(?P<noun>\b(?:{_COUNTED_NOUNS})|(?-i:[{UPPER_CLASS}][\w'’-]*[^\W\d_.]))[ -]?(?P<number>\d+(?:[.-]\d+)*[a-z]?)(?![\w%,]|:\d)"
    r"(?! ?(?:kg|g|km|m|cm|mm|euros?|dollars?|percent|people|million|billion|thousand|years?|hours?|minutes?|days?)\b)",
    re.IGNORECASE,
)
_MONTH = re.compile(
    rf"(?:{MONTHS}|in|on|of|the|by|from)",
    re.I,
)


@lru_cache(maxsize=4096)
def _numbered(text: str) -> dict[str, set[str]]:
    """Return the numbers after each name or noun in a text: "Lodestar 2024", "version 3.0"."""
    numbers: dict[str, set[str]] = {}
    for match in _NUMBERED.finditer(text):
        noun = fold(match["noun"])
        if noun and not _MONTH.fullmatch(noun):
            numbers.setdefault("version" if noun == "v" else noun, set()).add(match["number"].lower())
    return numbers


def other_number(question: str, page: View, sentence: Sentence) -> str:
    """Return a reason if the sentence or page is about a thing with the same name but another number, else "".

    Args:
        question: Question to answer, as in "What does version 3 cost?".
        page: Page of the sentence.
        sentence: Sentence of the answer.
    """
    for noun, numbers in _numbered(question).items():
        for text in (sentence.text, page.title, *(line.text for line in page.sentences[: sentence.index][::-1])):
            stated = _numbered(text).get(noun, set())
            if _agree(numbers, stated):
                break
            if stated:
                return f"the passage is about {noun} {min(stated)}"
    return ""


def _agree(first: set[str], second: set[str]) -> bool:
    """Return whether two sets share a number. "4.2" counts as equal to "4.2.1"."""
    return any(a == b or a.startswith(f"{b}.") or b.startswith(f"{a}.") for a in first for b in second)


def other_year(question: str, page: View, sentence: Sentence) -> str:
    """Return a reason if the evidence is from another year than the question, else "".

    Args:
        question: Question to answer. Years after words such as "before" and "since" do not count.
        page: Page of the sentence.
        sentence: Sentence of the answer.
    """
    unquoted = without_quotations(question)
    asked_years = {match[0] for match in _YEAR.finditer(unquoted) if not _LIMITED.search(unquoted[: match.start()])}
    if not asked_years:
        return ""
    stated = set(_YEAR.findall(sentence.text)) or set(_YEAR.findall(page.title))
    if asked_years & stated:
        return ""
    if stated and _spans(asked_years, sentence.text):
        return ""
    if stated:
        return f"the evidence is from {min(stated)}"
    whole_page = " ".join((page.title, *(line.text for line in page.sentences)))
    page_years = set(_YEAR.findall(whole_page))
    return "" if asked_years & page_years else f"the passage does not name {min(asked_years)}"


def _spans(years: set[str], text: str) -> bool:
    """Return whether a period in a text, as in "1990 to 1995" or "since 1990", includes the earliest of the years."""
    periods = re.findall(
        r"((?:1[5-9]|20)\d{2})\s*(?:[–—-]|to|until|and)\s*(?:[A-Z]?[a-z]* )?((?:1[5-9]|20)\d{2})", text
    )
    open_periods = re.findall(r"\bsince (?:[A-Z][a-z]+ )?((?:1[5-9]|20)\d{2})", text)
    year = int(min(years))
    return any(int(start) <= year <= int(end) for start, end in periods) or any(
        int(start) <= year for start in open_periods
    )

"""Years, versions and other numbers that tell one thing from another: those of a question against those of a passage."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from functools import lru_cache

from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, fold
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
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|in|on|of|the|by|from)",
    re.I,
)


@lru_cache(maxsize=4096)
def _numbered(text: str) -> dict[str, set[str]]:
    """The numbers that stand behind each name or noun: "Lodestar 2024", "version 3.0"."""
    found: dict[str, set[str]] = {}
    for match in _NUMBERED.finditer(text):
        noun = fold(match["noun"])
        if noun and not _MONTH.fullmatch(noun):
            found.setdefault("version" if noun == "v" else noun, set()).add(match["number"].lower())
    return found


def other_number(question: str, page: View, sentence: Sentence) -> str:
    """Return which other thing of the same name a sentence or its page is about, or "".

    Args:
        question: The question.
        page: The passage.
        sentence: The sentence of the answer.
    """
    asked = _numbered(question)
    for noun, numbers in asked.items():
        for text in (sentence.text, page.title, *(each.text for each in page.sentences[: sentence.index][::-1])):
            there = _numbered(text).get(noun, set())
            if _agree(numbers, there):
                break
            if there:
                return f"the passage is about {noun} {min(there)}"
    return ""


def _agree(asked: set[str], there: set[str]) -> bool:
    """ "4.2" is meant by "4.2.1" and by "4"."""
    return any(a == b or a.startswith(f"{b}.") or b.startswith(f"{a}.") for a in asked for b in there)


def other_year(question: str, page: View, sentence: Sentence) -> str:
    """Return the year that the evidence is from, if the question names another one that the passage does not have.

    Args:
        question: The question.
        page: The passage.
        sentence: The sentence of the answer.
    """
    quoteless = re.sub(r"[\"“][^\"”]*[\"”]", " ", question)
    asked = {match[0] for match in _YEAR.finditer(quoteless) if not _LIMITED.search(quoteless[: match.start()])}
    if not asked:
        return ""
    near = set(_YEAR.findall(sentence.text)) or set(_YEAR.findall(page.title))
    if asked & near:
        return ""
    if near and _spans(asked, sentence.text):
        return ""
    if near:
        return f"the evidence is from {min(near)}"
    before = " ".join((page.title, *(each.text for each in page.sentences)))
    years = set(_YEAR.findall(before))
    return "" if asked & years else f"the passage does not name {min(asked)}"


def _spans(asked: set[str], text: str) -> bool:
    """Return whether a period of the sentence holds the year."""
    periods = re.findall(
        r"((?:1[5-9]|20)\d{2})\s*(?:[–—-]|to|until|and)\s*(?:[A-Z]?[a-z]* )?((?:1[5-9]|20)\d{2})", text
    )
    open_end = re.findall(r"\bsince (?:[A-Z][a-z]+ )?((?:1[5-9]|20)\d{2})", text)
    year = int(min(asked))
    return any(int(start) <= year <= int(end) for start, end in periods) or any(
        int(start) <= year for start in open_end
    )

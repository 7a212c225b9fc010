"""Checks of an answer's form: an address, a code, an end, an age or a multiple may be asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.embedded.lexicon.verbs import is_base, is_finite
from pyrag.embedded.lexicon.word_classes import ADVERBS, AUXILIARIES, CONJUNCTIONS, DETERMINERS, PREPOSITIONS

_FORMS = (  # what a question asks for, what its answer contains, and the name of the form
    (re.compile(r"\be-?mail(?: address(?:es)?)?\b", re.I), re.compile(r"\w@\w"), "an e-mail address"),
    (
        re.compile(
            r"\b(?:(?:tele)?phone|mobile|fax|account|serial|order|invoice|policy|room|house|flight|part|ticket)"
            r" (?:numbers?|extension)\b|\b(?:extension|post ?code|zip code|IBAN)\b",
            re.I,
        ),
        re.compile(r"\d"),
        "a number",
    ),
    (re.compile(r"\b(?:web ?site|web address|url|link)\b", re.I), re.compile(r"\w\.\w"), "a web address"),
)
_ASKS_FOR = re.compile(
    r"(?:what|which)(?:'s| is| are| was| were)? (?:the |my |our )?(?P<before>[\w' -]*?)"
    r"(?= of | for | does | do | did |\?|$)",
    re.I,
)
_POINT = re.compile(
    r"(?:until|till|since|by|from) (?:when|what (?:day|date|year|month|time))\b|when\b|at what time\b", re.I
)
_DURATION = re.compile(
    r"(?:(?:about|over|nearly|up to|for) )?(?:\d[\d.,]*|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
    r" (?:and a half )?(?:minutes?|hours?|days?|weeks?|months?|years?|decades?)",
    re.I,
)
_AGE = re.compile(r"\bhow old\b.*\b(?:when|at the time|in \d{4}|on (?:the )?\d)|\bat what age\b", re.I)
_DATE = re.compile(r"\b1\d{3}\b|\b20\d\d\b")
_MULTIPLE = re.compile(
    r"\bhow (?:much|many|long)\b.*?"
    r"\b(?P<number>\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|(?:half )?a dozen)"
    r" (?:[a-z-]+ )?[a-z]+s\b.*\b(?:costs?|pay|paid|charged?|weigh|need|take|last|worth|earn|make|use)\b",
    re.I,
)
_FIGURES = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "twelve": "12", "a dozen": "12", "half a dozen": "6",
}  # fmt: skip
_BARE_CLAUSE = re.compile(
    r"\bthe (?=(?:[a-z-]+ )?(?!same\b|other\b|following\b)(?P<noun>[a-z-]+) (?:the|my|our|this) [a-z])", re.I
)
_NO_NOUNS = PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | ADVERBS | DETERMINERS


def other_form(question: str, evidence: Sequence[str], answer: str) -> str:
    """Return a reason if an answer does not have the form that its question asks for, else "".

    Args:
        question: The question.
        evidence: Parts of the passage that contain the answer.
        answer: The answer.
    """
    asked = _ASKS_FOR.match(question)
    before = asked["before"] if asked else ""
    for noun, form, name in _FORMS:
        if noun.search(before) and not form.search(answer):
            return f"{name} is asked for"
    if _POINT.match(question) and _DURATION.fullmatch(answer.strip(" .")):
        return "a date or a time is asked for, and this is a duration"
    if _AGE.search(question) and _DATE.search(answer):
        return "an age is asked for, and this is a date"
    if any(map(_is_described, _BARE_CLAUSE.finditer(question))):
        return "the question describes a thing by a clause that has to be looked up first"
    return _single(question, evidence, answer)


def _is_described(match: re.Match[str]) -> bool:
    """Return whether a noun is followed by a clause without a pronoun: "the person the recipe comes from"."""
    noun = match["noun"].lower()
    return noun not in _NO_NOUNS and not noun.endswith("ing") and not is_finite(noun) and not is_base(noun)


def _single(question: str, evidence: Sequence[str], answer: str) -> str:
    """Return a reason if an amount may be for one thing although the question names a number of them."""
    multiple = _MULTIPLE.search(question)
    if multiple is None or not re.search(r"\d", answer):
        return ""
    number = multiple["number"].lower()
    wanted = rf"\b(?:{re.escape(number)}|{_FIGURES.get(number, re.escape(number))}|all|total|together|whole)\b"
    return "" if any(re.search(wanted, piece, re.I) for piece in evidence) else f"the amount for {number} is asked for"

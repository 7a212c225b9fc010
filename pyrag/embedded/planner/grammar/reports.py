"""Questions that name reports or several conditions, whose statements are searched for one by one.

"Who, according to the Ashton Post, founded a guild and, as reported by Kell News, lost it?" names two reports. The
module knows how reports are named, but no publications.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from pyrag.embedded.lexicon import any_of
from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.lexicon.verbs import is_participle, is_past, is_present
from pyrag.embedded.lexicon.word_classes import BE, DO, HAVE, QUESTION_WORDS
from pyrag.embedded.planner.meaning import Entity, Gather, Meaning

_NAME = (
    rf"(?!(?:(?:{MONTHS})\b|\d|(?:Who|What|Which|When|Where|Does|Did|Was|Is|Has|Have|Do|Are|Between|After|Considering)\b))"
    r"(?:[Tt]he )?[A-Z0-9][\w.'&-]*(?: (?:(?:of|the|for) )?[A-Z0-9&|][\w.'&-]*)*"
)
_NAMES = rf"{_NAME}(?:(?:, {_NAME})*,? and {_NAME})?"
_REPORT = r"(?:article|report|review|piece|story|stories|coverage|column|interview|feature|reporting|publication)s?"
_REPORTING_VERB = (
    r"(?:reported|described|discussed|featured|covered|mentioned|published|highlighted|cited|noted|identified|quoted"
    r"|portrayed|profiled|stated|detailed|recognized|reviewed|suggested|claimed|said)"
)
_NAMED = re.compile(
    rf"\b(?:according to|(?:as )?{_REPORTING_VERB} (?:[a-z]+ )?(?:by|in)|{_REPORT} (?:by|from|in|of))"
    rf" (?:(?:an?|the|both|one|another) )?(?:[a-z]+ )?(?:{_REPORT} (?:by|from|in|on) )?(?P<by>{_NAMES})"
    rf"|\b(?P<of>{_NAMES})(?:'s)? (?:[a-z]+ )?{_REPORT}\b"
    rf"|\b(?P<bare>(?:the|an|one|another) {_REPORT}) (?:on|about|of|that|which|discussing)\b"
)
_JOINING = r"(?:and|but|while|whereas|or|than|with|versus|before|after|to)\b(?: (?:also|then)\b)?"
_LINK = re.compile(rf",? {_JOINING}|[,;]")
_EDGE = re.compile(rf"^(?:{_JOINING} ?|[ ,])+|(?: (?:in|by|on|the|an?|and))+$")


def parse_evidence(question: str) -> Meaning | None:
    """Return a reading that searches for each statement of each named report; None for fewer than two statements."""
    reports = _reports(question)
    cuts = [_between(question, first, second) for first, second in pairwise(reports)]
    ends = pairwise([0, *cuts, len(question)])
    statements = [
        _EDGE.sub("", claim.strip(" ,;?."))
        for (start, end), match in zip(ends, reports, strict=False)
        for part in _each_source(question, start, end, match)
        for claim in _claims(part, asked=bool(_ASKS.match(question)))
    ]
    return _gathered(statements)


def parse_conditions(question: str) -> Meaning | None:
    """Return a reading that searches for each condition of a question; None for fewer than two conditions.

    "Which actor, born in Alpha, sang in Beta and led Gamma?" has three.
    """
    pieces = [_EDGE.sub("", claim.strip(" ,;?.")) for claim in _claims(question, asked=True)]
    asked = re.search(r"\b(?:who|whom|what|which)\b", pieces[0], re.IGNORECASE)
    all_named = all(re.search(r"(?!^)\b[A-Z0-9]\w", piece) for piece in pieces)
    return _gathered(pieces) if asked and all_named else None


def _gathered(pieces: list[str]) -> Meaning | None:
    """Return a reading that searches for each statement of three or more words; None for fewer than two."""
    statements = [piece for piece in dict.fromkeys(pieces) if len(piece.split()) > 2]
    names = (Entity(piece[:1].lower() + piece[1:] if _ASKS.match(piece) else piece) for piece in statements)
    return Gather(tuple(names)) if len(statements) > 1 else None


def _reports(question: str) -> list[re.Match[str]]:
    """Return the matches that name a report. "The article on Alpha published by Beta" is a single report."""
    reports: list[re.Match[str]] = []
    for match in _NAMED.finditer(question):
        if reports and reports[-1]["bare"] and not _LINK.search(question, reports[-1].end(), match.start() + 1):
            reports.pop()
        reports.append(match)
    return reports


def _between(question: str, first: re.Match[str], second: re.Match[str]) -> int:
    """Return the position where the statement of the second report begins.

    It is the last link (a comma or "and") between the two names, or the first link if the second report's name follows
    its statement.
    """
    links = list(_LINK.finditer(question, first.end(), second.start() + 1))
    if not links:
        return second.start()
    is_named_after = question[second.end() :].lstrip()[:1] in ("", ",", "?") and second[0].startswith(
        ("according", "as ")
    )
    return links[0 if is_named_after else -1].start()


def _each_source(question: str, start: int, end: int, match: re.Match[str]) -> Iterator[str]:
    """Yield the part of a question about a report for each of its sources: "articles from Alpha and Beta" has two."""
    group = "by" if match["by"] else "of"
    names = re.split(r", (?:and )?| and ", match[group]) if match[group] else [""]
    for name in names:
        at, last = match.span(group) if match[group] else (start, start)
        yield question[start:at] + name + question[last:end]


def _claims(text: str, *, asked: bool) -> Iterator[str]:
    """Yield the parts of a text that each state something: "founded a guild | and also lost a ship".

    Args:
        text: The text.
        asked: True if the question comes first and counts as a statement. False if it comes last and does not.
    """
    at = 0
    for link in _NEXT.finditer(text):
        before, word = text[at : link.start()], text[link.end() :].split()[0]
        is_statement = is_past(word) or is_present(word) or is_participle(word) or (asked and _ASKS.match(word))
        statement = before if at else _NAMED.sub("", before)  # "who, according to Alpha" states nothing yet
        if is_statement and len(statement.split()) > 3 and len(text[link.end() :].split()) > 3:
            yield before
            at = link.start()
    yield text[at:]


_NEXT = re.compile(r",? (?:and|but|while)(?: (?:also|then))? (?=[a-z])|, (?=[a-z])")
_ASKS = re.compile(rf"{any_of(QUESTION_WORDS - {'whom'} | BE | HAVE | DO | {'that'})}\b", re.IGNORECASE)

"""The answer to a yes/no question about one thing: by what a sentence states, else by a value that is looked up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.protocol import Reading
from pyrag.embedded.reader.claims.claim import Claim, content_words, read_claim
from pyrag.embedded.reader.claims.lookups import Ask, by_value
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.reader.claims.statements import Ruling, by_statement
from pyrag.embedded.reader.claims.values import same_name
from pyrag.embedded.reader.patterns import COPULA
from pyrag.embedded.reader.view import View

_SURE = 0.5  # a verdict below it is weak, so that a value is looked up as well
_CALLED = 0.6  # "Was Ada Lind a painter?" where her page says that she was a poet
_KIND = re.compile(r"an? (?P<noun>[a-z]+)")


def verdict_on(question: str, pages: Sequence[View], ask: Ask | None = None) -> Reading | None:
    """Return the answer to a yes/no question about one thing; None if nothing decides it.

    Args:
        question: The question.
        pages: The passages, best first.
        ask: Answers a question from the same passages; without it, no value is looked up.
    """
    claim = read_claim(question)
    if claim is None:
        return None
    stated = by_statement(claim, pages)
    if stated is not None and stated.strength >= _SURE:
        return _reading(stated)
    looked_up = by_value(claim, ask) if ask else None
    if looked_up is not None and (looked_up.confidence or 0.0) >= _SURE:
        return looked_up
    called = _called_otherwise(claim, pages)
    if called is not None:
        return _reading(called)
    return _reading(stated) if stated is not None else looked_up


def _reading(verdict: Ruling) -> Reading:
    text = "yes" if verdict.holds else "no"
    return Reading(text, True, (verdict.page,), f"“{verdict.sentence[:120]}”", verdict.strength)


def _called_otherwise(claim: Claim, pages: Sequence[View]) -> Ruling | None:
    """No, if the thing's own page says what it is, and nowhere the kind that is asked."""
    match = _KIND.fullmatch(claim.predicate)
    names = claim.subject_values.names
    if match is None or claim.auxiliary not in ("is", "was") or not names:
        return None
    for page in pages:
        lead = page.lead
        if lead is None or not same_name(names[0], page.base) or not COPULA.search(lead.text):
            continue
        words = [word for each in page.sentences for word in content_words(each.text.lower())]
        if not any(are_alike(match["noun"], word) for word in words):
            return Ruling(claim.denied, _CALLED, page.position, lead.text)
    return None

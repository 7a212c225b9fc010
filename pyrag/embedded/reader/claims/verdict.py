"""Answers to yes/no questions about one thing, from statements in sentences or by looking up a value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.protocol import Reading
from pyrag.embedded.reader.claims.claim import Claim, content_words, read_claim
from pyrag.embedded.reader.claims.lookups import Ask, by_value
from pyrag.embedded.reader.claims.opposites import is_among
from pyrag.embedded.reader.claims.statements import Ruling, by_statement
from pyrag.embedded.reader.claims.values import same_name
from pyrag.embedded.reader.patterns import COPULA
from pyrag.embedded.reader.view import View

_SURE = 0.5  # below this strength, a ruling is weak and a value is looked up
_OTHER_KIND = 0.6  # strength of "no" to "Was Ada Lind a painter?" if her page calls her a poet
_KIND = re.compile(r"an? (?P<noun>[a-z]+)")


def verdict_on(question: str, pages: Sequence[View], ask: Ask | None = None) -> Reading | None:
    """Return the answer to a yes/no question about one thing, or None if nothing decides it.

    Args:
        question: Question to answer.
        pages: Passages, best first.
        ask: Function that answers another question from the same passages. None to do without look-ups.
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
    other_kind = _of_other_kind(claim, pages)
    if other_kind is not None:
        return _reading(other_kind)
    return _reading(stated) if stated is not None else looked_up


def _reading(ruling: Ruling) -> Reading:
    text = "yes" if ruling.holds else "no"
    return Reading(text, True, (ruling.page,), f"“{ruling.sentence[:120]}”", ruling.strength)


def _of_other_kind(claim: Claim, pages: Sequence[View]) -> Ruling | None:
    """Answer no if the thing's own page describes it and never uses the noun of the question.

    To "Was Ada Lind a painter?" the answer is no if her page calls her a poet.
    """
    match = _KIND.fullmatch(claim.predicate)
    names = claim.subject_values.names
    if match is None or claim.auxiliary not in ("is", "was") or not names:
        return None
    for page in pages:
        lead = page.lead
        if lead is None or not same_name(names[0], page.base) or not COPULA.search(lead.text):
            continue
        words = [word for sentence in page.sentences for word in content_words(sentence.text.lower())]
        if not is_among(match["noun"], words):
            return Ruling(claim.denied, _OTHER_KIND, page.position, lead.text)
    return None

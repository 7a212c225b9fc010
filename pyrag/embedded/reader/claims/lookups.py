"""A yes/no question answered by a value: the value is asked for, and compared with the asked one."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyrag.agents.protocol import Reading
from pyrag.embedded.lexicon import COUNTRIES, PEOPLES
from pyrag.embedded.reader.claims.claim import Claim
from pyrag.embedded.reader.claims.values import Amount, Values, When, same_name, values_of
from pyrag.embedded.words import fold

Ask = Callable[[str], Reading]
_DO = frozenset(("do", "does", "did", "can", "could", "will", "would", "must", "may", "should"))
_MEASURED = {
    "weigh": "How much {aux} {subject} weigh?",
    "cost": "How much {aux} {subject} cost?",
    "last": "How long {aux} {subject} last?",
}
_ADJECTIVE = re.compile(
    r"(?P<unit>[\w%]+)? ?(?P<adjective>high|tall|deep|long|wide|old|heavy|thick|large|fast|expensive)\b"
)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question for a value, and the value that the claim holds."""

    question: str
    asked: str


def lookup_of(claim: Claim) -> Lookup | None:
    """Return the question whose answer decides a claim; None if it claims no value.

    Args:
        claim: The claim.
    """
    office = claim.predicate.startswith("the ")
    name = claim.subject_values.names
    named = len(name) == 1 and fold(name[0]) == fold(claim.subject)
    if claim.auxiliary in ("is", "was") and office and named:
        return Lookup(f"Who {claim.auxiliary} {claim.predicate}?", claim.subject)
    return _by_amount(claim) or _by_date(claim) or _by_name(claim)


def _by_amount(claim: Claim) -> Lookup | None:
    amounts = claim.values.amounts
    if len(amounts) != 1:
        return None
    amount, predicate = amounts[0], claim.predicate
    match = re.search(
        rf"[$€£]?{re.escape(amount.text)}(?: (?:thousand|million|billion))?(?P<after>.*)", predicate, re.IGNORECASE
    )
    if match is None:
        return None
    before, after = predicate[: match.start()].strip(), match["after"].strip()
    asked = match[0]
    verb = before.split()[0] if before else ""
    if verb in _MEASURED:
        return Lookup(_MEASURED[verb].format(aux=claim.auxiliary, subject=claim.subject), asked)
    adjective = _ADJECTIVE.match(after)
    if not before and adjective:
        return Lookup(f"How {adjective['adjective']} {claim.auxiliary} {claim.subject}?", asked)
    noun = after.split()[0] if after and after[0].isalpha() else ""
    if noun and before:
        return Lookup(f"How many {after} {claim.auxiliary} {claim.subject} {before}?", asked)
    if not before and claim.auxiliary in ("is", "was", "are", "were"):
        return Lookup(f"What {claim.auxiliary} {claim.subject}?", asked)
    return None


def _by_date(claim: Claim) -> Lookup | None:
    if len(claim.values.dates) != 1:
        return None
    stripped = re.sub(r"\b(?:in|on|at|by|the year|year)\s*(?=$|[\d])", " ", claim.predicate)
    match = re.search(
        r"(?:\b(?:in|on|by|for|the year)\s+)?(?P<date>(?:\d{1,2}(?:st|nd|rd|th)? )?(?:[A-Z][a-z]+ )?(?:\d{1,2}, )?\d{4}|\d{1,2} [A-Z][a-z]+|[A-Z][a-z]+ \d{1,2})\b",
        claim.predicate,
    )
    if match is None or not stripped:
        return None
    rest = f"{claim.predicate[: match.start()]}{claim.predicate[match.end() :]}".strip()
    return Lookup(f"When {claim.auxiliary} {claim.subject} {rest}?", match["date"]) if rest else None


def _by_name(claim: Claim) -> Lookup | None:
    names = claim.values.names
    if not names:
        return None
    name = names[-1]
    at = claim.predicate.rfind(name)
    before, after = claim.predicate[:at].rstrip(), claim.predicate[at + len(name) :].strip()
    before = re.sub(r"\b(?:the|a|an)$", "", before).rstrip()
    if after and not after[0].islower():
        return None
    slot = re.search(r"\b(in|at|on|by|from|to|into|under|with|for|as)$", before)
    if name in PEOPLES and not before:
        return Lookup(f"What is the nationality of {claim.subject}?", name)
    if slot is None:
        return _by_object(claim, name, before, after)
    lead = before[: slot.start()].rstrip()
    if slot[1] in ("in", "at") and lead:
        return Lookup(f"Where {claim.auxiliary} {claim.subject} {lead} {after}?".replace(" ?", "?"), name)
    if slot[1] == "by":
        return Lookup(f"Who {claim.auxiliary} {claim.subject} {lead} by?", name)
    return (
        Lookup(f"What {claim.auxiliary} {claim.subject} {before} {after}?".replace(" ?", "?"), name) if lead else None
    )


def _by_object(claim: Claim, name: str, before: str, after: str) -> Lookup | None:
    if claim.auxiliary not in _DO or not before or after:
        return None
    return Lookup(f"What {claim.auxiliary} {claim.subject} {before}?", name)


def by_value(claim: Claim, ask: Ask) -> Reading | None:
    """Return the answer to a claim by the value that is found for it; None if nothing comparable is found.

    Args:
        claim: The claim.
        ask: Answers a question from the passages at hand.
    """
    lookup = lookup_of(claim)
    reading = ask(lookup.question) if lookup else None
    if lookup is None or reading is None or not reading.known:
        return None
    holds = _holds(claim, lookup.asked, reading.text)
    if holds is None:
        return None
    text = "yes" if holds != claim.denied else "no"
    because = f"“{lookup.question}” is answered “{reading.text}”; asked is “{lookup.asked}”"
    return Reading(text, True, reading.citations, because, min(reading.confidence or 0.0, 0.8))


def _holds(claim: Claim, asked: str, found: str) -> bool | None:
    mine, theirs = values_of(asked), values_of(found)
    if claim.bound is not None:
        return _within(claim, mine, theirs)
    if mine.dates:
        return _same_date(mine.dates[0], theirs)
    if mine.amounts:
        return _same_amount(mine.amounts[0], theirs)
    return _same_text(asked, found, theirs)


def _within(claim: Claim, mine: Values, theirs: Values) -> bool | None:
    bound = claim.bound
    if bound is None:
        return None
    if mine.amounts and theirs.amounts:
        limit, value = mine.amounts[0], theirs.amounts[0]
        return bound.holds(value.number - limit.number) if _comparable(limit, value) else None
    if mine.dates and theirs.dates and theirs.dates[0].year and mine.dates[0].year:
        return _is_within(bound.holds, theirs.dates[-1] if len(theirs.dates) == 1 else theirs.dates[0], mine.dates[0])
    return None


def _is_within(holds: Callable[[float], bool], value: When, limit: When) -> bool:
    if value.year != limit.year or not (value.month and limit.month):
        return holds(value.year - limit.year)
    return holds((value.order() > limit.order()) - (value.order() < limit.order()))


def _comparable(first: Amount, second: Amount) -> bool:
    return first.unit == second.unit or not first.unit or not second.unit


def _same_date(asked: When, theirs: Values) -> bool | None:
    if any(each.fits(asked) for each in theirs.dates):
        return True
    return False if any(each.shares(asked) for each in theirs.dates) else None


def _same_amount(asked: Amount, theirs: Values) -> bool | None:
    if any(each.same(asked) and _comparable(asked, each) for each in theirs.amounts):
        return True
    return False if any(_comparable(asked, each) for each in theirs.amounts) else None


def _same_text(asked: str, found: str, theirs: Values) -> bool | None:
    if same_name(asked, found) or same_name(found, asked) or any(same_name(asked, each) for each in theirs.names):
        return True
    if f" {fold(asked)} " in f" {fold(found)} ":
        return True
    if theirs.dates or theirs.amounts or not theirs.names:
        return None
    wider = (asked in COUNTRIES) != (found in COUNTRIES)  # a city may lie in the country that is asked for
    return None if wider else False

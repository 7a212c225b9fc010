"""Answers to yes/no questions by looking up a value: the answer to a lookup is compared with the claim."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyrag.agents.protocol import Reading
from pyrag.embedded.lexicon import any_of
from pyrag.embedded.lexicon.measures import MEASURED
from pyrag.embedded.lexicon.regions import COUNTRIES, PEOPLES
from pyrag.embedded.lexicon.word_classes import BE, DO, MODALS, VALUE_PREPOSITION
from pyrag.embedded.reader.claims.claim import Bound, Claim
from pyrag.embedded.reader.claims.values import Amount, Values, When, is_named_among, same_name, values_of
from pyrag.embedded.words import fold, holds

Ask = Callable[[str], Reading]
_MEASURED = {
    "weigh": "How much {aux} {subject} weigh?",
    "cost": "How much {aux} {subject} cost?",
    "last": "How long {aux} {subject} last?",
}
_ADJECTIVE = re.compile(rf"(?P<unit>[\w%]+)? ?(?P<adjective>{any_of(MEASURED)})\b")


@dataclass(frozen=True, slots=True)
class Lookup:
    """Question whose answer decides a claim.

    Args:
        question: Question for a value.
        value: Value in the claim, which the answer is compared with.
    """

    question: str
    value: str


def lookup_of(claim: Claim) -> Lookup | None:
    """Return the question whose answer decides a claim, or None if the claim has no value.

    Args:
        claim: Claim to decide.
    """
    has_article = claim.predicate.startswith("the ")
    names = claim.subject_values.names
    is_name = len(names) == 1 and fold(names[0]) == fold(claim.subject)
    if claim.auxiliary in ("is", "was") and has_article and is_name:
        return Lookup(f"Who {claim.auxiliary} {claim.predicate}?", claim.subject)
    return _by_amount(claim) or _by_date(claim) or _by_name(claim)


def _by_amount(claim: Claim) -> Lookup | None:
    """Return a question for the amount of a claim: "How much does X weigh?", "How deep is X?"."""
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
    value = match[0]
    verb = before.split()[0] if before else ""
    if verb in _MEASURED:
        return Lookup(_MEASURED[verb].format(aux=claim.auxiliary, subject=claim.subject), value)
    adjective = _ADJECTIVE.match(after)
    if not before and adjective:
        return Lookup(f"How {adjective['adjective']} {claim.auxiliary} {claim.subject}?", value)
    noun = after.split()[0] if after and after[0].isalpha() else ""
    if noun and before:
        return Lookup(f"How many {after} {claim.auxiliary} {claim.subject} {before}?", value)
    if not before and claim.auxiliary in BE:
        return Lookup(f"What {claim.auxiliary} {claim.subject}?", value)
    return None


def _by_date(claim: Claim) -> Lookup | None:
    """Return a question for the date of a claim: "When was X opened?"."""
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
    """Return a question for the last name of a claim: "Where was X born?", "Who was X founded by?"."""
    names = claim.values.names
    if not names:
        return None
    name = names[-1]
    at = claim.predicate.rfind(name)
    before, after = claim.predicate[:at].rstrip(), claim.predicate[at + len(name) :].strip()
    before = re.sub(r"\b(?:the|a|an)$", "", before).rstrip()
    if after and not after[0].islower():
        return None
    preposition = re.search(rf"\b({VALUE_PREPOSITION})$", before)
    if name in PEOPLES and not before:
        return Lookup(f"What is the nationality of {claim.subject}?", name)
    if preposition is None:
        return _by_object(claim, name, before, after)
    verb = before[: preposition.start()].rstrip()
    if preposition[1] in ("in", "at") and verb:
        return Lookup(f"Where {claim.auxiliary} {claim.subject} {verb} {after}?".replace(" ?", "?"), name)
    if preposition[1] == "by":
        return Lookup(f"Who {claim.auxiliary} {claim.subject} {verb} by?", name)
    return (
        Lookup(f"What {claim.auxiliary} {claim.subject} {before} {after}?".replace(" ?", "?"), name) if verb else None
    )


def _by_object(claim: Claim, name: str, before: str, after: str) -> Lookup | None:
    """Return a question for the object of a claim: "What did X found?"."""
    if claim.auxiliary not in DO | MODALS or not before or after:
        return None
    return Lookup(f"What {claim.auxiliary} {claim.subject} {before}?", name)


def by_value(claim: Claim, ask: Ask) -> Reading | None:
    """Answer a claim by looking up its value, or return None if the answer cannot be compared.

    Args:
        claim: Claim to decide.
        ask: Function that answers a question from the passages.
    """
    lookup = lookup_of(claim)
    reading = ask(lookup.question) if lookup else None
    if lookup is None or reading is None or not reading.known:
        return None
    holds = _holds(claim, lookup.value, reading.text)
    if holds is None:
        return None
    text = "yes" if holds != claim.denied else "no"
    because = f"“{lookup.question}” is answered “{reading.text}”; asked is “{lookup.value}”"
    return Reading(text, True, reading.citations, because, min(reading.confidence or 0.0, 0.8))


def _holds(claim: Claim, value: str, answer: str) -> bool | None:
    """Return whether an answer confirms a claim, or None if the two cannot be compared."""
    claimed, answered = values_of(value), values_of(answer)
    if claim.bound is not None:
        return _within(claim.bound, claimed, answered)
    if claimed.dates:
        return _same_date(claimed.dates[0], answered)
    if claimed.amounts:
        return _same_amount(claimed.amounts[0], answered)
    return _same_text(value, answer, answered)


def _within(bound: Bound, claimed: Values, answered: Values) -> bool | None:
    """Return whether an answer is within the bound of a claim, or None if it cannot be compared."""
    if claimed.amounts and answered.amounts:
        limit, amount = claimed.amounts[0], answered.amounts[0]
        return bound.holds(amount.number - limit.number) if amount.may_compare(limit) else None
    if claimed.dates and answered.dates and answered.dates[0].year and claimed.dates[0].year:
        return bound.holds(answered.dates[0].order(claimed.dates[0]))
    return None


def _same_date(claimed: When, answered: Values) -> bool | None:
    """Return whether an answer has the claimed date, or None if its dates cannot be compared."""
    if any(date.may_equal(claimed) for date in answered.dates):
        return True
    return False if any(date.is_comparable(claimed) for date in answered.dates) else None


def _same_amount(claimed: Amount, answered: Values) -> bool | None:
    """Return whether an answer has the claimed amount, or None if its amounts cannot be compared."""
    if any(amount.equals(claimed) and amount.may_compare(claimed) for amount in answered.amounts):
        return True
    return False if any(amount.may_compare(claimed) for amount in answered.amounts) else None


def _same_text(claimed: str, answer: str, answered: Values) -> bool | None:
    """Return whether an answer is the claimed name, or None if the two cannot be compared."""
    if same_name(claimed, answer) or same_name(answer, claimed) or is_named_among(claimed, answered.names):
        return True
    if holds(answer, claimed):
        return True
    if answered.dates or answered.amounts or not answered.names:
        return None
    is_wider = (claimed in COUNTRIES) != (answer in COUNTRIES)  # the city may be in the country
    return None if is_wider else False

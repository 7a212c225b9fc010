"""Comparison of a claim with the sentences of passages, which may state it, deny it or state something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from pyrag.embedded.lexicon.regions import PEOPLES
from pyrag.embedded.lexicon.verbs import is_participle
from pyrag.embedded.lexicon.word_classes import BE, VALUE_PREPOSITION
from pyrag.embedded.reader.claims.claim import Claim, content_words
from pyrag.embedded.reader.claims.clauses import Clause, clauses
from pyrag.embedded.reader.claims.opposites import (
    OVER,
    are_alike,
    are_alternatives,
    are_opposite,
    has_opposite,
    is_among,
)
from pyrag.embedded.reader.claims.roles import swapped
from pyrag.embedded.reader.claims.subjects import SubjectMatch, match_subject, subject_traces
from pyrag.embedded.reader.claims.values import Amount, When, is_named_among, same_name, unit_of
from pyrag.embedded.reader.neural.times import other_number
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, content_stems

# Strengths of rulings. Below 0.5 an answer is weak.
_STATED = 0.8  # the claim itself is stated or denied
_OTHERWISE = 0.65  # the sentence has another value in its place
_OF_OTHER = 0.55  # the claim is stated of another thing
_OVER = 0.7  # the state of the claim has ended
_NO_MORE = 0.85  # the same, if the question asks whether it "still" holds
_UNDECIDED = 0.4  # two equally strong sentences disagree
_MAX_SENTENCES = 40  # sentences per page that are compared with a claim
_PREPOSITION = re.compile(rf"\b({VALUE_PREPOSITION})\s+(?:the |a |an )?$")
_UNTIL = re.compile(r"\b(?:until|till|to|through)\b|[–—-]")


@dataclass(frozen=True, slots=True)
class Ruling:
    """Decision about a claim, taken from one sentence.

    Args:
        holds: True if the answer is yes.
        strength: Strength of the ruling, in [0, 1].
        page: Position of the page.
        sentence: Text of the sentence.
    """

    holds: bool
    strength: float
    page: int
    sentence: str


def by_statement(claim: Claim, pages: Sequence[View]) -> Ruling | None:
    """Return the strongest ruling about a claim in any sentence, or None if no sentence decides it.

    Args:
        claim: Claim to decide.
        pages: Passages, best first.
    """
    rulings = [ruling for page in pages for ruling in _rulings(claim, page)]
    best = max(rulings, key=lambda ruling: ruling.strength, default=None)
    if best is None:
        return None
    against = max((ruling.strength for ruling in rulings if ruling.holds != best.holds), default=0.0)
    return best if against < best.strength else Ruling(best.holds, _UNDECIDED, best.page, best.sentence)


def _rulings(claim: Claim, page: View) -> Iterator[Ruling]:
    """Yield a ruling for each sentence of a page that has a clause which decides the claim."""
    traces = subject_traces(claim, page)
    for sentence in _relevant(claim, page):
        if other_number(claim.subject, page, sentence):
            continue
        for clause in clauses(sentence.text):
            match = match_subject(claim, clause, traces, sentence)
            if match is None:
                continue
            ended = _ended(claim, clause) if match.is_named and _is_present(claim) else None
            decision = (ended if claim.still else None) or _compared(claim, clause, match) or ended
            if decision is not None:
                holds, strength = decision
                strength = round(strength * match.weight - 0.01 * (clause.width - 1), 4)
                yield Ruling(holds, strength, page.position, sentence.text)
                break


def _relevant(claim: Claim, page: View) -> Sequence[Sentence]:
    """Return the sentences of a page; of a long page, those that share the most words with the claim."""
    if len(page.sentences) <= _MAX_SENTENCES:
        return page.sentences
    claim_stems = content_stems(claim.question)
    ranked = sorted(page.sentences, key=lambda line: (-len(claim_stems & set(line.stems)), line.index))
    return sorted(ranked[:_MAX_SENTENCES], key=lambda line: line.index)


def _compared(claim: Claim, clause: Clause, match: SubjectMatch) -> tuple[bool, float] | None:
    """Decide a claim by a clause. Return the answer and its strength, or None if the clause does not decide it.

    Each value and word of the claim has a state in the clause: "same", "opposite", "other" (a different value of the
    same kind), "context" (only in the page's title) or "missing".
    """
    if (" than " in f" {claim.predicate} ") != (" than " in f" {clause.text} ") and claim.bound is None:
        return None
    states = []
    for state in chain(_states_of_values(claim, clause, match), _states_of_words(claim, clause, match)):
        if state == "missing":
            return None
        states.append(state)
    if not states or (not match.has_words and not content_words(claim.values.rest)):
        return None
    flips = (
        states.count("opposite")
        + len(clause.denials(frozenset(_words(claim)), _predicate_words(claim)))
        + swapped(claim, clause)
    )
    holds = (flips + claim.denied) % 2 == 0
    if match.is_other:
        return (False, _OF_OTHER) if holds and "other" not in states and _is_exclusive(claim) else None
    if "other" in states:
        is_only_other = states.count("other") == len(states)
        if states.count("other") > 1 or (is_only_other and not _is_value(claim)) or flips:
            return None
        return claim.denied, _OTHERWISE
    if "context" in states and states.count("context") == len(states):
        return None
    return holds, _STATED


def _is_present(claim: Claim) -> bool:
    """Return whether a claim is about the present."""
    return claim.still or claim.auxiliary in ("is", "are", "does", "do")


def _predicate_words(claim: Claim) -> list[str]:
    return re.findall(r"[\w'’-]+", claim.predicate.lower())


def _words(claim: Claim) -> list[str]:
    """Return the words of the predicate and of the subject."""
    return [*_predicate_words(claim), *re.findall(r"[\w'’-]+", claim.subject.lower())]


def _is_exclusive(claim: Claim) -> bool:
    """Return whether a claim can hold of only one thing: an office, a superlative or a single deed."""
    if re.match(r"the |.*\b(?:first|last|only|elected|appointed|named)\b|by ", claim.predicate):
        return True
    if claim.auxiliary == "does":  # "does Alpha need ink": Beta may need it too
        return bool(claim.values.names)
    return claim.auxiliary in ("did", "will") and bool(claim.values.names or claim.predicate.count(" "))


def _is_value(claim: Claim) -> bool:
    """Return whether another value refutes a claim, as with "is Danish" and "is 88 m deep"."""
    return claim.auxiliary in BE


def _states_of_words(claim: Claim, clause: Clause, match: SubjectMatch) -> Iterator[str]:
    """Yield the state of each word of the predicate that is not part of a value; see `_compared`."""
    values = claim.values
    units = {amount.unit for amount in values.amounts}
    clause_words = clause.words
    for word in content_words(values.rest):
        if is_among(word, clause_words):
            yield "same"
        elif any(are_opposite(word, other) for other in clause_words):
            yield "opposite"
        elif any(are_alternatives(word, other) for other in clause_words):
            yield "other"
        elif unit_of(word) in units or word in ("year", "time"):
            continue
        elif is_among(word, match.title_words) and not has_opposite(word):
            yield "context"
        else:
            yield "missing"


def _states_of_values(claim: Claim, clause: Clause, match: SubjectMatch) -> Iterator[str]:
    """Yield the state of each amount, date and name of the predicate; see `_compared`."""
    values, limit = claim.values, claim.limit
    for amount in values.amounts:
        state = _state_of_amount(amount, clause.values.amounts, claim if limit == amount else None)
        yield "context" if state == "missing" and amount.text in match.title_words else state
    for date in values.dates:
        yield _state_of_date(date, clause, claim, limit == date)
    for name in values.names:
        yield _state_of_name(name, claim, clause, match)


def _state_of_amount(claimed: Amount, stated: Sequence[Amount], bounded: Claim | None) -> str:
    """Return the state of an amount; see `_compared`.

    Args:
        claimed: Amount in the claim.
        stated: Amounts in the clause.
        bounded: The claim, if the amount is the limit of its bound.
    """
    if bounded is not None and bounded.bound is not None:
        values = [amount for amount in stated if amount.is_comparable(claimed) or not claimed.unit]
        if not values:
            return "missing"
        return "same" if bounded.bound.holds(values[0].number - claimed.number) else "opposite"
    if any(amount.equals(claimed) and amount.may_compare(claimed) for amount in stated):
        return "same"
    comparable = [
        amount for amount in stated if amount.is_comparable(claimed) or (not claimed.unit and not amount.unit)
    ]
    return "other" if comparable else "missing"


def _state_of_date(claimed: When, clause: Clause, claim: Claim, is_limit: bool) -> str:
    """Return the state of a date; see `_compared`.

    Args:
        claimed: Date in the claim.
        clause: Clause to compare it with.
        claim: Claim of the date.
        is_limit: True if the date is the limit of the claim's bound.
    """
    stated = clause.values.dates
    if is_limit and claim.bound is not None:
        if len(stated) != 1 or bool(stated[0].year) != bool(claimed.year):
            return "missing"
        return "same" if claim.bound.holds(stated[0].order(claimed)) else "opposite"
    if any(date.may_equal(claimed) for date in stated):
        return "same"
    is_event = claim.auxiliary not in BE or any(map(is_participle, claim.predicate.split()))
    if not is_event and len(stated) == 2 and _UNTIL.search(clause.text) and claimed.year:
        start, end = sorted(date.year for date in stated)
        if start:
            return "same" if start <= claimed.year <= end else "other"
    return "other" if is_event and any(date.is_comparable(claimed) for date in stated) else "missing"


def _state_of_name(claimed: str, claim: Claim, clause: Clause, match: SubjectMatch) -> str:
    """Return the state of a name; see `_compared`.

    The clause has another value if a different name follows the same preposition.
    """
    stated = clause.values.names
    if any(same_name(claimed, name) or are_alike(claimed.lower(), name.lower()) for name in stated):
        return "same"
    if any(are_alternatives(claimed.lower(), name.lower()) for name in stated):
        return "other"
    if is_named_among(claimed, match.title_names):
        return "context"
    if claimed in PEOPLES:
        return "other" if any(word in PEOPLES for word in re.findall(r"[A-Z][a-z]+", clause.text)) else "missing"
    preposition = _PREPOSITION.search(claim.predicate[: claim.predicate.find(claimed)])
    if preposition is None:
        is_whole = claim.auxiliary in BE and claim.predicate in (claimed, f"the {claimed}")
        return "other" if is_whole and stated else "missing"
    before_name = rf"\b{preposition[1]}\s+(?:[a-z]+ ){{0,3}}"
    rivals = [name for name in stated if re.search(f"{before_name}{re.escape(name)}", clause.text)]
    if (
        preposition[1] == "by"
        and not rivals
        and (doer := re.match(rf"(?:The |the )?({'|'.join(map(re.escape, stated)) or '$'}) [a-z]", clause.text))
    ):
        rivals = [doer[1]]
    return "other" if rivals and not any(same_name(name, claim.subject) for name in rivals) else "missing"


def _ended(claim: Claim, clause: Clause) -> tuple[bool, float] | None:
    """Return the answer and its strength if a clause states that the claimed state has ended, as "used to" does."""
    words = {word.lower() for word in re.findall(r"[\w'’-]+", clause.text)}
    endings = {word for word in words & OVER if not is_among(word, _words(claim))}
    if not endings and not re.search(r"\bused to\b|\bno longer\b", clause.text):
        return None
    claim_words = content_words(claim.values.rest)
    has_words = not claim_words or any(
        are_alike(word, other) or are_opposite(word, other) for word in claim_words for other in clause.words
    )
    has_name = any(is_named_among(name, clause.values.names) for name in claim.values.names)
    return (claim.denied, _NO_MORE if claim.still else _OVER) if has_words or has_name else None

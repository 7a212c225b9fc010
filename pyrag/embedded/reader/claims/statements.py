"""A claim held against the sentences of passages: stated, denied, stated otherwise, or not spoken of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from pyrag.embedded.lexicon import PEOPLES
from pyrag.embedded.planner.grammar.verbs import is_participle
from pyrag.embedded.reader.claims.claim import Claim, content_words
from pyrag.embedded.reader.claims.clauses import Clause, clauses
from pyrag.embedded.reader.claims.opposites import OVER, are_alike, are_alternatives, are_opposite, has_opposite
from pyrag.embedded.reader.claims.roles import swapped
from pyrag.embedded.reader.claims.subjects import Standing, standing, surroundings
from pyrag.embedded.reader.claims.values import Amount, When, same_name, unit_of
from pyrag.embedded.reader.neural.times import other_number
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, content_stem, fold

# The strength of a ruling where the claim itself is stated or denied; another value stands in its place; it is stated
# of another thing; something is told to have ended; and where that answers "still". Below 0.5 an answer is weak.
_STATED, _OTHERWISE, _OF_OTHER, _OVER, _NO_MORE = 0.8, 0.65, 0.55, 0.7, 0.85
_MAX_SENTENCES = 40  # of a page that are compared with a claim
_SLOT = re.compile(r"\b(in|at|by|from|to|into|with|under|on|for|as)\s+(?:the |a |an )?$")
_UNTIL = re.compile(r"\b(?:until|till|to|through)\b|[–—-]")
_BE = frozenset(("is", "are", "was", "were"))


@dataclass(frozen=True, slots=True)
class Ruling:
    """The word of one sentence on a claim."""

    holds: bool
    strength: float
    page: int
    sentence: str


def by_statement(claim: Claim, pages: Sequence[View]) -> Ruling | None:
    """Return the verdict of the sentence that says most clearly whether a claim holds; None if no sentence does.

    Args:
        claim: The claim.
        pages: The passages, best first.
    """
    found = [verdict for page in pages for verdict in _verdicts(claim, page)]
    best = max(found, key=lambda each: each.strength, default=None)
    if best is None:
        return None
    against = max((each.strength for each in found if each.holds != best.holds), default=0.0)
    # Two sentences as clear as each other that disagree decide nothing.
    return best if against < best.strength else Ruling(best.holds, 0.4, best.page, best.sentence)


def _verdicts(claim: Claim, page: View) -> Iterator[Ruling]:
    around = surroundings(claim, page)
    for sentence in _relevant(claim, page):
        if other_number(claim.subject, page, sentence):
            continue
        for clause in clauses(sentence.text):
            stands = standing(claim, clause, around, sentence)
            if stands is None:
                continue
            over = _over(claim, clause) if stands.named and _is_present(claim) else None
            verdict = (over if claim.still else None) or _compared(claim, clause, stands) or over
            if verdict is not None:
                holds, strength = verdict
                strength = round(strength * stands.weight - 0.01 * (clause.width - 1), 4)
                yield Ruling(holds, strength, page.position, sentence.text)
                break


def _relevant(claim: Claim, page: View) -> Sequence[Sentence]:
    """The sentences of a page; of a long one, those that share most words with the claim."""
    if len(page.sentences) <= _MAX_SENTENCES:
        return page.sentences
    asked = {stem for word in fold(claim.question).split() if (stem := content_stem(word))}
    ranked = sorted(page.sentences, key=lambda each: (-len(asked & set(each.stems)), each.index))
    return sorted(ranked[:_MAX_SENTENCES], key=lambda each: each.index)


def _compared(claim: Claim, clause: Clause, stands: Standing) -> tuple[bool, float] | None:
    """Return if the claim holds by this clause, and how clearly."""
    if (" than " in f" {claim.predicate} ") != (" than " in f" {clause.text} ") and claim.bound is None:
        return None
    states = []
    for state in chain(_states_of_values(claim, clause, stands), _states_of_words(claim, clause, stands)):
        if state == "missing":
            return None
        states.append(state)
    if not states or (not stands.held and not content_words(claim.values.rest)):
        return None
    flips = (
        states.count("opposite")
        + len(clause.denials(frozenset(_words(claim)), _predicate_words(claim)))
        + swapped(claim, clause)
    )
    holds = (flips + claim.denied) % 2 == 0
    if stands.other:
        return (False, _OF_OTHER) if holds and "other" not in states and _of_one(claim) else None
    if "other" in states:
        alone = states.count("other") == len(states)
        if states.count("other") > 1 or (alone and not _decides_alone(claim)) or flips:
            return None
        return claim.denied, _OTHERWISE
    if "context" in states and states.count("context") == len(states):
        return None
    return holds, _STATED


def _is_present(claim: Claim) -> bool:
    return claim.still or claim.auxiliary in ("is", "are", "does", "do")


def _predicate_words(claim: Claim) -> list[str]:
    return re.findall(r"[\w'’-]+", claim.predicate.lower())


def _words(claim: Claim) -> list[str]:
    return [*re.findall(r"[\w'’-]+", claim.predicate.lower()), *re.findall(r"[\w'’-]+", claim.subject.lower())]


def _of_one(claim: Claim) -> bool:
    """Return whether what is claimed holds of one thing only: an office, a superlative, one deed."""
    return bool(re.match(r"the |.*\b(?:first|last|only|elected|appointed|named)\b|by ", claim.predicate)) or (
        claim.auxiliary in ("did", "will", "does") and bool(claim.values.names or claim.predicate.count(" "))
    )


def _decides_alone(claim: Claim) -> bool:
    """Return whether a predicate that is one value may be refuted by another value: "is Danish", "is 88 m deep"."""
    return claim.auxiliary in _BE


def _states_of_words(claim: Claim, clause: Clause, stands: Standing) -> Iterator[str]:
    values = claim.values
    units = {amount.unit for amount in values.amounts}
    there = clause.words
    for word in content_words(values.rest):
        if any(are_alike(word, each) for each in there):
            yield "same"
        elif any(are_opposite(word, each) for each in there):
            yield "opposite"
        elif any(are_alternatives(word, each) for each in there):
            yield "other"
        elif _is_unit(word, units) or word in ("year", "time"):
            continue
        elif any(are_alike(word, each) for each in stands.context) and not has_opposite(word):
            yield "context"
        else:
            yield "missing"


def _is_unit(word: str, units: set[str]) -> bool:
    return unit_of(word) in units


def _states_of_values(claim: Claim, clause: Clause, stands: Standing) -> Iterator[str]:
    values, there = claim.values, clause.values
    limit = claim.limit
    for amount in values.amounts:
        state = _state_of_amount(amount, there.amounts, claim if limit == amount else None)
        yield "context" if state == "missing" and amount.text in stands.context else state
    for date in values.dates:
        yield _state_of_date(date, clause, claim, limit == date)
    for name in values.names:
        yield _state_of_name(name, claim, clause, stands)


def _state_of_amount(asked: Amount, there: Sequence[Amount], bounded: Claim | None) -> str:
    if bounded is not None and bounded.bound is not None:
        fitting = [each for each in there if each.comparable(asked) or not asked.unit]
        if not fitting:
            return "missing"
        return "same" if bounded.bound.holds(fitting[0].number - asked.number) else "opposite"
    if any(each.same(asked) and (each.comparable(asked) or not each.unit or not asked.unit) for each in there):
        return "same"
    comparable = [each for each in there if each.comparable(asked) or (not asked.unit and not each.unit)]
    return "other" if comparable else "missing"


def _state_of_date(asked: When, clause: Clause, claim: Claim, limiting: bool) -> str:
    there = clause.values.dates
    if limiting and claim.bound is not None:
        if len(there) != 1 or bool(there[0].year) != bool(asked.year):
            return "missing"
        mine, theirs = there[0], asked
        difference = mine.year - theirs.year
        if theirs.month and mine.month:
            difference = (mine.order() > theirs.order()) - (mine.order() < theirs.order())
        return "same" if claim.bound.holds(difference) else "opposite"
    if any(each.fits(asked) for each in there):
        return "same"
    is_event = claim.auxiliary not in _BE or any(map(is_participle, claim.predicate.split()))
    if not is_event and len(there) == 2 and _UNTIL.search(clause.text) and asked.year:
        start, end = sorted(each.year for each in there)
        if start:
            return "same" if start <= asked.year <= end else "other"
    return "other" if is_event and any(each.shares(asked) for each in there) else "missing"


def _state_of_name(asked: str, claim: Claim, clause: Clause, stands: Standing) -> str:
    there = clause.values.names
    if any(same_name(asked, each) or are_alike(asked.lower(), each.lower()) for each in there):
        return "same"
    if any(are_alternatives(asked.lower(), each.lower()) for each in there):
        return "other"
    if any(same_name(asked, each) for each in stands.names):
        return "context"
    if asked in PEOPLES:
        return "other" if any(each in PEOPLES for each in _peoples(clause)) else "missing"
    slot = _SLOT.search(claim.predicate[: claim.predicate.find(asked)])
    if slot is None:
        is_whole = claim.auxiliary in _BE and claim.predicate in (asked, f"the {asked}")
        return "other" if is_whole and there else "missing"
    rivals = [each for each in there if re.search(rf"\b{slot[1]}\s+(?:[a-z]+ ){{0,3}}{re.escape(each)}", clause.text)]
    if (
        slot[1] == "by"
        and not rivals
        and (doer := re.match(rf"(?:The |the )?({'|'.join(map(re.escape, there)) or '$'}) [a-z]", clause.text))
    ):
        rivals = [doer[1]]
    return "other" if rivals and not any(same_name(each, claim.subject) for each in rivals) else "missing"


def _peoples(clause: Clause) -> list[str]:
    return re.findall(r"[A-Z][a-z]+", clause.text)


def _over(claim: Claim, clause: Clause) -> tuple[bool, float] | None:
    """The answer to "is it still so" by a clause that says that it ended."""
    words = {word.lower() for word in re.findall(r"[\w'’-]+", clause.text)}
    ended = {word for word in words & OVER if not any(are_alike(word, each) for each in _words(claim))}
    if not ended and not re.search(r"\bused to\b|\bno longer\b", clause.text):
        return None
    asked = content_words(claim.values.rest)
    near = not asked or any(
        are_alike(word, each) or are_opposite(word, each) for word in asked for each in clause.words
    )
    names = claim.values.names
    named = any(same_name(name, each) for name in names for each in clause.values.names)
    return (claim.denied, _NO_MORE if claim.still else _OVER) if near or named else None

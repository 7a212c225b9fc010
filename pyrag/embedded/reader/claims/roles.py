"""Doer and thing done: finds clauses that tell of a claim's deed with the two exchanged."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.reader.claims.claim import Claim, content_words
from pyrag.embedded.reader.claims.clauses import Clause
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.reader.claims.values import same_name
from pyrag.embedded.words import content_stem, fold

_DIRECTIONS = words("north south east west northeast northwest southeast southwest left right ahead")
_BE = frozenset(("is", "are", "was", "were"))
_BY = re.compile(r"[\w'’-]+(?: [^,;]{0,40})? by\b")
_MUTUAL = words("marry married meet met merge merged border play played with and against")


def swapped(claim: Claim, clause: Clause) -> int:
    """Return 1 if the clause gives the claim's parts to each other, else 0.

    Args:
        claim: The claim.
        clause: A clause that holds all of the claim's predicate.
    """
    if " than " in f" {claim.predicate} ":
        return _compared_otherwise(claim, clause)
    subjects, objects = claim.subject_values.names, claim.values.names
    verb = next(iter(content_words(claim.values.rest)), "")
    if not subjects or not objects or verb in _MUTUAL:
        return 0
    if claim.auxiliary in _BE and not _is_directed(claim, verb):
        return 0
    first, second = _place(subjects[0], clause), _place(objects[0], clause)
    at = _place_of_word(verb, clause)
    was_passive = claim.auxiliary in _BE and " by " in f" {claim.predicate} "
    is_passive = at >= 0 and bool(_BY.match(clause.text[at:]))
    if first >= 0 and second >= 0:
        return int((first < second) == (was_passive != is_passive))
    if first >= 0 and at >= 0 and not is_passive and not was_passive:
        return int(first > at)
    return 0


def _is_directed(claim: Claim, verb: str) -> bool:
    """Return whether a predicate after "is" has a direction: "north of", "succeeded by"."""
    return " by " in f" {claim.predicate} " or (verb in _DIRECTIONS and " of " in f" {claim.predicate} ")


def _place(name: str, clause: Clause) -> int:
    return next((clause.text.find(each) for each in clause.values.names if same_name(name, each)), -1)


def _place_of_word(word: str, clause: Clause) -> int:
    return next(
        (match.start() for match in re.finditer(r"[\w'’-]+", clause.text) if are_alike(word, match[0].lower())), -1
    )


def _compared_otherwise(claim: Claim, clause: Clause) -> int:
    """ "A is heavier than B" for "is B heavier than A": what stands before "than" there stands behind it here."""
    mine = _both_sides(f"{claim.subject} {claim.predicate}")
    there = _both_sides(clause.text)
    if mine is None or there is None:
        return 0
    left, right = mine[0] - mine[1], mine[1] - mine[0]
    straight = len(left & there[0]) + len(right & there[1])
    across = len(left & there[1]) + len(right & there[0])
    return int(across > straight)


def _both_sides(text: str) -> tuple[set[str], set[str]] | None:
    before, than, after = text.partition(" than ")
    return (_stems(before), _stems(after)) if than else None


def _stems(text: str) -> set[str]:
    return {found for word in fold(text).split() if (found := content_stem(word))}

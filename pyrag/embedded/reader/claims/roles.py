"""Detection of clauses that swap the doer and the object of a claim."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.word_classes import BE
from pyrag.embedded.reader.claims.claim import Claim, content_words
from pyrag.embedded.reader.claims.clauses import Clause
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.reader.claims.values import same_name
from pyrag.embedded.words import content_stems

_DIRECTIONS = words("north south east west northeast northwest southeast southwest left right ahead")
_BY = re.compile(r"[\w'’-]+(?: [^,;]{0,40})? by\b")
_MUTUAL = words("marry married meet met merge merged border play played with and against")


def swapped(claim: Claim, clause: Clause) -> int:
    """Return 1 if a clause states the claim with its two parts swapped, else 0.

    Args:
        claim: Claim to decide.
        clause: Clause that has all words of the claim's predicate.
    """
    if " than " in f" {claim.predicate} ":
        return _is_reversed(claim, clause)
    subjects, objects = claim.subject_values.names, claim.values.names
    verb = next(iter(content_words(claim.values.rest)), "")
    if not subjects or not objects or verb in _MUTUAL:
        return 0
    if claim.auxiliary in BE and not _is_directed(claim, verb):
        return 0
    first, second = _position_of_name(subjects[0], clause), _position_of_name(objects[0], clause)
    verb_at = _position_of_word(verb, clause)
    was_passive = claim.auxiliary in BE and " by " in f" {claim.predicate} "
    is_passive = verb_at >= 0 and bool(_BY.match(clause.text[verb_at:]))
    if first >= 0 and second >= 0:
        return int((first < second) == (was_passive != is_passive))
    if first >= 0 and verb_at >= 0 and not is_passive and not was_passive:
        return int(first > verb_at)
    return 0


def _is_directed(claim: Claim, verb: str) -> bool:
    """Return whether swapping the two things around "is" changes the meaning: "north of", "succeeded by"."""
    return " by " in f" {claim.predicate} " or (verb in _DIRECTIONS and " of " in f" {claim.predicate} ")


def _position_of_name(name: str, clause: Clause) -> int:
    """Return the position of a name in a clause, or -1."""
    return next((clause.text.find(other) for other in clause.values.names if same_name(name, other)), -1)


def _position_of_word(word: str, clause: Clause) -> int:
    """Return the position of a word or its synonym in a clause, or -1."""
    return next(
        (match.start() for match in re.finditer(r"[\w'’-]+", clause.text) if are_alike(word, match[0].lower())), -1
    )


def _is_reversed(claim: Claim, clause: Clause) -> int:
    """Return 1 if the two sides of "than" are swapped: "A is heavier than B" for "is B heavier than A"."""
    claimed = _both_sides(f"{claim.subject} {claim.predicate}")
    stated = _both_sides(clause.text)
    if claimed is None or stated is None:
        return 0
    left, right = claimed[0] - claimed[1], claimed[1] - claimed[0]
    straight = len(left & stated[0]) + len(right & stated[1])
    across = len(left & stated[1]) + len(right & stated[0])
    return int(across > straight)


def _both_sides(text: str) -> tuple[set[str], set[str]] | None:
    """Return the stems before and after "than", or None if the text has no "than"."""
    before, than, after = text.partition(" than ")
    return (content_stems(before), content_stems(after)) if than else None

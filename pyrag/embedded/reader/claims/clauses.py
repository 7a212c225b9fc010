"""Clauses of a sentence, alone and together with their neighbours, with what each says of denial and of its subject."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrag.embedded.reader.claims.claim import content_words
from pyrag.embedded.reader.claims.opposites import DENIALS, are_alike, are_opposite, plain_verbs
from pyrag.embedded.reader.claims.values import Values, values_of

_SPLIT = re.compile(
    r";\s+|:\s+(?=\D)|,\s+(?!\d{4}\b)|\s+\|\s+|\s+[–—]\s+(?=[a-z])|\s+(?=(?:but|although|though|while|whereas|because)\s)"
    r"|\s+(?=and\s+(?:it|he|she|they|the|its|his|her|their|was|were|is|are|has|had|does|did|will|can|not|never|left|won"
    r"|lost|began|became|died|went|took|made|sold|bought|wrote|led|held|[a-z]{3,}ed|[a-z]{3,}[^s\s]s)\b)"
)
_DENIAL = re.compile(r"\b[\w'’-]+", re.IGNORECASE)
_NO_DENIAL = re.compile(
    r"\bnot only\b|\bno (?:fewer|less|more|later|earlier) than\b|\bno doubt\b|\bif not\b|\bnumber \w+", re.I
)
_WIDEST = 4  # clauses read together
_MAX_BREAKS = 24  # of a sentence; what follows them is one clause


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a sentence: one clause or neighbouring ones."""

    text: str
    width: int
    opening: bool  # it is the sentence's first clause

    @property
    def values(self) -> Values:
        return values_of(self.text)

    @property
    def words(self) -> list[str]:
        return [*content_words(self.values.rest), *content_words(" ".join(self.values.names))]

    def denials(self, claimed: frozenset[str], stated: Sequence[str]) -> list[str]:
        """Return the words that deny what the clause states.

        Args:
            claimed: Words of the claim; what it says itself denies nothing.
            stated: Words of its predicate. What stands behind the last of them denies something else.
        """
        found = [word.lower() for word in _DENIAL.findall(_NO_DENIAL.sub(" ", self.text))]
        if found and (found[-1] in DENIALS or found[-1].endswith("n't")):
            found.insert(0, found.pop())  # "the cellar is included, the garage is not"
        last = max(
            (at for at, word in enumerate(found) if any(_meets(word, each) for each in stated)), default=len(found)
        )
        found = found[: last + 1]
        denials = [word for word in found if word in DENIALS or word.endswith(("n't", "n’t"))]
        if "neither" in denials:
            denials = [word for word in denials if word != "nor"]
        return [word for word in denials if not any(are_alike(word, each) for each in claimed)]


def _meets(word: str, stated: str) -> bool:
    return word == stated or are_alike(word, stated) or are_opposite(word, stated)


def clauses(sentence: str) -> Iterator[Clause]:
    """Yield single clauses, then ever longer runs of neighbours, then the sentence."""
    sentence = plain_verbs(sentence)
    breaks = list(_SPLIT.finditer(sentence))[:_MAX_BREAKS]
    starts = [0, *(match.end() for match in breaks)]
    stops = [*(match.start() for match in breaks), len(sentence)]
    for width in range(1, min(_WIDEST, len(starts)) + 1):
        for at in range(len(starts) - width + 1):
            text = sentence[starts[at] : stops[at + width - 1]].strip()
            if text:
                yield Clause(text, width, at == 0)
    if len(starts) > _WIDEST:
        yield Clause(sentence, len(starts), opening=True)

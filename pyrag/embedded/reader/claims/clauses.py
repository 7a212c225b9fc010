"""Clauses of a sentence, single and joined with their neighbours, and the denials in each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrag.embedded.reader.claims.claim import content_words
from pyrag.embedded.reader.claims.opposites import DENIALS, are_alike, are_opposite, is_among, plain_verbs
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
_MAX_WIDTH = 4  # neighbouring clauses that are read together
_MAX_BREAKS = 24  # per sentence; the text after the last one is a single clause


@dataclass(frozen=True, slots=True)
class Clause:
    """Clause of a sentence, or several neighbouring clauses.

    Args:
        text: Text of the clauses.
        width: Number of clauses.
        is_opening: True if it includes the first clause of the sentence.
    """

    text: str
    width: int
    is_opening: bool

    @property
    def values(self) -> Values:
        """Values in the clause."""
        return values_of(self.text)

    @property
    def words(self) -> list[str]:
        """Content words of the clause, and the words of its names."""
        return [*content_words(self.values.rest), *content_words(" ".join(self.values.names))]

    def denials(self, claimed: frozenset[str], stated: Sequence[str]) -> list[str]:
        """Return the words that deny the statement of the clause.

        Args:
            claimed: Words of the claim. A denial that the claim also has is left out.
            stated: Words of the claim's predicate. Denials after the last of them belong to another statement.
        """
        words = [word.lower() for word in _DENIAL.findall(_NO_DENIAL.sub(" ", self.text))]
        if words and (words[-1] in DENIALS or words[-1].endswith("n't")):
            words.insert(0, words.pop())  # "the cellar is included, the garage is not"
        end = max(
            (
                at
                for at, word in enumerate(words)
                if any(_are_related(word, predicate_word) for predicate_word in stated)
            ),
            default=len(words),
        )
        words = words[: end + 1]
        denials = [word for word in words if word in DENIALS or word.endswith(("n't", "n’t"))]
        if "neither" in denials:
            denials = [word for word in denials if word != "nor"]
        return [word for word in denials if not is_among(word, claimed)]


def _are_related(first: str, second: str) -> bool:
    """Return whether two words are equal, alike or opposite."""
    return first == second or are_alike(first, second) or are_opposite(first, second)


def clauses(sentence: str) -> Iterator[Clause]:
    """Yield the clauses of a sentence: single clauses first, then longer and longer runs of neighbours.

    The whole sentence is last, if it has more clauses than the longest run.
    """
    sentence = plain_verbs(sentence)
    breaks = list(_SPLIT.finditer(sentence))[:_MAX_BREAKS]
    starts = [0, *(match.end() for match in breaks)]
    stops = [*(match.start() for match in breaks), len(sentence)]
    for width in range(1, min(_MAX_WIDTH, len(starts)) + 1):
        for at in range(len(starts) - width + 1):
            text = sentence[starts[at] : stops[at + width - 1]].strip()
            if text:
                yield Clause(text, width, at == 0)
    if len(starts) > _MAX_WIDTH:
        yield Clause(sentence, len(starts), is_opening=True)

"""The embedded rewriter: other search words for a question, by rules.

A question that found nothing is searched for by its subject alone (titles are where pages differ most), with the words
that its relation goes by, and without the words that only ask; whichever of these was not tried yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrag.agents.protocol import Rewritten
from pyrag.embedded.asking import plain_question
from pyrag.embedded.planner.wording import search_terms
from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.relations.relation import Relation
from pyrag.embedded.relations.table import BY_NAME
from pyrag.embedded.words import fold
from pyrag.errors import BadOutputError
from pyrag.trace.model import Passage

_NAMES = re.compile(r"[A-Z0-9][\w'’.-]*(?:(?: (?:of|the|de|la|von|van|and|in|on|to))* [A-Z0-9][\w'’.-]*)*")


# The reader had other names for these, so their words were never searched for; what they would find is unmeasured.
_NOT_SEARCHED = frozenset(
    (
        "country of citizenship",
        "founded by",
        "student of",
        "doctoral advisor",
        "chief executive officer",
        "owned by",
        "namesake",
        "sports team",
        "political party",
        "headquarters location",
        "mouth of the watercourse",
        "language of work",
        "position held",
        "period active",
        "cast member",
    )
)


@dataclass(frozen=True, slots=True)
class EmbeddedRewriter:
    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Return the likeliest search query that was not tried yet.

        Args:
            query: What is asked.
            tried: The queries searched for so far; case, accents and the order of words make no difference.
            passages: Those that were found; their titles tell whether the subject's own page is among them.
            missing: Not used: the rules do not read it.

        Raises:
            BadOutputError: all that the rules know was tried.
        """
        query = plain_question(query)
        seen = {_words(one) for one in tried}
        for strategy, keywords, text in _candidates(query, passages):
            if _words(text) and _words(text) not in seen:
                return Rewritten(text, keywords, strategy)
        raise BadOutputError("the embedded rewriter knows no other words for this question")


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


def _candidates(query: str, passages: Sequence[Passage]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(strategy, keywords, query), the likeliest first."""
    analysis = analyse(query)
    subject = analysis.subject or " ".join(_NAMES.findall(query[:1].lower() + query[1:]))
    titled = any(fold(subject) in fold(one.title) for one in passages)
    relation = BY_NAME.get(analysis.relation)
    if relation is None or not relation.query or relation.name in _NOT_SEARCHED:
        relation = None
    by_title = ("search for the subject's own page", (), subject)
    by_words = (("use the words that go with the relation", *_keyworded(subject, relation)),) if relation else ()
    yield from (*by_words, by_title) if titled else (by_title, *by_words)
    yield "leave out the words that only ask", (), search_terms(query)
    yield "search for the names alone", (), " ".join(_NAMES.findall(query[:1].lower() + query[1:]))


def _keyworded(subject: str, relation: Relation) -> tuple[tuple[str, ...], str]:
    usual = relation.query.replace("{x}", "").split()
    words = tuple(dict.fromkeys([*usual, *relation.verbs[:2], *relation.nouns[:2]]))
    return words, f"{subject} {' '.join(words)}"

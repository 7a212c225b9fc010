"""Rule-based query rewriting.

If a search found nothing, the rewriter tries the subject as the query (pages differ mainly in their titles), the words
that usually go with the relation, and the question without question words. It returns the first query that was not
tried yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrag.agents.protocol import Rewritten
from pyrag.embedded.lexicon import names_of
from pyrag.embedded.plain_question import plain_question
from pyrag.embedded.planner.wording import search_terms
from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.relations.relation import Relation
from pyrag.embedded.relations.table import BY_NAME
from pyrag.embedded.words import NAME_OR_NUMBER_RUN, fold
from pyrag.errors import BadOutputError
from pyrag.trace.model import Passage

# Relations whose words are not used for searching.
_NOT_SEARCHED = names_of("""
    country of citizenship; founded by; student of; doctoral advisor; chief executive officer; owned by; namesake;
    sports team; political party; headquarters location; mouth of the watercourse; language of work; position held;
    period active; cast member
""")


@dataclass(frozen=True, slots=True)
class EmbeddedRewriter:
    """Rule-based `Rewriter`."""

    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Return the most promising search query that was not tried yet.

        Args:
            query: Question to search for.
            tried: Search queries so far. Case, accents and word order are ignored.
            passages: Passages found so far. Their titles show whether the subject's own page is among them.
            missing: Ignored.

        Raises:
            BadOutputError: All queries that the rules can make were already tried.
        """
        query = plain_question(query)
        seen = {_words(earlier) for earlier in tried}
        for strategy, keywords, text in _candidates(query, passages):
            if _words(text) and _words(text) not in seen:
                return Rewritten(text, keywords, strategy)
        raise BadOutputError("the embedded rewriter has no other wording for this question")


def _words(text: str) -> frozenset[str]:
    """Return the words of a query in normal form, for comparing queries."""
    return frozenset(fold(text).split())


def _candidates(query: str, passages: Sequence[Passage]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield strategy, keywords and query of each rewriting, most promising first."""
    analysis = analyse(query)
    subject = analysis.subject or " ".join(NAME_OR_NUMBER_RUN.findall(query[:1].lower() + query[1:]))
    has_page = any(fold(subject) in fold(passage.title) for passage in passages)
    relation = BY_NAME.get(analysis.relation)
    if relation is None or not relation.query or relation.name in _NOT_SEARCHED:
        relation = None
    by_title = ("search for the subject's own page", (), subject)
    by_words = (("use the words that go with the relation", *_keyworded(subject, relation)),) if relation else ()
    yield from (*by_words, by_title) if has_page else (by_title, *by_words)
    yield "leave out the words that only ask", (), search_terms(query)
    yield "search only for the names", (), " ".join(NAME_OR_NUMBER_RUN.findall(query[:1].lower() + query[1:]))


def _keyworded(subject: str, relation: Relation) -> tuple[tuple[str, ...], str]:
    """Return the words that usually go with a relation, and the query that searches for a subject with them."""
    usual = relation.query.replace("{x}", "").split()
    words = tuple(dict.fromkeys([*usual, *relation.verbs[:2], *relation.nouns[:2]]))
    return words, f"{subject} {' '.join(words)}"

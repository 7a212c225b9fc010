"""Check that a program reads all documents if its question asks about all of them.

The check relies on the question's wording, so it may be wrong: the planner is told once, and may ignore it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from pyrag.trace.model import Step

READERS = frozenset(("documents", "count", "each", "read_tables"))
"""Primitives that reach all documents, or all rows of a table."""

FAULT = (
    "the question asks about all documents, and the program reads only the best matches of a search: use count() for "
    "their number, documents() to list them and each() to ask all of them; if the question asks for one thing that a "
    "search finds, write the same program again"
)
"""Message for the planner of a program that only searches."""

_UNITS = (
    "years|months|weeks|days|hours|minutes|seconds|times|people|inhabitants|residents|goals|points|votes|copies|miles|"
    "kilomet(?:er|re)s|met(?:er|re)s|feet|dollars|euros|children|sons|daughters|siblings|brothers|sisters"
)
_NOUNS = rf"(?:(?!(?:{_UNITS})\b)[\w'’-]+ ){{0,4}}?(?!(?:{_UNITS})\b)[\w’'-]+s"
_OF = "(?:of (?:the|our|all|these|those) )?"
_PLURAL_VERB = (
    "(?:are|were|is|have|had|do we|do you|do not|don't|will|per|there|"
    "mention|contain|include|refer|name|use|lack|cost|expire|end|say|state|"
    "concern|cover|cite|describe|discuss|talk|require|allow|belong|come|exist|fall|match|with|without|that|whose|in|"
    "from|of|by|about)"
)
_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:how many|the (?:total )?number of) {_OF}{_NOUNS} {_PLURAL_VERB}\b",
        rf"\bhow many {_OF}{_NOUNS}\W*$",
        r"\b(?:list|name|show|give|find|enumerate|collect|get|summari[sz]e|return|tell me)\b"
        r".{0,20}\b(?:all|every|each)\b",
        rf"^\W*(?:please )?(?:list|enumerate) (?:the |our )?{_NOUNS}\b",
        r"\b(?:for|of|in|from|across|by|over) (?:each|every|all)\b",
        r"^\W*(?:what|which) (?!(?:is|are|was|were|does|do|did)\b|\w+ does\b)"
        rf"(?:of (?:the|our|all) )?{_NOUNS} {_PLURAL_VERB}\b",
        rf"^\W*(?:what|which|who) (?:one )?of (?:the|our|all(?: the)?) {_NOUNS}\b",
        r"^\W*(?:what|which) (?:[\w-]+ ){1,3}(?:has|have|had|is|was) the "
        r"(?:highest|lowest|largest|smallest|longest|shortest|most|fewest|least|latest|earliest|newest|oldest)\b",
        rf"^\W*(?:who |which (?:[\w-]+ ){{1,3}})(?:has |have |had )?(?:[\w-]+ )?the (?:most|fewest) {_NOUNS}\W*$",
    )
)
_CHOICE = re.compile(
    r"\b(?:two|following|these (?:two|three))\b|^(?:which|what|who)\b[^?]*[,:][^?]*\bor\b", re.IGNORECASE
)


@lru_cache(maxsize=256)
def asks_for_all(question: str) -> bool:
    """Return True if a question's wording asks about all documents: their number, a list, or an extreme among them.

    Args:
        question: The question. A choice between a few things does not ask about all documents.
    """
    text = " ".join(question.split())[:1_000]
    return any(pattern.search(text) for pattern in _WORDINGS) and not _CHOICE.search(text)


def corpus_faults(question: str, called: Collection[str], primitives: Collection[str]) -> Iterator[str]:
    """Yield a fault if the question asks about all documents but the program only reads the best matches.

    Args:
        question: The user's question.
        called: Names of the primitives that the program calls.
        primitives: Names of all primitives. Without primitives over the whole corpus, there is no fault.
    """
    if READERS.issubset(primitives) and READERS.isdisjoint(called) and asks_for_all(question):
        yield FAULT


def search_faults(question: str, steps: Sequence[Step], primitives: Collection[str]) -> Iterator[str]:
    """Yield the fault of `corpus_faults` for a program that looked for a table, and then answered from a search.

    Args:
        question: The user's question.
        steps: Steps of the program that gave the answer.
        primitives: Names of all primitives.
    """
    called = {step.primitive for step in steps}
    searches = {step.id for step in steps if step.primitive == "retrieve"}
    searched = any(step.primitive == "answer" and searches.intersection(step.depends_on) for step in steps)
    if searched and called & READERS == {"read_tables"}:
        yield from corpus_faults(question, called - READERS, primitives)

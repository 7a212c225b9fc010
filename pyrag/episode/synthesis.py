"""Facts of a synthesis: the earlier answers in the query of an `answer` call without documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyrag.trace.model import Answer

_LONG_ENOUGH = 3  # minimum characters of a word that identifies a fact; shorter words appear in any text
_QUOTED = 60  # characters of a passage that must appear in the query


@dataclass(frozen=True, slots=True)
class SynthesisFacts:
    """Earlier answers that appear in a query.

    Attributes:
        unknown: Queries whose answers are unknown.
        has_known: Whether the query also contains a known answer or a passage.
    """

    unknown: tuple[str, ...] = ()
    has_known: bool = False

    @property
    def warning(self) -> str:
        """Sentence that names the unknown facts."""
        named = " and ".join(map(repr, self.unknown))
        return f"a step uses an unknown fact beside known ones: the answer to {named} is unknown"


def facts_in(query: str, answers: Mapping[str, Answer], passages: Iterable[str]) -> SynthesisFacts:
    """Return the facts in a synthesis query.

    Args:
        query: Text with the facts and the question.
        answers: Earlier answers that the query may contain, by their own query.
        passages: Texts of passages that the query may contain.
    """
    text = query.casefold()
    unknown = tuple(asked for asked, answer in answers.items() if not answer.known)
    known = any(answer.known and _stands_in(answer.text, text) for answer in answers.values())
    return SynthesisFacts(
        unknown, known or any(passage[:_QUOTED].casefold() in text for passage in passages if passage.strip())
    )


def _stands_in(answer: str, text: str) -> bool:
    """Return True if a text contains the answer, or a word that a program may have extracted from it."""
    folded = answer.casefold().strip()
    words = [word for word in folded.split() if len(word) >= _LONG_ENOUGH]
    return bool(folded) and (folded in text or any(word in text for word in words))

"""Gold passages in the retriever's terms: known by the data set's ids, by title and text, or not at all.

If the retriever uses its own ids, recall is meaningless, as are causes of wrong answers that need gold passages.
`recognise` searches for some gold passages before a run and compares the results.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pyrag.errors import PyRAGError
from pyrag.evaluation.datasets.layout import Question
from pyrag.retrieval.protocol import Retriever
from pyrag.trace.model import Passage, Trace

_PROBES = 8  # searches before a run
_PROBE_TOPK = 10
_PROBE_LENGTH = 300  # characters of a gold passage that is searched for


class KnownBy(StrEnum):
    """Feature used to match a retriever's passages with gold passages."""

    ID = "id"
    TEXT = "title and text"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class GoldPassages:
    """Gold passages of a set.

    Attributes:
        passages: Gold passages by id, if a corpus with them is available.
        known_by: Feature used to match the retriever's passages with them.
    """

    passages: Mapping[str, Passage] = field(default_factory=dict)
    known_by: KnownBy = KnownBy.ID

    @property
    def titles(self) -> dict[str, str]:
        """Titles by id."""
        return {key: passage.title for key, passage in self.passages.items()}

    def as_retrieved(self, question: Question, trace: Trace) -> Question:
        """Return the question with its gold passages under the retriever's ids, or without them if these are unknown.

        Args:
            question: Question with gold passages named by the data set's ids.
            trace: Trace with the retrieved passages.
        """
        if self.known_by is KnownBy.ID or not question.supporting:
            return question
        hops = question.hops or len(question.decomposition) or len(question.supporting)
        if self.known_by is KnownBy.NOTHING or not all(self._keys(question, gold) for gold in question.supporting):
            return replace(question, supporting=(), supporting_alt={}, hops=hops)
        by_text: dict[tuple[str, str], list[str]] = {}
        for key, passage in trace.passages.items():
            by_text.setdefault(_text_key(passage), []).append(key)
        matches = {
            f"{gold} of the set": tuple(key for text in self._keys(question, gold) for key in by_text.get(text, ()))
            for gold in question.supporting
        }
        return replace(question, supporting=tuple(matches), supporting_alt=matches, hops=hops)

    def _keys(self, question: Question, gold: str) -> list[tuple[str, str]]:
        """Return title and text of a gold passage and of its alternatives, if known."""
        ids = (gold, *question.supporting_alt.get(gold, ()))
        return [_text_key(self.passages[key]) for key in ids if key in self.passages]


async def recognise(
    questions: Sequence[Question], passages: Mapping[str, Passage], retriever: Retriever
) -> GoldPassages:
    """Search for some gold passages, and return which feature matches the retriever's passages with them.

    Args:
        questions: Questions with gold passages named by id.
        passages: Gold passages by id, if known.
        retriever: Retriever, which is searched at most eight times.

    Raises:
        PyRAGError: No search succeeded.
    """
    ids = {key for question in questions for key in question.supporting}
    ids |= {key for question in questions for keys in question.supporting_alt.values() for key in keys}
    if not ids:
        return GoldPassages(passages)
    queries = _probes(questions, passages)
    replies = await asyncio.gather(
        *(retriever.retrieve(query, _PROBE_TOPK) for query in queries), return_exceptions=True
    )
    errors = [reply for reply in replies if isinstance(reply, BaseException)]
    if len(errors) == len(replies) or any(not isinstance(error, PyRAGError) for error in errors):
        raise errors[0]
    results = [passage for reply in replies if not isinstance(reply, BaseException) for passage in reply]
    return GoldPassages(passages, _known_by(results, ids, passages))


def _known_by(results: Iterable[Passage], ids: set[str], passages: Mapping[str, Passage]) -> KnownBy:
    texts = {_text_key(passage) for passage in passages.values()}
    known_by = KnownBy.NOTHING
    for passage in results:
        if passage.id in ids and (passage.id not in passages or _text_key(passages[passage.id]) == _text_key(passage)):
            return KnownBy.ID
        if _text_key(passage) in texts:
            known_by = KnownBy.TEXT
    return known_by


def _probes(questions: Sequence[Question], passages: Mapping[str, Passage]) -> list[str]:
    """Return queries for gold passages of questions from all parts of the set."""
    named = [question for question in questions if question.supporting]
    step = max(1, len(named) // _PROBES)
    queries = []
    for question in named[::step][:_PROBES]:
        passage = passages.get(question.supporting[0])
        text = question.question if passage is None else f"{passage.title} {passage.text}"
        queries.append(text[:_PROBE_LENGTH])
    return queries


def _text_key(passage: Passage) -> tuple[str, str]:
    return _tidy(passage.title), _tidy(passage.text)


def _tidy(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())

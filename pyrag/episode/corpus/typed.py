"""Typed answers: the Answer agent's values for a question, with memo and recovery as for other answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrag.agents.protocol import Answerer, Reading, Rewritten
from pyrag.agents.typed.returns import Returns
from pyrag.agents.typed.typed_answer import typed_answerer
from pyrag.episode.episode import Episode
from pyrag.episode.program_values import plain
from pyrag.episode.requests import AskingStep
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.events import Observer
from pyrag.trace.model import Passage, shorten
from pyrag_sandbox import PrimitiveError

_MAX_RATIONALE = 300  # characters of a reason that stays with a row


def returns_of(value: Any) -> Returns | None:
    """Return the type that a program requests. Raises `PrimitiveError` if it is invalid."""
    if value is None:
        return None
    try:
        return Returns.of(plain(value))
    except ValueError as error:
        raise PrimitiveError(str(error), "ValueError") from None


@dataclass(frozen=True, slots=True)
class TypedDesk:
    """Proxy for an episode that answers and recovers with values of a type.

    Attributes:
        answerer: Agent that answers; see `desk_of`.
        returns: Type of the answers; None for texts.
        keeps: Whether to keep passages of further searches in the episode, and the model's replies in the memo.
    """

    episode: Episode
    answerer: Answerer
    returns: Returns | None
    keeps: bool = True

    @property
    def observer(self) -> Observer:
        return self.episode.observer

    @property
    def can_rewrite(self) -> bool:
        return self.episode.can_rewrite

    def warn(self, message: str) -> None:
        """Add a warning to the trace."""
        self.episode.warn(message)

    async def fetch(
        self, query: str, topk: int, where: Filter | None = None, step: AskingStep | None = None
    ) -> tuple[list[Passage], bool]:
        """Return the passages that match best; see `Episode.fetch`.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: The program's filter, which narrows the caller's.
            step: Step that searches.
        """
        if self.keeps:
            return await self.episode.fetch(query, topk, where, step)
        return await self.episode.search(query, topk, where, step, keep=False)

    async def read(
        self, query: str, passages: Sequence[Passage] | None, *, step: AskingStep | None = None
    ) -> tuple[Reading, bool]:
        """Return the reading, and True if the same request had been made before; see `Episode.read`.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
            step: Step that asks.
        """
        agent = self.answerer if self.keeps else _Brief(self.answerer)
        returns = self.returns.key if self.returns else ""
        return await self.episode.read(query, passages, "answer", agent, step, returns)

    async def rewrite(
        self,
        query: str,
        tried: Sequence[str],
        passages: Sequence[Passage],
        missing: str,
        step: AskingStep | None = None,
    ) -> tuple[Rewritten, bool]:
        """Return a rewritten query, and True if the same request had been made before; see `Episode.rewrite`.

        Args:
            query: Sub-query that has no answer yet.
            tried: Queries searched for so far.
            passages: Passages that these searches returned.
            missing: Information that the passages lack.
            step: Step that needs the query.
        """
        return await self.episode.rewrite(query, tried, passages, missing, step)


@dataclass(frozen=True, slots=True)
class _Brief:
    """Answerer that drops the model's replies from its readings, since the memo keeps thousands of readings."""

    inner: Answerer

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the reading without the model's replies; see `Answerer.answer`."""
        reading = await self.inner.answer(query, passages)
        return replace(reading, raw=(), rationale=shorten(reading.rationale, _MAX_RATIONALE))


def desk_of(episode: Episode, returns: Returns | None, *, keeps: bool = True) -> TypedDesk:
    """Return a proxy of an episode that answers with values of a type.

    Args:
        episode: Episode of the question.
        returns: Type of the answers; None for texts.
        keeps: Whether to keep passages and replies in the episode; see `TypedDesk`.

    Raises:
        PrimitiveError: The engine cannot answer with this type.
    """
    answerer = episode.agents.answerer
    if returns is not None and episode.ledger.recording is None:
        try:
            answerer = typed_answerer(answerer, returns)
        except ValueError as error:
            raise PrimitiveError(str(error), "ValueError") from None
    return TypedDesk(episode, answerer, returns, keeps)

"""Readings of a type: the Answer agent of a question for values, with memo and recovery like any other reading."""

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
    """Return the type that a program asks for. Raises `PrimitiveError` if it is not one."""
    if value is None:
        return None
    try:
        return Returns.of(plain(value))
    except ValueError as error:
        raise PrimitiveError(str(error), "ValueError") from None


@dataclass(frozen=True, slots=True)
class TypedDesk:
    """Part of an episode that reads and recovers, with answers of a type.

    Attributes:
        answerer: Agent that reads; see `desk_of`.
        returns: Type of the answers; None for texts.
        keeps: Whether passages of further searches stay in the episode, and replies in the memo as they are.
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
        """Return the passages that match best. Args: as in `Episode.fetch`."""
        if self.keeps:
            return await self.episode.fetch(query, topk, where, step)
        return await self.episode.search(query, topk, where, step, keep=False)

    async def read(
        self, query: str, passages: Sequence[Passage] | None, *, step: AskingStep | None = None
    ) -> tuple[Reading, bool]:
        """Return the reading, and True if the same request had been made before. Args: as in `Episode.read`."""
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
        """Return a rewritten query. Args: as in `Episode.rewrite`."""
        return await self.episode.rewrite(query, tried, passages, missing, step)


@dataclass(frozen=True, slots=True)
class _Brief:
    """Answerer whose readings hold no replies of the model, since thousands of them stay in the memo."""

    inner: Answerer

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the reading. Args: as in `Answerer.answer`."""
        reading = await self.inner.answer(query, passages)
        return replace(reading, raw=(), rationale=shorten(reading.rationale, _MAX_RATIONALE))


def desk_of(episode: Episode, returns: Returns | None, *, keeps: bool = True) -> TypedDesk:
    """Return the desk for answers of a type.

    Args:
        episode: The question under way.
        returns: Type of the answers; None for texts.
        keeps: Whether passages and replies stay in the episode; see `TypedDesk`.

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

"""What an episode needs of a planner's reply, and of a gate before the first program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pyrag.trace.model import Program

if TYPE_CHECKING:
    from pyrag.episode.episode import Episode


class PlanReply(Protocol):
    """Plan of an agent with its notes. Some plans also have `warnings`."""

    @property
    def note(self) -> str: ...
    @property
    def doubt(self) -> bool: ...
    @property
    def fallback(self) -> bool: ...


class ProgramGate(Protocol):
    """Gate that a program passes before it runs."""

    async def pass_through(self, episode: Episode, program: Program) -> None:
        """Raise `PyRAGError` if a program must not run.

        Args:
            episode: The question.
            program: The program.
        """
        ...

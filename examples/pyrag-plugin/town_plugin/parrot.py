"""The engine `parrot:WORD`: a model that says one word."""

from __future__ import annotations

from collections.abc import Sequence

from pyrag.extend import Message, Reply, Sampling


class Parrot:
    """A chat model."""

    def __init__(self, word: str) -> None:
        self.name = f"parrot:{word}"
        self._word = word

    async def complete(self, messages: Sequence[Message], sampling: Sampling | None = None) -> Reply:
        """Return the word.

        Args:
            messages: Not used.
            sampling: Not used.
        """
        return Reply(f"<answer>{self._word}</answer>", 1, 1)

    async def aclose(self) -> None:
        """Do nothing."""


def open_parrot(rest: str) -> Parrot:
    """Return the model of the spec `parrot:REST`."""
    return Parrot(rest)

"""Entry of the experience library, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.errors import DataError
from pyrag.methods.hera.topology import Characterisation

MAX_INSIGHT = 600  # characters


@dataclass(frozen=True, slots=True)
class Experience:
    """Profile, insight and utility, (c, z, u) in §3.2 of HERA's paper.

    `utility` counts the successful trajectories that were shown the insight (u, algorithm 3); `uses` counts all
    trajectories that were shown it. An `id` is never reused, even after the entry was pruned.
    """

    id: int
    profile: Characterisation
    insight: str
    utility: int = 0
    uses: int = 0

    @property
    def success_rate(self) -> float:
        """Share of the uses that succeeded, from 0 to 1, with one assumed success and one assumed failure (Laplace).

        An untested insight thus ranks between those that help and those that do not.
        """
        return (self.utility + 1) / (self.uses + 2)


def one_line(text: str) -> str:
    """Return a text without line breaks and control characters, because models' texts are shown in terminals."""
    return "".join(character for character in " ".join(text.split()) if character.isprintable())


def checked_insight(text: str) -> str:
    """Return an insight in its stored form. Raises `DataError` if it is empty or longer than `MAX_INSIGHT`."""
    insight = one_line(text)
    if not insight or len(insight) > MAX_INSIGHT:
        raise DataError(f"an insight must have 1 to {MAX_INSIGHT} characters, not {len(insight)}: shorten it")
    return insight

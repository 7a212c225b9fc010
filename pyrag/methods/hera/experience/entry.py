"""An entry of the experience library, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.errors import DataError
from pyrag.methods.hera.topology import Characterisation

MAX_INSIGHT = 600  # characters


@dataclass(frozen=True, slots=True)
class Experience:
    """Profile, insight and utility, (c, z, u) in HERA's §3.2.

    `utility` counts the trajectories that were shown the insight and succeeded (u, algorithm 3), `uses` all that were
    shown it. `id` is never given again, also where the entry is pruned.
    """

    id: int
    profile: Characterisation
    insight: str
    utility: int = 0
    uses: int = 0

    @property
    def success_rate(self) -> float:
        """Share of the uses that succeeded, from 0 to 1. One success and one failure are taken as given (Laplace), so
        that an insight nobody has tried stands between those that help and those that do not."""
        return (self.utility + 1) / (self.uses + 2)


def one_line(text: str) -> str:
    """Without line breaks and orders to a terminal: what models wrote is shown to people."""
    return "".join(one for one in " ".join(text.split()) if one.isprintable())


def checked_insight(text: str) -> str:
    """The insight as it is kept. Raises `DataError` where it is empty or longer than `MAX_INSIGHT` characters."""
    insight = one_line(text)
    if not insight or len(insight) > MAX_INSIGHT:
        raise DataError(f"an insight must have 1 to {MAX_INSIGHT} characters, not {len(insight)}: shorten it")
    return insight

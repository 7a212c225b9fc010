"""The embedded engine's coach: it says which style of topology did best, in words that its orchestrator follows.

That is all that this engine can learn. Its agents have no prompts, so nobody is blamed and nothing is taught.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrag.methods.hera.coach.protocol import Axis, Guidance, Seen, Settlement
from pyrag.methods.hera.embedded.orchestrator import advice, style_of
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import Agent, Characterisation


class EmbeddedCoach:
    async def reflect(self, profile: Characterisation, group: Sequence[Seen]) -> tuple[str, ...]:
        """Return the style of the best trajectory as the only insight; empty where that is the plain one.

        Args: those of `Coach.reflect`.
        """
        styles = [style_of(one.topology) for one in group]
        # A question without parts is always asked as a whole: only where others split it does that tell anything.
        best = replace(styles[0], whole=styles[0].whole and not all(style.whole for style in styles))
        said = advice(best)
        return (said,) if said else ()

    async def settle(self, insight: str, entries: Sequence[Experience]) -> Settlement:
        """Add an insight that is not in the library yet: each style is an entry of its own.

        Args: those of `Coach.settle`.
        """
        return Settlement("KEEP" if any(one.insight == insight for one in entries) else "ADD")

    async def blame(self, trajectory: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Blame nobody. Args: those of `Coach.blame`."""
        return ()

    async def vary(self, agent: Agent, axis: Axis, failures: Sequence[str]) -> tuple[str, ...]:
        """Return no rules. Args: those of `Coach.vary`."""
        return ()

    async def distil(self, agent: Agent, failures: Sequence[str], results: Sequence[str]) -> Guidance:
        """Return empty guidance. Args: those of `Coach.distil`."""
        return Guidance()

    async def shorten(self, agent: Agent, guidance: Guidance, characters: int) -> Guidance:
        """Return the guidance unchanged. Args: those of `Coach.shorten`."""
        return guidance

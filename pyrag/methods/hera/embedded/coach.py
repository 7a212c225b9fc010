"""Coach of the embedded engine: it names the style of the best topology, in words that its orchestrator understands.

This is all that the embedded engine can learn. Its agents have no prompts, so they are neither blamed nor taught.
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
        """Return the style of the best trajectory as the only insight; empty if this is the default style.

        Args:
            profile: The kind of question.
            group: Trajectories of that question, best first.
        """
        styles = [style_of(trajectory.topology) for trajectory in group]
        # A simple question is always asked as a whole, so "whole" only counts if other trajectories split the question.
        best = replace(styles[0], whole=styles[0].whole and not all(style.whole for style in styles))
        insight = advice(best)
        return (insight,) if insight else ()

    async def settle(self, insight: str, entries: Sequence[Experience]) -> Settlement:
        """Add an insight that is not yet in the library. Each style is an entry of its own.

        Args:
            insight: The new insight.
            entries: Similar entries of the library.
        """
        return Settlement("KEEP" if any(entry.insight == insight for entry in entries) else "ADD")

    async def blame(self, trajectory: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Return no agents, since this coach never blames any.

        Args:
            trajectory: Ignored.
            agents: Ignored.
        """
        return ()

    async def vary(self, agent: Agent, axis: Axis, failures: Sequence[str]) -> tuple[str, ...]:
        """Return no rules.

        Args:
            agent: Ignored.
            axis: Ignored.
            failures: Ignored.
        """
        return ()

    async def distil(self, agent: Agent, failures: Sequence[str], results: Sequence[str]) -> Guidance:
        """Return empty guidance.

        Args:
            agent: Ignored.
            failures: Ignored.
            results: Ignored.
        """
        return Guidance()

    async def shorten(self, agent: Agent, guidance: Guidance, characters: int) -> Guidance:
        """Return the guidance unchanged.

        Args:
            agent: Ignored.
            guidance: The guidance to return.
            characters: Ignored.
        """
        return guidance

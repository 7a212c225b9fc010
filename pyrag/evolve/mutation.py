"""Topology mutation: other structures for a question that every topology failed (HERA, §3.5 and algorithm 6).

The orchestrator performs both operations as revisions of its topology, because it knows substitutes for an agent. Its
reply is checked like any other topology.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyrag.errors import BadOutputError
from pyrag.evolve.trajectories import Players, Trajectory
from pyrag.methods.hera.topology import Agent, Topology

OPERATIONS = ("replace", "augment")  # options A and B


@dataclass(frozen=True, slots=True)
class Mutation:
    """Mutated topology, with a name for the change."""

    label: str  # such as "replace retriever"
    topology: Topology


async def mutations(players: Players, group: Sequence[Trajectory], agents: Sequence[Agent]) -> list[Mutation]:
    """Return the candidates C_Γ: for each agent at fault, a topology without it, and one with another agent after it.

    They are revisions of the group's first topology. Topologies that were already tried are skipped, as are revisions
    that the orchestrator cannot make. The orchestrator sees no experience, so that no entry is credited with the
    result.

    Args:
        players: The agents.
        group: Failed trajectories of a question.
        agents: Agents at fault.
    """
    failed, tried = group[0], [trajectory.topology.nodes for trajectory in group]
    candidates: list[Mutation] = []
    for agent in agents:
        for operation in OPERATIONS:
            wish = players.prompts.render_method(f"evolve.{operation}", {"agent": agent})[1]
            try:
                revised = await players.revise(failed.question, failed.topology, wish)
            except BadOutputError:
                continue
            if revised.nodes not in tried:
                tried.append(revised.nodes)
                candidates.append(Mutation(f"{operation} {agent}", replace(revised, experience=())))
    return candidates

"""Topology mutation: other structures for a question that every topology failed at (HERA, §3.5 and algorithm 6).

The orchestrator does both operations, as a revision of its topology: it knows what can stand in for an agent, and its
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
    label: str  # "replace retriever"
    topology: Topology


async def mutations(players: Players, group: Sequence[Trajectory], agents: Sequence[Agent]) -> list[Mutation]:
    """Candidates C_Γ: for each agent at fault one topology without it and one with another agent behind it, as far as
    the orchestrator finds one that was not tried. They revise the first of the group that failed. Experience is not
    shown for it, so that none is credited with what comes of it."""
    failed, tried = group[0], [one.topology.nodes for one in group]
    found: list[Mutation] = []
    for agent in agents:
        for operation in OPERATIONS:
            wish = players.prompts.render_method(f"evolve.{operation}", {"agent": agent})[1]
            try:
                revised = await players.revise(failed.question, failed.topology, wish)
            except BadOutputError:
                continue
            if revised.nodes not in tried:
                tried.append(revised.nodes)
                found.append(Mutation(f"{operation} {agent}", replace(revised, experience=())))
    return found

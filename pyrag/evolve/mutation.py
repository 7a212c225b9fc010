"""Topology mutation: other structures for a question that every topology failed at (HERA, §3.5 and algorithm 6).

The orchestrator does both operations, as a revision of its topology: it knows what can stand in for an agent, and its
reply is checked like any other topology.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.errors import BadOutputError
from pyrag.evolve.trajectories import Players, Trajectory
from pyrag.topology import Agent, Topology

OPERATIONS = ("replace", "augment")  # options A and B


@dataclass(frozen=True, slots=True)
class Mutation:
    label: str  # "replace retriever"
    topology: Topology


async def mutations(players: Players, failed: Trajectory, agents: Sequence[Agent]) -> list[Mutation]:
    """Candidates C_Γ: for each agent at fault one topology without it and one with another agent behind it, as far as
    the orchestrator finds one that was not tried."""
    found: list[Mutation] = []
    for agent in agents:
        for operation in OPERATIONS:
            wish = players.prompts.render_method(f"evolve.{operation}", {"agent": agent})[1]
            try:
                revised = await players.revise(failed.question, failed.topology, wish)
            except BadOutputError:
                continue
            if revised.nodes not in [failed.topology.nodes, *(one.topology.nodes for one in found)]:
                found.append(Mutation(f"{operation} {agent}", revised))
    return found

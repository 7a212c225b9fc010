"""Topology mutation: other structures for a question that every topology failed (HERA, §3.5 and algorithm 6).

The orchestrator does both operations as a revision of its topology: it knows substitutes for an agent, and its reply is
checked like any other topology.
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
    """Return the candidates C_Γ: per agent at fault, a topology without it and one with another agent behind it.

    They revise the first of the group. A topology that was tried, or that the orchestrator cannot find, is left out.
    Experience is not shown, so that no entry is credited with the result.

    Args:
        players: The agents.
        group: Failed trajectories of one question.
        agents: Those at fault.
    """
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

"""Measures of agent graphs and of learning (HERA, §5.4 and figure 6).

A trajectory's graph G_τ = (V, E) has the agents of its topology as nodes and an edge for each hand-over. Hand-overs are
counted where frequency matters (entropy, self-loops); cycles and diameter are those of the simple directed graph.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyrag.methods.hera.topology import Agent, Topology

Edge = tuple[Agent, Agent]
WINDOW = 20  # trajectories that an entropy is taken over
PHASES = ("initial", "exploration", "refinement", "optimization")


@dataclass(frozen=True, slots=True)
class GraphMeasures:
    """Figure 6 (a) to (e). `efficiency` is F1 per agent; `diameter` counts hand-overs."""

    agents: int
    efficiency: float
    self_loops: int
    cycles: int
    diameter: int


def measures_of(topology: Topology, f1: float) -> GraphMeasures:
    edges = hand_overs(topology)
    agents = {node.agent for node in topology.nodes}
    return GraphMeasures(
        agents=len(agents),
        efficiency=f1 / len(agents) if agents else 0.0,
        self_loops=sum(source == target for source, target in edges),
        cycles=count_cycles(edges),
        diameter=diameter(edges),
    )


def hand_overs(topology: Topology) -> list[Edge]:
    """(a) → (b) for each result of an agent that another one works with, in the order of the topology."""
    return [(source.agent, target.agent) for source, target in topology.edges]


def transition_entropy(edges: Iterable[Edge]) -> float:
    """H_trans = −Σ P(i → j) ln P(i → j) over the hand-overs, in nats; 0 where there is none (§5.4.1)."""
    counts = Counter(edges)
    total = counts.total()
    return -sum(count / total * math.log(count / total) for count in counts.values()) if total else 0.0


def entropies(trajectories: Sequence[Sequence[Edge]], window: int = WINDOW) -> list[float]:
    """The entropy of each trajectory together with those before it, at most `window` of them."""
    return [
        transition_entropy(edge for edges in trajectories[max(0, end - window) : end] for edge in edges)
        for end in range(1, len(trajectories) + 1)
    ]


def count_cycles(edges: Iterable[Edge]) -> int:
    """Closed paths that visit no agent twice; self-loops are counted apart."""
    after = _successors(edges)
    order = {agent: place for place, agent in enumerate(sorted(after))}

    def closed(start: Agent, at: Agent, seen: frozenset[Agent]) -> int:
        """Paths from `at` back to `start`, which is the first of its cycle in alphabetical order."""
        found = 0
        for one in after[at]:
            if one == start:
                found += 1
            elif one not in seen and order[one] > order[start]:
                found += closed(start, one, seen | {one})
        return found

    return sum(closed(agent, agent, frozenset({agent})) for agent in after)


def diameter(edges: Iterable[Edge]) -> int:
    """The longest of the shortest paths between agents of which one reaches the other."""
    after = _successors(edges)
    return max((_farthest(agent, after) for agent in after), default=0)


def _farthest(start: Agent, after: Mapping[Agent, set[Agent]]) -> int:
    seen, frontier, steps = {start}, {start}, 0
    while frontier := {one for agent in frontier for one in after[agent]} - seen:
        seen |= frontier
        steps += 1
    return steps


def _successors(edges: Iterable[Edge]) -> dict[Agent, set[Agent]]:
    after: dict[Agent, set[Agent]] = defaultdict(set)
    for source, target in edges:
        after[target]  # an agent that hands nothing over is in the graph too
        if source != target:
            after[source].add(target)
    return dict(after)


def phases(count: int) -> list[range]:
    """The four phases that the paper cuts learning into, as ranges of trajectories of about equal length."""
    bounds = [round(count * part / len(PHASES)) for part in range(len(PHASES) + 1)]
    return [range(low, high) for low, high in itertools.pairwise(bounds)]

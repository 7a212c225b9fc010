"""Measures of agent graphs and of learning (HERA, §5.4 and figure 6).

The graph G_τ = (V, E) of a trajectory has agents as nodes and hand-overs as edges. Repeated hand-overs count for
entropy and self-loops; cycles and diameter use the simple directed graph.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from pyrag.methods.hera.topology import Agent, Topology

Edge = tuple[Agent, Agent]
WINDOW = 20  # number of trajectories for an entropy
PHASES = ("initial", "exploration", "refinement", "optimization")


@dataclass(frozen=True, slots=True)
class GraphMeasures:
    """Measures of figure 6 (a) to (e). `efficiency` is F1 per agent; `diameter` counts hand-overs."""

    agents: int
    efficiency: float
    self_loops: int
    cycles: int
    diameter: int


def measures_of(topology: Topology, f1: float) -> GraphMeasures:
    """Return the measures of a trajectory's graph.

    Args:
        topology: Topology of the trajectory.
        f1: F1 of its answer, from 0 to 1.
    """
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
    """Return an edge for each result that one agent passes to another, in the order of the topology."""
    return [(source.agent, target.agent) for source, target in topology.edges]


def transition_entropy(edges: Iterable[Edge]) -> float:
    """Return H_trans = −Σ P(i → j) ln P(i → j) over the hand-overs, in nats; 0 without hand-overs (§5.4.1)."""
    counts = Counter(edges)
    total = counts.total()
    return -sum(count / total * math.log(count / total) for count in counts.values()) if total else 0.0


def entropies(trajectories: Sequence[Sequence[Edge]], window: int = WINDOW) -> list[float]:
    """Return the entropy at each trajectory, computed over this trajectory and the preceding ones.

    Args:
        trajectories: Hand-overs of each trajectory.
        window: Maximum number of trajectories that an entropy is computed over.
    """
    return [
        transition_entropy(edge for edges in trajectories[max(0, end - window) : end] for edge in edges)
        for end in range(1, len(trajectories) + 1)
    ]


def count_cycles(edges: Iterable[Edge]) -> int:
    """Count the closed paths that visit no agent twice, without self-loops."""
    after = _successors(edges)
    order = {agent: place for place, agent in enumerate(sorted(after))}

    def closed(start: Agent, at: Agent, seen: frozenset[Agent]) -> int:
        """Count the paths from `at` to `start`, the alphabetically first agent of its cycle."""
        count = 0
        for successor in after[at]:
            if successor == start:
                count += 1
            elif successor not in seen and order[successor] > order[start]:
                count += closed(start, successor, seen | {successor})
        return count

    return sum(closed(agent, agent, frozenset({agent})) for agent in after)


def diameter(edges: Iterable[Edge]) -> int:
    """Return the longest of the shortest paths between connected agents."""
    after = _successors(edges)
    return max((_farthest(agent, after) for agent in after), default=0)


def _farthest(start: Agent, after: Mapping[Agent, set[Agent]]) -> int:
    seen, frontier, steps = {start}, {start}, 0
    while frontier := {successor for agent in frontier for successor in after[agent]} - seen:
        seen |= frontier
        steps += 1
    return steps


def _successors(edges: Iterable[Edge]) -> dict[Agent, set[Agent]]:
    after: dict[Agent, set[Agent]] = defaultdict(set)
    for source, target in edges:
        after[target]  # adds agents that pass nothing on
        if source != target:
            after[source].add(target)
    return dict(after)


def phases(count: int) -> list[range]:
    """Return the paper's four phases of learning, as ranges of trajectories of roughly equal length."""
    bounds = [round(count * part / len(PHASES)) for part in range(len(PHASES) + 1)]
    return [range(low, high) for low, high in itertools.pairwise(bounds)]


def lowess(x: Sequence[float], y: Sequence[float], share: float = 2 / 3, rounds: int = 3) -> list[float]:
    """Return the LOWESS curve of points at each x: local lines, refitted without outliers (Cleveland, 1981).

    Args:
        x: Positions, ascending.
        y: Values.
        share: Share of the points used to fit a local line.
        rounds: Number of refits with bisquare weights of the residuals.
    """
    near = min(len(x), max(2, int(share * len(x) + 1e-7)))
    trust, fitted = [1.0] * len(x), [float(value) for value in y]
    for _ in range(rounds + 1 if near > 1 else 0):
        fitted = [_local_line(place, x, y, trust, near) for place in x]
        residuals = [abs(value - at) for value, at in zip(y, fitted, strict=True)]
        limit = 6 * median(residuals)
        if limit <= 1e-7 * fmean(residuals):
            break  # the curve passes through most points, and rounding errors say nothing about outliers
        trust = [max(0.0, 1 - (residual / limit) ** 2) ** 2 for residual in residuals]
    return fitted


def _local_line(place: float, x: Sequence[float], y: Sequence[float], trust: Sequence[float], near: int) -> float:
    """Return the value, at a place, of the line through the nearest points, weighted by distance and trust."""
    distances = [abs(other - place) for other in x]
    width = sorted(distances)[near - 1]
    nearness = [
        1.0 if distance <= 0.001 * width else max(0.0, 1 - (distance / (width or 1)) ** 3) ** 3
        for distance in distances
    ]
    weights = [trusted * near_by for trusted, near_by in zip(trust, nearness, strict=True)]
    total = sum(weights) or 1
    weights = [weight / total for weight in weights]
    middle = sum(weight * other for weight, other in zip(weights, x, strict=True))
    spread = sum(weight * (other - middle) ** 2 for weight, other in zip(weights, x, strict=True))
    level = sum(weight * value for weight, value in zip(weights, y, strict=True))
    if spread <= 1e-6 * (max(x) - min(x)) ** 2:
        return level
    slope = sum(w * (other - middle) * value for w, other, value in zip(weights, x, y, strict=True)) / spread
    return level + slope * (place - middle)

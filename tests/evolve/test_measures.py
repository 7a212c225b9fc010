"""Measures of agent graphs against slow definitions of their own, written out over all sequences of agents."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.evolve.measures import (
    Edge,
    count_cycles,
    diameter,
    entropies,
    lowess,
    measures_of,
    phases,
    transition_entropy,
)
from pyrag.methods.hera.topology import AGENTS, Node, Topology

FEW = AGENTS[:5]
edge_lists = st.lists(st.tuples(st.sampled_from(FEW), st.sampled_from(FEW)), max_size=14)
trajectories = st.lists(edge_lists, max_size=8)


def cycles_by_brute_force(edges: list[Edge]) -> int:
    """Every ordering of every subset that closes, each cycle counted once per starting point."""
    there = set(edges)
    return sum(
        all(pair in there for pair in itertools.pairwise((*order, order[0])))
        for size in range(2, len(FEW) + 1)
        for order in itertools.permutations(FEW, size)
        if order[0] == min(order)
    )


def diameter_by_brute_force(edges: list[Edge]) -> int:
    """Floyd and Warshall's distances."""
    far = {(a, b): 0.0 if a == b else 1.0 if (a, b) in edges else math.inf for a in FEW for b in FEW}
    for via, a, b in itertools.product(FEW, FEW, FEW):
        far[a, b] = min(far[a, b], far[a, via] + far[via, b])
    return int(max(one for one in far.values() if one < math.inf))


@given(edge_lists)
def test_cycles(edges: list[Edge]) -> None:
    assert count_cycles(edges) == cycles_by_brute_force(edges)


@given(edge_lists)
def test_diameter(edges: list[Edge]) -> None:
    assert diameter(edges) == diameter_by_brute_force(edges)


@given(edge_lists)
def test_entropy(edges: list[Edge]) -> None:
    shares = [edges.count(pair) / len(edges) for pair in itertools.product(FEW, FEW) if pair in edges]
    assert transition_entropy(edges) == pytest.approx(-sum(p * math.log(p) for p in shares))
    assert 0 <= transition_entropy(edges) <= math.log(max(len(set(edges)), 1)) + 1e-9


@given(trajectories, st.integers(1, 4))
def test_entropy_slides_over_the_last_trajectories(lists: list[list[Edge]], window: int) -> None:
    for end, value in enumerate(entropies(lists, window), start=1):
        recent = [edge for edges in lists[:end][-window:] for edge in edges]
        assert value == pytest.approx(transition_entropy(recent))


def test_the_window_is_twenty_trajectories() -> None:
    rare: list[Edge] = [("retriever", "conclude")]
    common: list[Edge] = [("retriever", "reflect")]
    lists = [rare, *[common] * 20]
    assert [value > 0 for value in entropies(lists)] == [False, *[True] * 19, False]


def test_measures_of_a_topology() -> None:
    nodes = (
        Node("a", "retriever"),
        Node("b", "answer_generator", depends_on=("a",)),
        Node("c", "retriever", depends_on=("b",)),
        Node("d", "retriever", depends_on=("c",)),
        Node("e", "conclude", depends_on=("b",)),
    )
    found = measures_of(Topology(nodes), f1=0.6)
    assert (found.agents, found.self_loops, found.cycles, found.diameter) == (3, 1, 1, 2)
    assert found.efficiency == pytest.approx(0.2)


@given(st.integers(0, 100))
def test_phases_cut_learning_into_four(count: int) -> None:
    parts = phases(count)
    assert [one for part in parts for one in part] == list(range(count))
    assert len(parts) == 4
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_lowess_equals_the_one_of_r() -> None:
    """The values of `lowess(cars)` in R, whose points have equal places and outliers."""
    speed = [4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15]
    speed += [15, 16, 16, 17, 17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25]
    dist = [2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26]
    dist += [54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85]
    curve = lowess(speed, dist)
    assert curve[:10] == pytest.approx(
        [4.965459, 4.965459, 13.124495, 13.124495, 15.858633, 18.579691, 21.280313, 21.280313, 21.280313, 24.129277],
        abs=1e-6,
    )
    assert curve[-2:] == pytest.approx([78.643164, 84.328698], abs=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_lowess_keeps_a_line(count: int) -> None:
    places = [float(place) for place in range(count)]
    assert lowess(places, [3 * place + 1 for place in places]) == pytest.approx([3 * place + 1 for place in places])


def test_lowess_does_not_follow_an_outlier() -> None:
    values = [10.0] * 30
    values[15] = 900.0
    values[16] = 11.0
    assert max(lowess(range(30), values)) < 11.5

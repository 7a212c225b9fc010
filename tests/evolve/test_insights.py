"""Algorithms 2 and 3: ranking, mixed groups, and what becomes of an insight in a real library."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.agents.prompts import load_prompts
from pyrag.evaluation.datasets.layout import Question
from pyrag.evolve.insights import consolidate, is_mixed, ranked, reflect
from pyrag.evolve.rope import Subject, cut, project
from pyrag.evolve.trajectories import Trajectory
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.methods.hera.coach.agent import LLMCoach
from pyrag.methods.hera.coach.protocol import Guidance
from pyrag.methods.hera.experience.library import Library
from pyrag.methods.hera.topology import Characterisation, Topology
from pyrag.trace.model import Answer, Trace

BRIDGE = Characterisation("bridge")
QUESTION = Question("q", "?", ("x",))
FIRST = "Validate the passages before answering."
LIKE_IT = "Validate passages again before answering questions."

scores = st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(0, 5))


def trajectory(f1: float, tokens: int = 0) -> Trajectory:
    return Trajectory(QUESTION, Topology(()), Trace("?", Answer("x")), f1, tokens)


def coach(*replies: Any) -> LLMCoach:
    return LLMCoach(ScriptedChat([json.dumps(one) for one in replies]), load_prompts())


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "experience.db", write=True) as library:
        with library.update() as draft:
            draft.add(BRIDGE, FIRST)
        yield library


@given(st.lists(scores, max_size=6))
def test_groups_are_ranked_by_f1_then_tokens(values: list[tuple[float, int]]) -> None:
    found = [(one.f1, one.tokens) for one in ranked([trajectory(*value) for value in values])]
    assert sorted(found) == sorted(values)
    for (f1, tokens), (next_f1, next_tokens) in itertools.pairwise(found):
        assert f1 > next_f1 or (f1 == next_f1 and tokens <= next_tokens)


@given(st.lists(st.sampled_from([0.0, 0.49, 0.5, 1.0]), max_size=6))
def test_a_group_is_mixed_when_some_succeed_and_some_fail(values: list[float]) -> None:
    group = [trajectory(value) for value in values]
    assert is_mixed(group, 0.5) == (any(one >= 0.5 for one in values) and any(one < 0.5 for one in values))


async def consolidated(library: Library, insight: str, *replies: Any) -> tuple[list[str], dict[int, str]]:
    with library.update() as draft:
        done = await consolidate(coach(*replies), draft, BRIDGE, [insight])
    return done, {one.id: one.insight for one in library.entries()}


async def test_an_insight_like_no_other_is_added_without_a_call(library: Library) -> None:
    done, entries = await consolidated(library, "Compare dates in the conclude agent.")
    assert entries == {1: FIRST, 2: "Compare dates in the conclude agent."}
    assert done == ["ADD 2: Compare dates in the conclude agent."]


async def test_the_coach_decides_on_one_that_is_like_others(library: Library) -> None:
    assert (await consolidated(library, LIKE_IT, {"operation": "KEEP", "entries": []}))[1] == {1: FIRST}
    merged = {"operation": "MERGE", "entries": [1], "insight": "Validate twice."}
    assert (await consolidated(library, LIKE_IT, merged))[1] == {1: "Validate twice."}


async def test_what_contradicts_goes_if_it_did_not_help(library: Library) -> None:
    prune = {"operation": "PRUNE", "entries": [1]}
    done, entries = await consolidated(library, LIKE_IT, prune)
    assert entries == {2: LIKE_IT}
    assert done[0].startswith("PRUNE 1")


async def test_what_contradicts_stays_if_it_helped(library: Library) -> None:
    with library.update() as draft:
        for _ in range(3):
            draft.used([1], succeeded=True)
    _, entries = await consolidated(library, LIKE_IT, {"operation": "PRUNE", "entries": [1]})
    assert entries == {1: FIRST}


async def test_only_unhelpful_contradicted_entries_are_pruned(library: Library) -> None:
    with library.update() as draft:
        draft.add(BRIDGE, "Never validate passages before answering.", utility=3, uses=3)
    done, entries = await consolidated(library, LIKE_IT, {"operation": "PRUNE", "entries": [1, 2]})
    assert list(entries) == [2]
    assert done == [f"PRUNE 1: {LIKE_IT}"]  # one that helped says otherwise, so it is not added


async def test_a_coach_sees_a_group_best_first() -> None:
    chat = ScriptedChat(['{"insights": ["Say less."]}'])
    group = [trajectory(0.2), trajectory(1.0, 50), trajectory(1.0, 40)]
    assert await reflect(LLMCoach(chat, load_prompts()), BRIDGE, group) == ("Say less.",)
    assert re.findall(r"F1 [\d.]+, \d+ tokens", chat.calls[0][1].content) == [
        "F1 1.00, 40 tokens",
        "F1 1.00, 50 tokens",
        "F1 0.20, 0 tokens",
    ]


async def test_an_undecided_insight_changes_nothing(library: Library) -> None:
    done, entries = await consolidated(library, LIKE_IT, {"operation": "?"}, {"operation": "??"})
    assert entries == {1: FIRST}
    assert "undecided" in done[0]


lines = st.lists(st.text("abc d", min_size=1, max_size=12), max_size=6, unique=True).map(tuple)


@given(lines, lines, st.integers(0, 60))
def test_guidance_is_cut_to_its_limit(rules: tuple[str, ...], principles: tuple[str, ...], limit: int) -> None:
    whole = Guidance(rules, principles)
    short = cut(whole, limit)
    assert short.characters <= limit
    assert whole.rules[: len(short.rules)] == short.rules
    assert whole.principles[: len(short.principles)] == short.principles
    assert short == whole or whole.characters > limit


async def test_guidance_within_the_limit_is_joined_and_said_once() -> None:
    subject = Subject("reflect", Guidance(("Check the name.",), ("Be strict.",)), load_prompts())
    learned = Guidance(("Check the year.", "Check the names!"), ("Be strict.",))
    joined = Guidance(("Check the year.", "Check the names!"), ("Be strict.",))
    for limit in (1000, joined.characters):
        assert await project(coach(), subject, learned, limit) == joined


async def test_guidance_beyond_the_limit_is_shortened_then_cut() -> None:
    subject = Subject("reflect", Guidance(("x" * 90,)), load_prompts())
    learned = Guidance(("Check the year.",))
    short = {"rules": ["Check years.", "y" * 60], "principles": []}
    assert await project(coach(short), subject, learned, 50) == Guidance(("Check years.",))
    assert await project(coach({}, {}), subject, learned, 50) == Guidance(("Check the year.",))

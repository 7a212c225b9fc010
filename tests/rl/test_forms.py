"""Rollouts keep to the form that serving asks for: a schema or pattern, heard from the agent itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from pyrag.agents.schemas import JUDGEMENT, REWRITE, SUB_QUERIES, TAGGED_ANSWER
from pyrag.methods.opera.schemas import GOALS
from pyrag_rl.config import load_config
from pyrag_rl.data.examples import PromptlessRow, prompted
from pyrag_rl.data.rows import Document, TrainRow
from pyrag_rl.verl.forms import asking, constraint_of, form_of, has_form
from pyrag_rl.verl.overrides import agent_loop

ROW = TrainRow(
    index=0, id="q", agent="answer", source="toy", question="Who wrote Dracula?", answers=("Bram Stoker",), messages=(),
    documents=(Document(id="d", title="Dracula", text="By Bram Stoker."),), tried=("Dracula",), missing="its author",
    sub_queries=("Who wrote Dracula?",),
)  # fmt: skip


@pytest.mark.parametrize(
    ("agent", "algorithm", "form"),
    [
        ("answer", "grpo", {"regex": TAGGED_ANSWER}),
        ("decompose", "grpo", {"json": SUB_QUERIES}),
        ("rewrite", "grpo", {"json": REWRITE}),
        ("plan", "mapgrpo", {"json": GOALS}),
        ("answer", "mapgrpo", {"json": JUDGEMENT}),
        ("plan", "grpo", {}),  # a program is no JSON
    ],
)
def test_a_rollout_is_held_to_the_form_of_its_agent(agent: str, algorithm: str, form: dict[str, Any]) -> None:
    config = load_config(agent, algorithm)
    assert constraint_of(asyncio.run(form_of(ROW, config))) == form
    assert has_form(config) == bool(form)
    assert agent_loop(config) == ("formed_agent" if form else "single_turn_agent")


def test_an_answer_from_facts_has_its_own_form() -> None:
    facts = replace(ROW, documents=None, query="Given: x. Answer the question: y")
    assert asyncio.run(form_of(facts, load_config("answer"))).pattern == TAGGED_ANSWER


def test_an_agent_that_asks_no_model_has_no_form() -> None:
    nothing = replace(ROW, documents=())
    assert constraint_of(asyncio.run(form_of(nothing, load_config("answer")))) == {}


@pytest.mark.parametrize("setting", [{"constrained": False}, {"rollout": "hf_cpu"}])
def test_rollouts_may_be_left_free(setting: dict[str, Any]) -> None:
    config = load_config("decompose", **setting)
    assert not has_form(config)
    assert agent_loop(config) == "single_turn_agent"


@pytest.mark.parametrize("name", ["answer", "decompose", "rewrite", "plan", "mapgrpo-plan", "mapgrpo-answer"])
def test_a_row_is_asked_as_it_was_built(name: str) -> None:
    row = asyncio.run(prompted(PromptlessRow(ROW, asking(ROW, name))))
    assert ROW.question in row.messages[-1].content

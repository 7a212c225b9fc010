"""The form that an agent asks its server for, a JSON schema or a pattern; rollouts are held to it, as replies are.

The form is heard from the agent itself, asked what a training row asks (`prompting`), so that it cannot differ from
that of serving. Left out: agents without a form, such as the Plan agent that writes programs, and rollout engines other
than vLLM, which take no such request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrag.llm.protocol import Sampling
from pyrag_rl.config import TrainConfig, packaged_name
from pyrag_rl.data.examples import (
    Ask,
    ask_analysis,
    ask_answer,
    ask_decomposition,
    ask_goals,
    ask_program,
    ask_rewrite,
)
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.prompting import request_of

FORMED = frozenset({"answer", "decompose", "rewrite", "mapgrpo-plan", "mapgrpo-answer"})
"""The agents with a form, by the names of their packaged configs."""


def has_form(config: TrainConfig) -> bool:
    """True for a run whose rollouts are held to a form."""
    return config.constrained and config.rollout == "vllm" and packaged_name(config.agent, config.algorithm) in FORMED


async def form_of(row: TrainRow, config: TrainConfig) -> Sampling:
    """Return the sampling that the trained agent asks its server for; an empty one where it needs no model.

    Args:
        row: what the agent is asked.
        config: agent and algorithm.
    """
    ask = asking(row, packaged_name(config.agent, config.algorithm))
    try:
        return (await request_of(ask, config.runtime.get("prompts")))[1]
    except ValueError:
        return Sampling()


def asking(row: TrainRow, name: str) -> Ask:
    """Return the call that asks an agent what a row asks.

    Args:
        row: a training row.
        name: `packaged_name` of agent and algorithm.
    """
    passages = [one.passage() for one in row.documents or ()]
    match name:
        case "answer":
            return ask_answer(row.asked, None if row.documents is None else passages)
        case "mapgrpo-answer":
            return ask_analysis(row.asked, passages, row.question)
        case "rewrite":
            return ask_rewrite(row.asked, row.tried, passages, row.missing)
        case "decompose":
            return ask_decomposition(row.question)
        case "mapgrpo-plan":
            return ask_goals(row.question)
        case _:
            return ask_program(row.question, row.sub_queries)


def constraint_of(sampling: Sampling) -> dict[str, Any]:
    """The form in vLLM's words; empty without one."""
    if sampling.schema is not None:
        return {"json": dict(sampling.schema)}
    return {"regex": sampling.pattern} if sampling.pattern else {}


def held_to(sampling: Sampling, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return verl's sampling parameters for vLLM with the agent's form.

    Args:
        sampling: the agent's request.
        params: verl's parameters.
    """
    constraint = constraint_of(sampling)
    if not constraint:
        return dict(params)
    from vllm.sampling_params import StructuredOutputsParams

    return {**params, "structured_outputs": StructuredOutputsParams(**constraint)}

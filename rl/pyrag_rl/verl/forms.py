"""Form of an agent's replies, a JSON schema or a pattern, which rollouts must match, as a server's replies do.

The form is taken from the agent's own request for a training row (`prompting`), so that it cannot differ from serving.
Agents without a form, such as the Plan agent that writes programs, and rollout engines other than vLLM, which do not
support forms, are not constrained.
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
"""Agents with a form, by the names of their packaged configurations."""


def has_form(config: TrainConfig) -> bool:
    """Return True if the rollouts of a run must match a form."""
    return config.constrained and config.rollout == "vllm" and packaged_name(config.agent, config.algorithm) in FORMED


async def form_of(row: TrainRow, config: TrainConfig) -> Sampling:
    """Return the sampling in the trained agent's request to its server; empty if the agent needs no model.

    Args:
        row: Row that determines the request.
        config: Configuration that names agent and algorithm.
    """
    ask = asking(row, packaged_name(config.agent, config.algorithm))
    try:
        return (await request_of(ask, config.runtime.get("prompts")))[1]
    except ValueError:
        return Sampling()


def asking(row: TrainRow, name: str) -> Ask:
    """Return the call that makes an agent send the request for a row.

    Args:
        row: A training row.
        name: Name of agent and algorithm, see `packaged_name`.
    """
    passages = [document.passage() for document in row.documents or ()]
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
    """Return the form as vLLM's parameters; empty without a form."""
    if sampling.schema is not None:
        return {"json": dict(sampling.schema)}
    return {"regex": sampling.pattern} if sampling.pattern else {}


def held_to(sampling: Sampling, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return verl's sampling parameters for vLLM, with the agent's form added.

    Args:
        sampling: Sampling of the agent's request.
        params: Sampling parameters of verl.
    """
    constraint = constraint_of(sampling)
    if not constraint:
        return dict(params)
    from vllm.sampling_params import StructuredOutputsParams

    return {**params, "structured_outputs": StructuredOutputsParams(**constraint)}

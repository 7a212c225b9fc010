"""Requests to agents, retriever and tools: what equal ones have in common, and what one costs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import msgspec

from pyrag.llm.spending import Spending
from pyrag.trace.model import Usage
from pyrag.trace.plain import jsonable

_RETRIEVAL, _MODEL_CALL, _TOOL_CALL = Usage(retrievals=1), Usage(model_calls=1), Usage(tool_calls=1)
TOOL = "tool."  # begins the role of a tool's calls


def cost_of(role: str) -> Usage:
    """The least that a request costs."""
    if role.startswith(TOOL):
        return _TOOL_CALL
    return _RETRIEVAL if role == "retrieve" else _MODEL_CALL


def spent_on(reply: Any, cost: Usage, metered: Spending | None = None) -> Usage:
    """Return the cost of a request: what its agent reports, and at least what its model calls cost.

    Args:
        reply: What the agent or retriever replied, or what it raised; its `usage` counts where it has one.
        cost: What a request of its role costs at least.
        metered: The model calls of the request, which are exact if a model was asked through it.
    """
    reported = getattr(reply, "usage", None)
    spent = reported if isinstance(reported, Usage) else None
    if metered is not None and metered.asked:
        return replace(_largest(spent or Usage(), metered.usage), retrievals=cost.retrievals)
    if spent is None:
        return cost
    calls = spent.model_calls if spent.cached_calls else max(cost.model_calls, spent.model_calls)
    if (spent.model_calls, spent.retrievals, spent.seconds, spent.cost) == (calls, cost.retrievals, 0.0, None):
        return spent  # as most agents say it
    return replace(spent, model_calls=calls, retrievals=cost.retrievals, seconds=0.0, cost=None)


def lost_on(error: BaseException, metered: Spending) -> Usage:
    """Return the cost of a failed request.

    Args:
        error: What it raised.
        metered: Its model calls.
    """
    reported = getattr(error, "usage", None)
    return _largest(reported if isinstance(reported, Usage) else Usage(), metered.usage)


def _largest(reported: Usage, counted: Usage) -> Usage:
    """Return the larger of both counts: an agent may ask a model that is not counted."""
    return Usage(
        max(reported.model_calls, counted.model_calls),
        prompt_tokens=max(reported.prompt_tokens, counted.prompt_tokens),
        completion_tokens=max(reported.completion_tokens, counted.completion_tokens),
        cached_calls=max(reported.cached_calls, counted.cached_calls),
        cached_tokens=max(reported.cached_tokens, counted.cached_tokens),
    )


def canonical(role: str, request: dict[str, Any]) -> bytes:
    """Return bytes that are equal for equal requests, in any process.

    Args:
        role: The agent's role, or `retrieve`.
        request: What is asked, as plain data.
    """
    try:
        return msgspec.json.encode([role, request], order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(jsonable([role, request]), order="sorted")


def request_key(role: str, request: dict[str, Any]) -> str:
    """Return a digest of the canonical form.

    Args:
        role: The agent's role, or `retrieve`.
        request: What is asked, as plain data.
    """
    return hashlib.sha256(canonical(role, request)).hexdigest()[:32]

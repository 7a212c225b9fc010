"""Requests to agents, retriever and tools: their canonical form and their cost."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from pyrag.llm.spending import Spending
from pyrag.trace.model import Step, Usage
from pyrag.trace.plain import jsonable

_NOTHING = Usage()
_RETRIEVAL, _MODEL_CALL, _TOOL_CALL = Usage(retrievals=1), Usage(model_calls=1), Usage(tool_calls=1)
CATALOGUE = "catalogue."  # prefix of roles for requests to a retriever's catalogue
FREE = "catalogue.free."  # prefix of catalogue requests without a cost of their own: a model call follows each
TOOL = "tool."  # prefix of the role of a tool's calls


class AskingStep(Protocol):
    """Step that makes requests. Its `id` is None after it was dropped from the trace."""

    @property
    def id(self) -> int | None: ...


@dataclass(slots=True)
class OpenStep:
    """Step in progress, with the fields known so far. Its `id` is None after the program has dropped it."""

    id: int | None
    call: int  # the sandbox's id
    started: float  # seconds since the question was asked
    fields: dict[str, Any]

    def step(self, **more: Any) -> Step:
        """Return the step with more fields filled in."""
        assert self.id is not None, "the step was dropped"
        return Step(id=self.id, started=self.started, **self.fields | more)


def cost_of(role: str) -> Usage:
    """Return the minimum cost of a request."""
    if role.startswith(TOOL):
        return _TOOL_CALL
    if role.startswith(FREE):
        return Usage()
    return _RETRIEVAL if role == "retrieve" or role.startswith(CATALOGUE) else _MODEL_CALL


def spent_on(reply: Any, cost: Usage, metered: Spending | None = None) -> Usage:
    """Return the cost of a request: the agent's own figures, but at least the cost of its model calls.

    Args:
        reply: Reply of the agent or retriever, or the error it raised; its `usage` is included if it has one.
        cost: Minimum cost of a request of its role.
        metered: Account of the request's model calls, which is exact if a counted model was called.
    """
    reported = getattr(reply, "usage", None)
    spent = reported if isinstance(reported, Usage) else None
    if metered is not None and metered.asked:
        return _largest(spent or _NOTHING, metered.usage, cost.retrievals)
    if spent is None:
        return cost
    calls = spent.model_calls if spent.cached_calls else max(cost.model_calls, spent.model_calls)
    if (spent.model_calls, spent.retrievals, spent.seconds, spent.cost) == (calls, cost.retrievals, 0.0, None):
        return spent  # the usual case
    return replace(spent, model_calls=calls, retrievals=cost.retrievals, seconds=0.0, cost=None)


def lost_on(error: BaseException, metered: Spending) -> Usage:
    """Return the cost of a failed request.

    Args:
        error: Error that the request raised.
        metered: Account of the request's model calls.
    """
    reported = getattr(error, "usage", None)
    return _largest(reported if isinstance(reported, Usage) else _NOTHING, metered.usage)


def _largest(reported: Usage, counted: Usage, retrievals: int = 0) -> Usage:
    """Return the larger count of each field, since an agent may call a model that is not counted."""
    return Usage(
        max(reported.model_calls, counted.model_calls),
        retrievals,
        max(reported.prompt_tokens, counted.prompt_tokens),
        max(reported.completion_tokens, counted.completion_tokens),
        cached_calls=max(reported.cached_calls, counted.cached_calls),
        cached_tokens=max(reported.cached_tokens, counted.cached_tokens),
    )


def canonical(role: str, request: dict[str, Any]) -> bytes:
    """Return bytes that are the same for equal requests, in any process.

    Args:
        role: The agent's role, or `retrieve`.
        request: The request as plain data.
    """
    try:
        return msgspec.json.encode([role, request], order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(jsonable([role, request]), order="sorted")


def request_key(role: str, request: dict[str, Any]) -> str:
    """Return a digest of a request's canonical form, as 32 hexadecimal digits.

    Args:
        role: The agent's role, or `retrieve`.
        request: The request as plain data.
    """
    return hashlib.sha256(canonical(role, request)).hexdigest()[:32]

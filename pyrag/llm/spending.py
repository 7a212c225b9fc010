"""Model calls of one request, counted at the model, regardless of what the agent does with the reply.

A `Spending` belongs to one request of a question (`pyrag.episode.ledger`), and the task that works on the request finds
it in its context. A call counts from the moment it is sent, even if it is interrupted later. A call that the server
refused, or that was still waiting for its turn, does not count. Calls in flight have no tokens yet. `admit` enforces
limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from pyrag.errors import BudgetExceededError, MalformedReplyError, ReplayError, RetryableServiceError, ServiceError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.llm.wrappers import Send, WrappedChat
from pyrag.trace.model import Usage

T = TypeVar("T")


def usage_of(reply: Reply) -> Usage:
    """Return the cost of a reply; a cached reply costs nothing."""
    if reply.cached:
        return Usage(cached_calls=1, cached_tokens=reply.prompt_tokens + reply.completion_tokens)
    return Usage(model_calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)


class Spending:
    """Account of one request's model calls.

    Attributes:
        usage: Calls that have ended, with their tokens.
        asked: True after a model was called, so that `usage` is exact.
    """

    def __init__(self, admit: Callable[[Spending], None]) -> None:
        """Create an account. `admit` is called before each call, and may raise `BudgetExceededError`."""
        self.usage = Usage()
        self.asked = False
        self._open = 0
        self._admit = admit
        self._owner: Spending | None = None

    @property
    def calls(self) -> int:
        """Number of calls so far, including those in flight."""
        return self.usage.model_calls + self._open

    def adopt(self, other: Spending) -> None:
        """Take over the past and future calls of a request that was made ahead of this one."""
        self.usage += other.usage
        self._open += other._open
        self.asked = self.asked or other.asked
        other.usage, other._open, other._owner = Usage(), 0, self

    def begin(self) -> None:
        """Count a call. Raises `BudgetExceededError` if it is not admitted."""
        owner = self._root()
        owner.asked = True
        owner._admit(owner)
        owner._open += 1

    def end(self, spent: Usage) -> None:
        """Replace a call in flight with its cost."""
        owner = self._root()
        owner._open -= 1
        owner.usage += spent

    def add_cached(self, reply: Reply) -> None:
        """Count a stored reply, unless its call is already counted."""
        if _call.get() is not None:
            return
        owner = self._root()
        owner.asked = True
        owner.usage += usage_of(reply)

    def _root(self) -> Spending:
        return self if self._owner is None else self._owner._root()


class _Call:
    """Call in flight. `sent` is None if the client does not report when it sends."""

    sent: bool | None = None


spending: ContextVar[Spending | None] = ContextVar("spending", default=None)
_call: ContextVar[_Call | None] = ContextVar("call", default=None)


async def sent_after(turn: Awaitable[T]) -> T:
    """Wait for a call's turn and return the result. If the call ends before its turn, it counts as not sent."""
    call = _call.get()
    if call is None:
        return await turn
    call.sent = bool(call.sent)  # a repeated call was sent before
    result = await turn
    call.sent = True
    return result


class CountedChat(WrappedChat):
    """Chat model that charges its calls to the request in whose context they are made."""

    async def _reply(self, send: Send, messages: Sequence[Message], sampling: Sampling) -> Reply:
        return await _counted(lambda: send(messages, sampling))


def counted(model: ChatModel) -> ChatModel:
    """Return a model that counts its calls: the model itself if it already does."""
    inner: Any = model
    while isinstance(inner, WrappedChat):
        if isinstance(inner, CountedChat):
            return model
        inner = inner.model
    return CountedChat(model)


def uncounted(model: object) -> object:
    """Return the model inside a `CountedChat`; return any other model unchanged."""
    return model.model if isinstance(model, CountedChat) else model


async def _counted(ask: Callable[[], Awaitable[Reply]]) -> Reply:
    spent = spending.get()
    if spent is None:
        return await ask()
    spent.begin()
    call, expenses = _Call(), Usage()
    token = _call.set(call)
    try:
        reply = await ask()
        expenses = usage_of(reply)
        return reply
    except asyncio.CancelledError:
        expenses = Usage(model_calls=int(call.sent is not False))
        raise
    except ServiceError as error:
        late = isinstance(error, RetryableServiceError) and error.timed_out
        expenses = Usage(model_calls=int(late or isinstance(error, MalformedReplyError)))
        raise
    except (BudgetExceededError, ReplayError):
        raise
    except Exception:
        expenses = Usage(model_calls=1)
        raise
    finally:
        _call.reset(token)
        spent.end(expenses)

"""Model calls of one request, counted where the model is asked: below its agent, whatever becomes of that.

A `Spending` belongs to one request of a question (`pyrag.episode.ledger`) and is found by the task that works on it.
A call counts once it was made, also if it is cut short later; one that its server refused, and one that was still
waiting for its turn, does not. Calls in flight have no tokens. Left out: limits, which `admit` enforces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from pyrag.errors import BudgetExceededError, MalformedReplyError, ReplayError, RetryableServiceError, ServiceError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling, StreamingChatModel
from pyrag.llm.wrappers import WrappedChat
from pyrag.trace.model import Usage

DEFAULT_SAMPLING = Sampling()


def usage_of(reply: Reply) -> Usage:
    """Return the costs of a reply; one from the cache was paid for before."""
    if reply.cached:
        return Usage(cached_calls=1, cached_tokens=reply.prompt_tokens + reply.completion_tokens)
    return Usage(model_calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)


class Spending:
    """Expenses of one request.

    Attributes:
        usage: Calls that have ended, with their tokens.
        asked: True once a model was asked, so that `usage` is exact.
    """

    def __init__(self, admit: Callable[[Spending], None]) -> None:
        """`admit` is called before each call; it raises `BudgetExceededError` if there is no room for the call."""
        self.usage = Usage()
        self.asked = False
        self._open = 0
        self._admit = admit
        self._owner: Spending | None = None

    @property
    def calls(self) -> int:
        """Number of calls made so far, those under way included."""
        return self.usage.model_calls + self._open

    def adopt(self, other: Spending) -> None:
        """Take over the expenses of a request that was made before this one asked for it, later ones included."""
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
        """Replace a call under way by its expenses."""
        owner = self._root()
        owner._open -= 1
        owner.usage += spent

    def add_cached(self, reply: Reply) -> None:
        """Count a reply that was stored before, unless it is a counted call's own."""
        if _call.get() is not None:
            return
        owner = self._root()
        owner.asked = True
        owner.usage += usage_of(reply)

    def _root(self) -> Spending:
        return self if self._owner is None else self._owner._root()


class _Call:
    """A call under way. `sent` is None where the client does not report when it sends."""

    sent: bool | None = None


spending: ContextVar[Spending | None] = ContextVar("spending", default=None)
_call: ContextVar[_Call | None] = ContextVar("call", default=None)


@contextmanager
def waiting_to_send() -> Iterator[None]:
    """For clients whose calls wait for a turn: a call that ends inside of the block was not sent."""
    call = _call.get()
    if call is None:
        yield
        return
    call.sent = bool(call.sent)  # a call that is repeated was sent before
    yield
    call.sent = True


class CountedChat(WrappedChat):
    """A chat model whose calls count for the request that they are made for."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        """Return a reply and count it. Args: those of `ChatModel.complete`."""
        return await _counted(lambda: self.model.complete(messages, sampling))

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return self._stream if name == "stream" else found

    async def _stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        model = cast(StreamingChatModel, self.model)
        return await _counted(lambda: model.stream(messages, sampling, on_text))


def counted(model: ChatModel) -> ChatModel:
    """Return a model whose calls are counted; the model itself if they are already."""
    inner: Any = model
    while isinstance(inner, WrappedChat):
        if isinstance(inner, CountedChat):
            return model
        inner = inner.model
    return CountedChat(model)


def uncounted(model: object) -> object:
    """Return the model inside of a `CountedChat`; any other one as it is."""
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

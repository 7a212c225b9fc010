"""Chat models around another model: without constraints on replies, or with a limit on all calls.

`MeteredChat` is placed below the cache, so that stored replies do not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from pyrag.errors import BudgetExceededError, PyRAGError, RetryableServiceError, ServiceError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling, StreamingChatModel

T = TypeVar("T")
Send = Callable[[Sequence[Message], Sampling], Awaitable[Reply]]
DEFAULT_SAMPLING = Sampling()
_QUOTED = 300  # characters of another library's error message


class WrappedChat:
    """Base of wrappers, with the name of the model and every attribute that the wrapper does not define itself.

    A wrapper overrides `_reply`, through which whole and streamed replies pass alike.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """Name of the wrapped model."""
        return self.model.name

    async def aclose(self) -> None:
        """Release the model's connections or memory."""
        await self.model.aclose()

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        """Return one reply.

        Args:
            messages: The conversation.
            sampling: Parameters of the reply.
        """
        return await self._reply(self.model.complete, messages, sampling)

    async def _reply(self, send: Send, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Return a reply of the model.

        Args:
            send: Method of the model that returns a whole or a streamed reply.
            messages: The conversation.
            sampling: Parameters of the reply.
        """
        return await send(messages, sampling)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the model, such as `offered`; its `stream` passes through `_reply`."""
        attribute = getattr(self.model, name)
        return self._stream if name == "stream" else attribute

    async def _stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        model = cast(StreamingChatModel, self.model)
        return await self._reply(lambda turns, limits: model.stream(turns, limits, on_text), messages, sampling)


class ForeignChat(WrappedChat):
    """Model of a caller or a package. All its errors become service errors that name it."""

    async def _reply(self, send: Send, messages: Sequence[Message], sampling: Sampling) -> Reply:
        return await guarded(send(messages, sampling), f"the model {self.name}")


async def guarded(work: Awaitable[T], what: str) -> T:
    """Await work of foreign code.

    Args:
        work: Work to await; its result is returned.
        what: Name of the part that does the work, for messages.

    Raises:
        ServiceError: The work raised an error of any kind; pyrag's own errors pass unchanged.
    """
    try:
        return await work
    except PyRAGError:
        raise
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        raise ServiceError(f"{what} failed (it cancelled itself): look into its code", service=what) from None
    except TimeoutError as error:
        message = f"{what} failed ({_described(error)}): allow it more time, or look into its code"
        raise RetryableServiceError(message, service=what, timed_out=True) from error
    except Exception as error:
        raise ServiceError(f"{what} failed ({_described(error)}): look into its code", service=what) from error


def _described(error: Exception) -> str:
    try:
        message = " ".join(str(error).split())[:_QUOTED]
    except Exception:  # the error's own __str__ may fail too
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


class UnconstrainedChat(WrappedChat):
    """Wrapper that removes schemas and patterns from requests (`structured = false`)."""

    async def _reply(self, send: Send, messages: Sequence[Message], sampling: Sampling) -> Reply:
        return await send(messages, replace(sampling, schema=None, pattern=None))


class Meter:
    """Limit on the calls and tokens (prompt and completion) of many questions together.

    Calls in flight may exceed the token limit; after it is reached, no call begins.

    Attributes:
        max_calls: Maximum number of calls; None for no limit.
        max_tokens: Maximum number of tokens; None for no limit.
        calls: Number of calls, counted before they are made; an earlier process's calls may be added.
        tokens: Number of tokens, counted when a reply arrives.
        refused: True after a call was refused because of a limit.
    """

    def __init__(self, max_calls: int | None = None, max_tokens: int | None = None) -> None:
        self.max_calls, self.max_tokens = max_calls, max_tokens
        self.calls = self.tokens = 0
        self.refused = False

    def begin(self) -> None:
        """Count a call. Raises `BudgetExceededError` if a limit is reached."""
        for spent, limit, what, flag in (
            (self.calls, self.max_calls, "model calls", "--max-calls"),
            (self.tokens, self.max_tokens, "tokens", "--max-tokens"),
        ):
            if limit is not None and spent >= limit:
                self.refused = True
                raise BudgetExceededError(f"the budget of {limit} {what} is spent: raise {flag} to continue")
        self.calls += 1

    def end(self, messages: Sequence[Message], reply: Reply) -> None:
        """Count the tokens of a reply.

        Args:
            messages: Messages of the request, for meters that store them.
            reply: The reply, whose tokens and prompt tokens are counted.
        """
        self.tokens += reply.prompt_tokens + reply.completion_tokens


class MeteredChat(WrappedChat):
    """Chat model whose calls a meter counts."""

    def __init__(self, model: ChatModel, meter: Meter) -> None:
        super().__init__(model)
        self.meter = meter

    async def _reply(self, send: Send, messages: Sequence[Message], sampling: Sampling) -> Reply:
        self.meter.begin()
        reply = await send(messages, sampling)
        self.meter.end(messages, reply)
        return reply

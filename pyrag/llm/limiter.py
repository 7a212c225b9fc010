"""Adaptive limit on the calls in flight to one endpoint, with turns for questions.

Each endpoint (base URL and model) has a `Limiter`. It starts at its maximum, so that a fast server is never idle, and
learns the capacity of a slower server:

* 429, 503 and timeouts shrink the window to the number of calls that the server still serves, by at least a fifth. A
  full window grows by one call per round trip. Refusals of calls that were made before the window shrank do not shrink
  it again.
* `Retry-After` holds back every caller. Afterwards the window starts at one call and doubles per round trip up to its
  former size, so that not all callers resume at once.
* Waiting calls take turns by question (`question_scope`), so that a question with many calls does not delay the
  others. Cancelled callers leave the queue.

`limiter_of` returns the same limiter to all clients of an endpoint in one event loop. Retries are made by
`pyrag._io.http.client`. Other processes are only noticed through the server's refusals. Models that are not endpoints
(a caller's object, a package's, a local one) stand behind a `BoundedChat`, whose window stays as it is.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, cast

from pyrag._io.http.errors import Fault
from pyrag._io.threads import PerLoop
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling, StreamingChatModel
from pyrag.llm.spending import sent_after
from pyrag.llm.wrappers import DEFAULT_SAMPLING, WrappedChat

MAX_CALLS = 256  # calls in flight, unless the settings say otherwise
MAX_HOLD = 60.0  # seconds; a longer Retry-After is cut to this
_SHRINK = 0.8
_FLOOR_WHEN_UNREACHABLE = 8  # a server that is down refuses quickly, so calls need not queue

_question: ContextVar[int] = ContextVar("pyrag_question", default=0)
_questions = itertools.count(1)


@contextmanager
def question_scope() -> Iterator[None]:
    """Count all calls inside the block, by this task and the tasks it starts, as calls of one question."""
    token = _question.set(next(_questions))
    try:
        yield
    finally:
        _question.reset(token)


class Limiter:
    """Limiter for one event loop, which implements `pyrag._io.http.client.Gate`; `maximum` is its upper bound."""

    def __init__(self, maximum: int = MAX_CALLS) -> None:
        self.maximum = maximum
        self.window = float(maximum)
        self.in_flight = 0
        self._threshold = float(maximum)  # below it the window doubles per round trip, above it grows by one
        self._queues: dict[int, deque[asyncio.Future[int]]] = {}  # by question, in order of turns
        self._admitted = 0  # number of calls admitted so far; a call's number is its ticket
        self._shrunk_at = 0  # only refusals of later tickets shrink the window again
        self._held_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Number of calls that are waiting."""
        return sum(map(len, self._queues.values()))

    async def enter(self, *, again: bool = False) -> int:
        """Wait for permission to make a call, and return a ticket for it.

        Args:
            again: Whether the call was refused before; if so, it goes first among its question's calls.
        """
        if not self._queues and self.in_flight < self.window and not self._held_for():
            return self._admit()
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        question = _question.get()
        queue = self._queues.setdefault(question, deque())
        if again:
            queue.appendleft(turn)
        else:
            queue.append(turn)
        self._serve()
        try:
            return await turn
        except asyncio.CancelledError:
            self._forget(question, turn)
            raise

    def leave(self, ticket: int, fault: Fault | None = None, retry_after: float | None = None) -> None:
        """End a call and adapt the window.

        Args:
            ticket: Ticket that `enter` returned.
            fault: Fault of a failed call; "other" for a cancelled call, which does not change the window.
            retry_after: Delay in seconds that the server requests.
        """
        self.in_flight -= 1
        if fault is None:
            self._grow()
        elif fault in ("busy", "timeout", "unreachable"):
            self._shrink(ticket, fault)
            if fault == "busy" and retry_after:
                self._hold(retry_after)
        self._serve()

    def allow(self, maximum: int) -> None:
        """Lower the upper bound to another client's maximum."""
        self.maximum = min(self.maximum, maximum)
        self.window, self._threshold = min(self.window, self.maximum), min(self._threshold, self.maximum)

    def _admit(self) -> int:
        self.in_flight += 1
        self._admitted += 1
        return self._admitted

    def _grow(self) -> None:
        if self.window >= self.maximum or self.in_flight + 1 < int(self.window):
            return  # an unfilled window proves nothing
        step = 1.0 if self.window < self._threshold else 1.0 / self.window
        self.window = min(self.window + step, float(self.maximum))

    def _shrink(self, ticket: int, fault: Fault) -> None:
        floor = _FLOOR_WHEN_UNREACHABLE if fault == "unreachable" else 1
        wanted = self.window
        if ticket > self._shrunk_at:
            self._shrunk_at = self._admitted
            wanted *= _SHRINK
        if fault == "busy":
            wanted = min(wanted, self.in_flight)  # the refused call came on top of those it serves
        self.window = max(min(self.window, float(floor)), wanted)
        self._threshold = self.window

    def _hold(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        seconds = min(seconds, MAX_HOLD)
        until = loop.time() + seconds + random.uniform(0.0, 0.1 * seconds)  # noqa: S311 (jitter, not a secret)
        self.window = 1.0
        if until <= self._held_until:
            return
        self._held_until = until
        if self._timer:
            self._timer.cancel()
        self._timer = loop.call_at(until, self._serve)

    def _held_for(self) -> float:
        if not self._held_until:
            return 0.0
        remaining = self._held_until - asyncio.get_running_loop().time()
        if remaining <= 0:
            self._held_until = 0.0
        return max(remaining, 0.0)

    def _serve(self) -> None:
        """Admit waiting calls in turn, as long as the window allows."""
        while self._queues and self.in_flight < int(self.window) and not self._held_for():
            question, queue = next(iter(self._queues.items()))
            turn = queue.popleft()
            del self._queues[question]
            if queue:
                self._queues[question] = queue  # after all others
            if not turn.done():
                turn.set_result(self._admit())

    def _forget(self, question: int, turn: asyncio.Future[int]) -> None:
        if turn.done() and not turn.cancelled():  # its turn came at the moment of its cancellation
            self.leave(turn.result(), "other")
            return
        queue = self._queues.get(question)
        if queue and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._queues[question]


_limiters: PerLoop[weakref.WeakValueDictionary[tuple[str, str], Limiter]] = PerLoop(weakref.WeakValueDictionary)


def limiter_of(url: str, model: str, maximum: int = MAX_CALLS) -> Limiter:
    """Return the limiter of an endpoint in the running loop, shared by all its clients.

    Args:
        url: Base URL of the endpoint.
        model: Name of the model.
        maximum: Maximum number of calls in flight; the smallest of all clients applies.
    """
    known = _limiters.get()
    limiter = known.get((url, model))
    if limiter is None:
        limiter = known[url, model] = Limiter(maximum)
    limiter.allow(maximum)
    return limiter


_held: ContextVar[tuple[ModelGate, ...]] = ContextVar("pyrag_held_places", default=())


class ModelGate:
    """Limiter of one client, which may serve several event loops in turn: each loop has its own.

    Args:
        make: Makes the limiter of a loop.
    """

    def __init__(self, make: Callable[[], Limiter]) -> None:
        self._limiters = PerLoop(make)

    @property
    def limiter(self) -> Limiter:
        """Limiter of the running loop."""
        return self._limiters.get()

    async def enter(self, *, again: bool = False) -> int:
        """Wait for permission to make a call, and return a ticket for it; see `Limiter.enter`."""
        return await sent_after(self.limiter.enter(again=again))

    def leave(self, ticket: int, fault: Fault | None = None, retry_after: float | None = None) -> None:
        """End a call and adapt the window.

        Args:
            ticket: Ticket that `enter` returned.
            fault: Fault of a failed call.
            retry_after: Delay in seconds that the server requests.
        """
        self.limiter.leave(ticket, fault, retry_after)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it for one call. Calls inside the call use its place, as it waits for them."""
        if self in _held.get():
            yield
            return
        ticket = await self.enter()
        token = _held.set((*_held.get(), self))
        try:
            yield
        finally:
            _held.reset(token)
            self.leave(ticket)


def endpoint_gate(url: str, model: str, maximum: int = MAX_CALLS) -> ModelGate:
    """Return the gate of a client of an endpoint; see `limiter_of`.

    Args:
        url: Base URL of the endpoint.
        model: Name of the model.
        maximum: Maximum number of calls in flight; the smallest of all clients applies.
    """
    return ModelGate(lambda: limiter_of(url, model, maximum))


class BoundedChat(WrappedChat):
    """Chat model with a limit on its calls in flight, for models that have no limiter of their own.

    Args:
        model: The model.
        maximum: Maximum number of calls in flight in one event loop.
    """

    def __init__(self, model: ChatModel, maximum: int) -> None:
        super().__init__(model)
        self._gate = ModelGate(lambda: Limiter(maximum))

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        """Return the model's reply, once a place is free.

        Args:
            messages: The conversation.
            sampling: Parameters of the reply.
        """
        async with self._gate.place():
            return await self.model.complete(messages, sampling)

    def __getattr__(self, name: str) -> Any:
        attribute = super().__getattr__(name)
        return self._stream if name == "stream" else attribute

    async def _stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        outside = copy_context()  # what a shown text starts waits for a place of its own

        def show(text: str) -> None:
            outside.run(on_text, text)

        async with self._gate.place():
            return await cast(StreamingChatModel, self.model).stream(messages, sampling, show)

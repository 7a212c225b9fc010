"""How many calls one endpoint gets at once, and whose turn it is.

A `Limiter` stands before an endpoint (base URL and model). It starts with the most calls that it may ever allow, so
that a server that keeps up never waits for us, and learns what a slower one bears:

* 429, 503 and timeouts shrink the window to what the server still holds, at least by a fifth; while it is in use it
  grows by one call a round trip. What is refused because of the size of the window shrinks it once, not once a call.
* `Retry-After` holds back every caller. Afterwards the window starts at one call and doubles a round trip up to what
  was borne before: replies clock the release, so there is no herd.
* Who waits is served in turns by question (`question_scope`), so that a question with fifty calls does not starve
others.
  A caller that is cancelled leaves the queue at once.

`limiter_of` hands all clients of an endpoint in one event loop the same limiter. Left out: retries, which are
`pyrag._io.http.client`'s, and other processes, which show in the server's refusals only.
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
from pyrag._io.per_loop import PerLoop

MOST = 256  # calls at once, unless the settings say otherwise
MAX_HOLD = 60.0  # seconds; whoever asks for more than that is asked again, not obeyed
_SHRINK = 0.8
_FLOOR_WHEN_UNREACHABLE = 8  # a server that is down refuses quickly: no reason to queue for its refusals

_question: ContextVar[int] = ContextVar("pyrag_question", default=0)
_questions = itertools.count(1)


@contextmanager
def question_scope() -> Iterator[None]:
    """Calls made inside, by this task and those it starts, count as one question's."""
    token = _question.set(next(_questions))
    try:
        yield
    finally:
        _question.reset(token)


class Limiter:
    """A `pyrag._io.http.client.Gate` that adapts; `most` is the window's upper bound. It belongs to one event loop."""

    def __init__(self, most: int = MOST) -> None:
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
        """A ticket, when it is this caller's turn. A call that was refused before (`again`) goes first among its
        question's."""
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
        """Ends a call. `fault` says how it failed; a call that was cancelled says "other": it teaches nothing."""
        self.in_flight -= 1
        if fault is None:
            self._grow()
        elif fault in ("busy", "timeout", "unreachable"):
            self._shrink(ticket, fault)
            if fault == "busy" and retry_after:
                self._hold(retry_after)
        self._serve()

    def allow(self, most: int) -> None:
        """Lowers the upper bound, where another client of the endpoint wants less."""
        self.most = min(self.most, most)
        self.window, self._threshold = min(self.window, self.most), min(self._threshold, self.most)

    def _admit(self) -> int:
        self.in_flight += 1
        self._admitted += 1
        return self._admitted

    def _grow(self) -> None:
        if self.window >= self.most or self.in_flight + 1 < int(self.window):
            return  # a window that is not filled proves nothing
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
        """Lets in whose turn it is, as far as the window allows."""
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


def limiter_of(url: str, model: str, most: int = MOST) -> Limiter:
    """The limiter of an endpoint in the running loop, shared by all who hold it; the smallest `most` holds."""
    known = _limiters.get()
    limiter = known.get((url, model))
    if limiter is None:
        limiter = known[url, model] = Limiter(most)
    limiter.allow(most)
    return limiter


class EndpointGate:
    """The limiter of an endpoint as one client sees it: found anew in each event loop that the client serves."""

    def __init__(self, url: str, model: str, most: int = MOST) -> None:
        self._limiters = PerLoop(lambda: limiter_of(url, model, most))

    @property
    def limiter(self) -> Limiter:
        return self._limiters.get()

    async def enter(self, *, again: bool = False) -> int:
        return await self.limiter.enter(again=again)

    def leave(self, ticket: int, fault: Fault | None = None, retry_after: float | None = None) -> None:
        self.limiter.leave(ticket, fault, retry_after)

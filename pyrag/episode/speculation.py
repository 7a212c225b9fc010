"""Speculative requests, which are made before a running program makes them because the text written so far needs them.

A speculative call does not count until the program makes it. Then it is counted, recorded and shown as if it had been
made at that moment, so a trace does not show any speculation. The cost of unused calls is added at the end.
`pyrag.methods.pyrag.speculative_execution` decides which calls to make.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pyrag.episode.ledger import Ledger
from pyrag.episode.requests import AskingStep, canonical, cost_of, spent_on
from pyrag.errors import BudgetExceededError
from pyrag.llm.spending import Spending, spending
from pyrag.trace.model import Usage

T = TypeVar("T")
_NOTHING = Usage()


@dataclass(slots=True)
class PrefetchStats:
    """Counts of sub-queries that programs used verbatim (`hits`) or changed (`misses`).

    Prefetching stops after a few questions if the planner writes its own queries.
    """

    hits: int = 0
    misses: int = 0

    @property
    def pays(self) -> bool:
        """True if enough sub-queries are used verbatim to make prefetching worthwhile."""
        return self.misses <= 2 + self.hits / 4


@dataclass(slots=True)
class _SpeculativeCall:
    task: asyncio.Future[Any]
    cost: Usage
    spending: Spending
    claimed: bool = False


class SpeculativeCalls:
    """Requests of speculative programs.

    A request only starts if the budget has room for it on top of all real and speculative requests so far, so it never
    takes room from a real request.

    Args:
        ledger: The question's ledger.
        replies: Replies to real requests, finished or not, by the requests' canonical forms.
    """

    def __init__(self, ledger: Ledger, replies: Mapping[bytes, asyncio.Future[Any]]) -> None:
        self.on_wait: Callable[[], None] = _nothing  # called when a program starts to wait for a speculative call
        self._ledger = ledger
        self._replies = replies
        self._pending: dict[bytes, _SpeculativeCall] = {}
        self._failed = _NOTHING  # cost of failed calls that nobody claimed

    async def ask(
        self,
        role: str,
        request: dict[str, Any],
        run: Callable[[], Awaitable[T]],
        reply_type: type[T],
        step: AskingStep | None = None,
    ) -> tuple[T, bool]:
        """Return the reply, and True if the same real request had been made before.

        Args:
            role: The agent's role, or `retrieve`.
            request: The request as plain data; equal data means the same request.
            run: Function that makes the request.
            reply_type: Ignored: a speculative call is never replayed.
            step: Ignored: a speculative call is not shown.

        Raises:
            BudgetExceededError: The budget has no room for a speculative call.
        """
        key = canonical(role, request)
        if (earlier := self._replies.get(key)) is not None:
            return await asyncio.shield(earlier), True
        call = self._pending.get(key)
        if call is None:
            call = self._pending[key] = self._begin(key, cost_of(role), run)
        if not call.task.done():
            self.on_wait()
        return await asyncio.shield(call.task), False

    async def fresh(
        self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]
    ) -> T:
        """Wait until the program that runs ahead is dropped: the request would be made again. Args: as for `ask`."""
        await self.until_certain()
        return await run()

    async def until_certain(self) -> None:
        """Wait until the speculative program is dropped, because a tool's effect cannot be undone."""
        self.on_wait()
        await asyncio.Event().wait()

    def claimed(self, key: bytes, run: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Return a function that gives the reply to a request: the speculative reply if there is one.

        The speculative call is claimed only when its reply is awaited, so that a request refused by the budget leaves
        it unused.

        Args:
            key: Canonical form of the request.
            run: Function that makes the request, which is returned if there is no speculative call.
        """
        return partial(self._claim, key, run) if key in self._pending else run

    async def _claim(self, key: bytes, run: Callable[[], Awaitable[T]]) -> T:
        call = self._pending.get(key)
        if call is None or _failed(call.task):
            return await run()
        del self._pending[key]
        call.claimed = True
        if (owner := spending.get()) is not None:
            owner.adopt(call.spending)
        reply: T = await call.task
        return reply

    async def unused(self) -> Usage:
        """Cancel the unused calls, and return their cost together with the cost of the failed calls."""
        if not self._pending and self._failed == _NOTHING:
            return _NOTHING
        unused = list(self._pending.values())
        for call in unused:
            call.task.cancel()
        await asyncio.gather(*(call.task for call in unused), return_exceptions=True)
        self._pending.clear()
        wasted = sum(map(_spent, unused), start=self._failed)
        return replace(wasted, unused_calls=wasted.model_calls, unused_retrievals=wasted.retrievals)

    def _begin(self, key: bytes, cost: Usage, run: Callable[[], Awaitable[Any]]) -> _SpeculativeCall:
        self._check_room(cost)
        own = Spending(self._admit_retry)
        token = spending.set(own)  # the task inherits a copy of the context
        try:
            task = asyncio.ensure_future(run())
        finally:
            spending.reset(token)
        call = _SpeculativeCall(task, cost, own)
        task.add_done_callback(lambda _: self._drop_failed(key, call))
        return call

    def _admit_retry(self, asking: Spending) -> None:
        """Refuse a further model call of a speculative request if the budget has no room for it."""
        if asking.calls:
            self._check_room(Usage(model_calls=1))

    def _check_room(self, cost: Usage) -> None:
        """Raise `BudgetExceededError` if there is no room on top of all real and speculative requests so far."""
        pending = sum(map(_spent, self._pending.values()), start=self._failed)
        if not self._ledger.has_room_for(pending + cost):
            raise BudgetExceededError("there is no room in the budget for a speculative call")

    def _drop_failed(self, key: bytes, call: _SpeculativeCall) -> None:
        """Ignore the error of an unused call, and keep its cost."""
        if _failed(call.task) and not call.claimed and self._pending.get(key) is call:
            del self._pending[key]
            self._failed += call.spending.usage


def _nothing() -> None:
    pass


def _spent(call: _SpeculativeCall) -> Usage:
    """Return the cost of a speculative call, if known."""
    task, metered = call.task, call.spending
    if task.done() and not _failed(task):
        return spent_on(task.result(), call.cost, metered)
    if not metered.asked:
        return call.cost
    calls = metered.calls if task.done() else max(call.cost.model_calls, metered.calls)
    return replace(metered.usage, model_calls=calls, retrievals=call.cost.retrievals)


def _failed(task: asyncio.Future[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)

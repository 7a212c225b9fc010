"""Requests of a question made before anybody asks for them, because a program that is being written will.

A speculative call is not counted until the program asks for it: then it counts, is recorded and is shown as if it was
made in that moment, so that a trace does not tell whether anything was speculated. Unused calls are added to the usage
at the end. Left out: which calls to make (`pyrag.methods.pyrag.speculative_execution`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pyrag.episode.ledger import Ledger
from pyrag.episode.requests import canonical, cost_of, spent_on
from pyrag.errors import BudgetExceededError
from pyrag.trace.model import Usage

T = TypeVar("T")


@dataclass(slots=True)
class PrefetchStats:
    """Counts of sub-queries that programs searched for word for word, as foreseen, and of the others. For planners
    that have words of their own, nothing is foreseen any more after a few questions."""

    hits: int = 0
    misses: int = 0

    @property
    def pays(self) -> bool:
        return self.misses <= 2 + self.hits / 4


@dataclass(frozen=True, slots=True)
class _SpeculativeCall:
    task: asyncio.Future[Any]
    cost: Usage


class SpeculativeCalls(Ledger):
    """The ledger of programs that run ahead. It begins a request where the budget has room for it beside all that was
    asked for and speculated so far; a speculative call never takes room from what is asked for."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger.budget)
        self.started = ledger.started
        self.on_wait: Callable[[], None] = _nothing  # called when a program begins to wait for a speculative call
        self._real = ledger
        self._pending: dict[bytes, _SpeculativeCall] = {}
        ledger.speculative = self

    async def once(
        self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]
    ) -> tuple[T, bool]:
        """Return the reply, and True if the question's own ledger already has it.

        Args:
            role: The agent's role, or `retrieve`.
            request: What is asked, as plain data; equal requests are one.
            run: Makes the request.
            reply_type: Not used: a speculative call is never replayed.

        Raises:
            BudgetExceededError: there is no room for a speculative call.
        """
        key = canonical(role, request)
        if (asked := self._real.asked(key)) is not None:
            return await asyncio.shield(asked), True
        call = self._pending.get(key)
        if call is None:
            call = self._pending[key] = self._begin(key, cost_of(role), run)
        if not call.task.done():
            self.on_wait()
        return await asyncio.shield(call.task), False

    async def until_certain(self) -> None:
        """Wait until the program that runs ahead is dropped: what a tool does cannot be taken back."""
        self.on_wait()
        await asyncio.Event().wait()

    def claim(self, key: bytes, run: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Return a function that gives the reply to a request that counts from now on.

        Args:
            key: The canonical form of the request.
            run: Makes the request; returned where there is no speculative call, or a failed one.
        """
        call = self._pending.pop(key, None)
        if call is None or _failed(call.task):
            return run
        return partial(_result, call.task)

    async def unused(self) -> Usage:
        """Cancel the unused calls, and return their cost."""
        unused = list(self._pending.values())
        if not unused:
            return Usage()
        for call in unused:
            call.task.cancel()
        await asyncio.gather(*(call.task for call in unused), return_exceptions=True)
        wasted = sum(map(_spent, unused), start=Usage())
        return replace(wasted, unused_calls=wasted.model_calls, unused_retrievals=wasted.retrievals)

    def _begin(self, key: bytes, cost: Usage, run: Callable[[], Awaitable[Any]]) -> _SpeculativeCall:
        pending = sum(map(_spent, self._pending.values()), start=Usage())
        if not self._real.has_room_for(pending + cost):
            raise BudgetExceededError("there is no room in the budget for a speculative call")
        task = asyncio.ensure_future(run())
        task.add_done_callback(lambda done: self._forget_failure(key, done))
        return _SpeculativeCall(task, cost)

    def _forget_failure(self, key: bytes, task: asyncio.Future[Any]) -> None:
        """Ignore the error of an unused call."""
        if _failed(task):
            self._pending.pop(key, None)


def _nothing() -> None:
    pass


async def _result(task: asyncio.Future[T]) -> T:
    return await task


def _spent(call: _SpeculativeCall) -> Usage:
    """Return the cost of a speculative call, as far as it is known."""
    task = call.task
    return call.cost if not task.done() or _failed(task) else spent_on(task.result(), call.cost)


def _failed(task: asyncio.Future[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)

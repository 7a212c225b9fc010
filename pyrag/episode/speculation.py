"""Requests of a question made before anybody asks for them, because a program that is being written will.

A guess is off the books until it is asked for: then it counts, is recorded and is shown as if it was made in that
moment, so that a trace does not tell whether anything was guessed. What nobody asks for is added to the usage in the
end. Left out: what to guess (`pyrag.methods.pyrag.speculative_execution`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pyrag.episode.ledger import Ledger, canonical, cost_of, spent_on
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
class _Guess:
    task: asyncio.Future[Any]
    cost: Usage


class SpeculativeCalls(Ledger):
    """The ledger of programs that run ahead. It begins a request where the budget has room for it beside all that was
    asked for and guessed so far; a guess never takes room from what is asked for."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger.budget)
        self.started = ledger.started
        self.on_wait: Callable[[], None] = _nothing  # called when a program begins to wait for a guess
        self._real = ledger
        self._guesses: dict[bytes, _Guess] = {}
        ledger.guesses = self

    async def once(
        self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]
    ) -> tuple[T, bool]:
        """Return the reply, and True if the question's own ledger already has it.

        Args:
            role: The agent's role, or `retrieve`.
            request: What is asked, as plain data; equal requests are one.
            run: Makes the request.
            reply_type: Not used: a guess is never replayed.

        Raises:
            BudgetExceededError: there is no room for a guess.
        """
        key = canonical(role, request)
        if (asked := self._real.asked(key)) is not None:
            return await asyncio.shield(asked), True
        guess = self._guesses.get(key)
        if guess is None:
            guess = self._guesses[key] = self._begin(key, cost_of(role), run)
        if not guess.task.done():
            self.on_wait()
        return await asyncio.shield(guess.task), False

    def claim(self, key: bytes, run: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Return a function that gives the reply to a request that counts from now on.

        Args:
            key: The canonical form of the request.
            run: Makes the request; returned where there is no guess, or a failed one.
        """
        guess = self._guesses.pop(key, None)
        if guess is None or _failed(guess.task):
            return run
        return partial(_result, guess.task)

    async def unused(self) -> Usage:
        """Cancel the guesses that nobody asked for, and return their cost."""
        unused = list(self._guesses.values())
        if not unused:
            return Usage()
        for guess in unused:
            guess.task.cancel()
        await asyncio.gather(*(guess.task for guess in unused), return_exceptions=True)
        wasted = sum(map(_spent, unused), start=Usage())
        return replace(wasted, unused_calls=wasted.model_calls, unused_retrievals=wasted.retrievals)

    def _begin(self, key: bytes, cost: Usage, run: Callable[[], Awaitable[Any]]) -> _Guess:
        pending = sum(map(_spent, self._guesses.values()), start=Usage())
        if not self._real.has_room_for(pending + cost):
            raise BudgetExceededError("there is no room in the budget for a guess")
        task = asyncio.ensure_future(run())
        task.add_done_callback(lambda done: self._forget_failure(key, done))
        return _Guess(task, cost)

    def _forget_failure(self, key: bytes, task: asyncio.Future[Any]) -> None:
        """Ignore the error of a guess that nobody asked for."""
        if _failed(task):
            self._guesses.pop(key, None)


def _nothing() -> None:
    pass


async def _result(task: asyncio.Future[T]) -> T:
    return await task


def _spent(guess: _Guess) -> Usage:
    """Return the cost of a guess, as far as it is known."""
    task = guess.task
    return guess.cost if not task.done() or _failed(task) else spent_on(task.result(), guess.cost)


def _failed(task: asyncio.Future[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)

"""Gate for all requests of a question (`Episode.requests`): each is made once, then answered from the memo.

`Requests.fresh` makes requests that must not be answered from the memo, such as those for a plan. Behind the gate,
`Ledger.call` holds the budget and the recording. A program that runs ahead asks through `Memo.speculative` instead,
over the same memo and ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from pyrag.episode.ledger import Ledger
from pyrag.episode.requests import AskingStep, canonical
from pyrag.episode.speculation import SpeculativeCalls

T = TypeVar("T")


class Requests(Protocol):
    """Interface through which an episode makes its requests."""

    async def ask(
        self,
        role: str,
        request: dict[str, Any],
        run: Callable[[], Awaitable[T]],
        reply_type: type[T],
        step: AskingStep | None = None,
    ) -> tuple[T, bool]:
        """Return the reply to a request, and True if an equal request had been made before.

        Args:
            role: The agent's role, or `retrieve`.
            request: The request as plain data; equal data means the same request.
            run: Function that makes the request.
            reply_type: Type of the reply, for reading it from a recording.
            step: Step that makes the request.
        """
        ...

    async def fresh(
        self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]
    ) -> T:
        """Make a request, even if an equal one had been made before, and return its reply. Args: as for `ask`."""
        ...

    async def until_certain(self) -> None:
        """Wait until the program's calls are certain to count, because the program is not discarded."""
        ...


class Memo:
    """Requests of one question with their replies. Failures are not remembered."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._replies: dict[bytes, asyncio.Future[Any]] = {}
        self.speculative = SpeculativeCalls(ledger, self._replies)

    async def ask(
        self,
        role: str,
        request: dict[str, Any],
        run: Callable[[], Awaitable[T]],
        reply_type: type[T],
        step: AskingStep | None = None,
    ) -> tuple[T, bool]:
        """Return the reply to a request, and True if an equal request had been made before.

        Args:
            role: The agent's role, or `retrieve`.
            request: The request as plain data; equal data means the same request.
            run: Function that makes the request.
            reply_type: Type of the reply, for reading it from a recording.
            step: Step that makes the request.
        """
        key = canonical(role, request)
        if (earlier := self._replies.get(key)) is not None:
            return await asyncio.shield(earlier), True
        run = self.speculative.claimed(key, run)
        task = self._replies[key] = asyncio.ensure_future(self._ledger.call(role, request, run, reply_type, step))
        task.add_done_callback(partial(self._forget_failure, key))
        # Shielded: when a program fails, its requests in flight continue, since its repair will make them again.
        return await asyncio.shield(task), False

    async def fresh(
        self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]
    ) -> T:
        """Make a request, even if an equal one had been made before, and return its reply.

        Args:
            role: The agent's role.
            request: The request as plain data.
            run: Makes the request.
            reply_type: Type of the reply, for reading it from a recording.

        Raises:
            BudgetExceededError: The request might cost more than the remaining budget; it is not made.
        """
        return await self._ledger.call(role, request, run, reply_type)

    async def until_certain(self) -> None:
        """Return immediately, because the calls of this program always count."""

    def forget(self, role: str, request: dict[str, Any]) -> None:
        """Forget the reply to a request, so that an equal request is made again.

        Args:
            role: The agent's or tool's role.
            request: The request as plain data.
        """
        self._replies.pop(canonical(role, request), None)

    def _forget_failure(self, key: bytes, task: asyncio.Future[Any]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._replies.pop(key, None)

    async def aclose(self) -> None:
        """Cancel all requests in flight, and charge the unused speculative calls to the ledger."""
        tasks = [task for task in self._replies.values() if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        self._ledger.usage += await self.speculative.unused()

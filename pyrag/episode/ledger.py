"""The one gate to agents and retriever: budget, usage, recording and replay of a question.

Every request of an episode passes `Ledger.call`. That is what makes a budget hold, a usage add up, and a recording
complete, whichever engine is behind it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Protocol, TypeVar

import msgspec

from pyrag.episode.recordings import Journal, Recording, as_failure, failure_of, raise_again, spent_of
from pyrag.episode.requests import TOOL, canonical, cost_of, lost_on, request_key, spent_on
from pyrag.errors import BudgetExceededError, ReplayError
from pyrag.llm.spending import Spending, spending
from pyrag.retrieval.checked import Passages
from pyrag.trace.events import AgentFinished, AgentStarted, Observer, Searched, ignore
from pyrag.trace.model import Exchange, RoleUsage, Usage

__all__ = ["AskingStep", "Budget", "EarlyCalls", "Journal", "Ledger", "Recording", "asking_step"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Budget:
    """Most that one question may spend: model calls, retrievals, tool calls, tokens of both kinds, seconds, money.

    Prices are per million tokens; without them nothing costs money. `patient`: a request that only those under way
    leave no room for waits for them, since they may turn out to cost nothing (a cache); otherwise it is refused.
    """

    calls: int = 20
    retrievals: int = 50
    tokens: int | None = None
    seconds: float | None = 120.0
    cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    patient: bool = False
    tool_calls: int = 50

    def price(self, usage: Usage) -> float | None:
        """Return the cost of the tokens of `usage`; None without prices."""
        if self.price_in is None and self.price_out is None:
            return None
        spent = usage.prompt_tokens * (self.price_in or 0.0) + usage.completion_tokens * (self.price_out or 0.0)
        return spent / 1e6


class AskingStep(Protocol):
    """A step that makes requests. `id` is None once it was dropped from the trace."""

    @property
    def id(self) -> int | None: ...


asking_step: ContextVar[AskingStep | None] = ContextVar("asking_step", default=None)


class EarlyCalls(Protocol):
    """Requests that were made before the program asked for them."""

    def claim(self, key: bytes, run: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Return what gives the reply to a request: the early one's where there is one, else `run`.

        Args:
            key: The request's key in the memo.
            run: Makes the request.
        """
        ...

    async def unused(self) -> Usage:
        """Cancel the requests that nobody asked for, and return what they cost."""
        ...


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of a request. `recalled`: its reply comes from a recording or an earlier process."""

    seconds: float
    spent: Usage
    failure: str
    recalled: bool


@dataclass(eq=False, slots=True)
class _OpenRequest:
    """A request under way: what it costs at least, and what its model calls have cost so far."""

    cost: Usage
    spending: Spending
    exchange: Exchange | None = None  # from a recording or journal
    started: float = field(default_factory=time.perf_counter)

    @property
    def reserved(self) -> Usage:
        """The part of the budget that the request takes while it is under way."""
        spent = self.spending.usage
        return Usage(
            max(self.cost.model_calls, self.spending.calls),
            self.cost.retrievals,
            spent.prompt_tokens,
            spent.completion_tokens,
            tool_calls=self.cost.tool_calls,
        )


class Ledger:
    """Spends a budget. `exchanges` holds what was asked and replied if `keep` is set.

    What a journal recalls counts against the budget like any other request, the seconds spent on it included.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        recording: Recording | None = None,
        keep: bool = False,
        journal: Journal | None = None,
    ) -> None:
        self.budget = budget
        self.recording = recording
        self.journal = journal
        self.keep = keep or recording is not None
        self.started = time.perf_counter() - (journal.spent if journal else 0.0)
        self.observer: Observer = ignore
        self.usage = Usage()
        self.roles: dict[str, RoleUsage] = {}
        self.speculative: EarlyCalls | None = None
        self.exchanges: list[Exchange] = []
        self._calls = 0
        self._under_way: set[_OpenRequest] = set()
        self._settled = asyncio.Event()  # a new one whenever a request ends
        self._memo: dict[bytes, asyncio.Future[Any]] = {}

    def elapsed(self) -> float:
        """Seconds since the question was asked, time between processes left out."""
        return time.perf_counter() - self.started

    async def once(
        self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]
    ) -> tuple[T, bool]:
        """Return the reply, and whether the same was asked before: then that is the reply. Failures are not remembered.

        Args:
            role: The agent's role, or `retrieve`.
            request: What is asked, as plain data; equal requests are one.
            run: Makes the request.
            reply_type: Type of the reply, to read it from a recording.
        """
        key = canonical(role, request)
        if (asked := self.asked(key)) is not None:
            return await asyncio.shield(asked), True
        if self.speculative is not None:
            run = _claimed(self.speculative, key, run)
        task = self._memo[key] = asyncio.ensure_future(self.call(role, request, run, reply_type))
        task.add_done_callback(lambda done: self._forget_failure(key, done))
        # Shielded: when a program fails, what it has in flight goes on, since its repair will ask for it again.
        return await asyncio.shield(task), False

    def asked(self, key: bytes) -> asyncio.Future[Any] | None:
        """The reply to a request that was made before."""
        return self._memo.get(key)

    def forget(self, role: str, request: dict[str, Any]) -> None:
        """Forget the reply to a request, so that an equal one is made again.

        Args:
            role: Its role.
            request: Its data.
        """
        self._memo.pop(canonical(role, request), None)

    async def until_certain(self) -> None:
        """Return once it is certain that the program which calls is the one that counts: here at once."""

    def _forget_failure(self, key: bytes, task: asyncio.Future[Any]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._memo.pop(key, None)

    async def aclose(self) -> None:
        """Cancels what is still in flight, and counts unused speculative calls."""
        tasks = [task for task in self._memo.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.speculative is not None:
            self.usage += await self.speculative.unused()

    async def call(self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]) -> T:
        """Run one request, or replay it.

        Args:
            role: The agent's role, or `retrieve`.
            request: What is asked, as plain data; equal requests are one.
            run: Makes the request.
            reply_type: Type of the reply, to read it from a recording.

        Raises:
            BudgetExceededError: it might cost more than is left; it is not made.
        """
        cost = cost_of(role)
        while self.budget.patient and not self._has_room(cost):
            await self._settled.wait()
        self._check(cost)  # before the request is made, so that requests side by side cannot overspend together
        asked = _OpenRequest(cost, Spending(self._admit))
        self._under_way.add(asked)
        report = self._report(role, request)
        token = spending.set(asked.spending)
        reply, spent, failure = None, Usage(), ""
        try:
            reply = await self._replied(role, request, run, reply_type, asked)
            spent = spent_on(reply, cost, asked.spending)
        except BaseException as error:
            spent = self._lost(error, asked)
            failure = str(error) or type(error).__name__
            self._record_failure(role, request, error, spent, asked)
            raise
        finally:
            spending.reset(token)
            self.usage += spent
            seconds = time.perf_counter() - asked.started
            self.roles[role] = self.roles.get(role, RoleUsage()) + RoleUsage(1, seconds)
            self._under_way.discard(asked)
            self._settled.set()
            self._settled = asyncio.Event()
            report(reply, _Ended(seconds, spent, failure, asked.exchange is not None))
        self._record(role, request, _body_of(reply), asked)
        return reply

    async def _replied(
        self,
        role: str,
        request: dict[str, Any],
        run: Callable[[], Awaitable[T]],
        reply_type: type[T],
        asked: _OpenRequest,
    ) -> T:
        """Return the reply of the recording or journal, else of `run`."""
        if self.recording:
            asked.exchange = self.recording.reply(role, request_key(role, request), request)
        elif self.journal:
            asked.exchange = self.journal.recall(role, request_key(role, request))
        if asked.exchange is None:
            return await run()
        await raise_again(asked.exchange, self.recording)
        return _read_again(asked.exchange, reply_type)

    def _lost(self, error: BaseException, asked: _OpenRequest) -> Usage:
        """Return what a failed request cost."""
        if asked.exchange is not None and failure_of(asked.exchange):
            return spent_of(asked.exchange)
        return lost_on(error, asked.spending)

    def _report(self, role: str, request: dict[str, Any]) -> Callable[[Any, _Ended], None]:
        """Tell the observer that a request begins; return a function that tells it the end. A tool's call is told by
        its step."""
        if role.startswith(TOOL):
            return lambda reply, ended: None
        number, step = self._calls, asking_step.get()
        self._calls += 1

        def searched(reply: Any, ended: _Ended) -> None:
            found = 0 if reply is None else len(reply)
            query, topk = request["query"], request.get("topk", 0)
            asker = None if step is None else step.id  # its final number, if the program has ended meanwhile
            self.observer(Searched(number, query, topk, found, ended.seconds, asker, ended.failure))

        def replied(_: Any, ended: _Ended) -> None:
            cached = ended.recalled or ended.spent.cached_calls > 0
            self.observer(AgentFinished(number, role, ended.seconds, ended.spent, cached, ended.failure))

        if role == "retrieve":
            return searched
        self.observer(AgentStarted(number, role, None if step is None else step.id))
        return replied

    def has_room_for(self, cost: Usage) -> bool:
        """Return whether the budget bears this beside what was spent and what is under way."""
        try:
            self._check(cost)
        except BudgetExceededError:
            return False
        return True

    def _has_room(self, cost: Usage) -> bool:
        """Return whether there is room, or nothing under way whose end could make room."""
        calls = self._reserved().model_calls
        return not calls or self.usage.model_calls + calls + cost.model_calls <= self.budget.calls

    def _reserved(self) -> Usage:
        return reduce(add, (one.reserved for one in self._under_way), Usage())

    def _admit(self, asking: Spending) -> None:
        """Refuse a model call of a request under way that the budget has no room for.

        The first one was checked with its request; those after it are an agent's retries.

        Args:
            asking: Belongs to the request.

        Raises:
            BudgetExceededError: the call might cost more than is left.
        """
        if self.budget.patient:  # what others reserve may come from the cache
            made = sum(one.spending.calls for one in self._under_way)
            reserved = self._reserved()
            self._check(Usage(model_calls=1 + made - reserved.model_calls))
        elif asking.calls:
            self._check(Usage(model_calls=1))

    def _check(self, cost: Usage) -> None:
        """Raises `BudgetExceededError` where this is too much beside what was spent and what is under way."""
        total, budget = self.usage + self._reserved() + cost, self.budget
        for wanted, limit, what in (
            (total.model_calls, budget.calls, "model calls"),
            (total.retrievals, budget.retrievals, "retrievals"),
            (total.tool_calls, budget.tool_calls, "tool calls"),
            (total.prompt_tokens + total.completion_tokens, budget.tokens, "tokens"),
        ):
            if limit is not None and wanted > limit:
                raise BudgetExceededError(f"the budget of {limit} {what} for this question is spent: raise it to go on")
        self._check_cost(total)

    def _check_cost(self, total: Usage) -> None:
        """Refuse a request once the budget is spent. A cost shows only afterwards: the last may go beyond."""
        spent, limit = self.budget.price(total), self.budget.cost
        if limit is not None and spent is not None and spent >= limit:
            raise BudgetExceededError(
                f"the budget of {limit:g} for this question is spent ({spent:.6g}): raise --max-cost to go on"
            )

    def _record(self, role: str, request: dict[str, Any], body: dict[str, Any], asked: _OpenRequest) -> None:
        if not (self.keep or self.journal):
            return
        seconds = time.perf_counter() - asked.started
        exchange = Exchange(role, request_key(role, request), request, body, seconds)
        if self.keep:
            self.exchanges.append(exchange)
        if self.journal and asked.exchange is None:
            self.journal.keep(exchange)

    def _record_failure(
        self, role: str, request: dict[str, Any], error: BaseException, spent: Usage, asked: _OpenRequest
    ) -> None:
        """Keep a failure, which a replay raises again. A journal keeps none that the end of its process may cause."""
        if isinstance(error, ReplayError) or not isinstance(error, Exception | asyncio.CancelledError):
            return
        if isinstance(error, asyncio.CancelledError) and not self.keep:
            return
        limit = self.budget.seconds
        late = limit is not None and self.elapsed() >= limit
        self._record(role, request, as_failure(error, spent, deadline=late), asked)


def _claimed(early: EarlyCalls, key: bytes, run: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Claim an early request when its reply is awaited: one that the budget refuses stays among the unused ones."""

    async def claim() -> T:
        return await early.claim(key, run)()

    return claim


def _body_of(reply: Any) -> dict[str, Any]:
    """Return a reply as a recording holds it; the notes on passages are no part of the list itself."""
    notes = getattr(reply, "notes", ())
    return {"value": msgspec.to_builtins(reply), **({"notes": list(notes)} if notes else {})}


def _read_again(exchange: Exchange, reply_type: type[T]) -> T:
    """Return the reply of an exchange. Raises `ReplayError` where it is not in form."""
    try:
        reply = msgspec.convert(exchange.reply.get("value"), reply_type)
    except msgspec.ValidationError as error:
        raise ReplayError(f"the recorded reply to {exchange.role} is not in form: {error}") from error
    notes = exchange.reply.get("notes")
    return Passages(reply, map(str, notes)) if isinstance(notes, list) and isinstance(reply, list) else reply  # type: ignore[return-value]

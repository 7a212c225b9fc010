"""The one gate to agents and retriever: budget, usage, recording and replay of a question.

Every request of an episode passes `Ledger.call`. That is what makes a budget hold, a usage add up, and a recording
complete, whichever engine is behind it.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from pyrag.episode.requests import TOOL, canonical, cost_of, request_key, spent_on
from pyrag.errors import BadOutputError, BudgetExceededError, DataError, ReplayError
from pyrag.trace.events import AgentFinished, AgentStarted, Observer, Searched, ignore
from pyrag.trace.model import Exchange, RoleUsage, Usage

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


class Recording:
    """Exchanges to answer from instead of an engine. Equal requests are answered in the order recorded."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._replies: dict[tuple[str, str], deque[Exchange]] = defaultdict(deque)
        for exchange in exchanges:
            self._replies[exchange.role, exchange.key].append(exchange)

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Reads what `--record` wrote: one exchange a line. Raises `DataError`."""
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise DataError(f"cannot read the recording {path}: {error.strerror}") from error
        exchanges = []
        for number, line in enumerate(lines, start=1):
            try:
                exchanges.append(msgspec.json.decode(line, type=Exchange))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(f"{path} line {number} is no recorded exchange ({error}): record again") from error
        return cls(exchanges)

    def holds(self, role: str) -> bool:
        """Return True if any request of this role was recorded."""
        return any(recorded == role for recorded, _ in self._replies)

    @property
    def tools(self) -> dict[str, bool]:
        """The tools that programs could call, by name; True for those with effects."""
        requests = (exchange.request for queue in self._replies.values() for exchange in queue)
        offered = [request["tools"] for request in requests if isinstance(request.get("tools"), dict)]
        return {str(name): bool(effects) for tools in offered for name, effects in tools.items()}

    def reply(self, role: str, key: str, request: dict[str, Any]) -> Exchange:
        """Return the next reply to this request; the last one stays for good.

        Args:
            role: The agent's role, or `retrieve`.
            key: Digest of the request.
            request: The request itself, for the message.

        Raises:
            ReplayError: the recording does not hold it.
        """
        queue = self._replies.get((role, key))
        if not queue:
            asked = str(request.get("query") or request.get("question") or request)[:80]
            raise ReplayError(f"the recording holds no {role} for {asked!r}: record again with --record")
        return queue.popleft() if len(queue) > 1 else queue[0]


class Journal(Protocol):
    """Exchanges of one question kept as they happen, so that the question can go on where its process ended."""

    @property
    def spent(self) -> float:
        """Seconds that earlier processes spent on the question."""
        ...

    def recall(self, role: str, key: str) -> Exchange | None:
        """Return what an earlier process got for this request, once each; None if nothing.

        Args:
            role: The agent's role, or `retrieve`.
            key: Digest of the request.
        """
        ...

    def keep(self, exchange: Exchange) -> None: ...


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
        self._calls_under_way = 0
        self._retrievals_under_way = 0
        self._tool_calls_under_way = 0
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
            run = self.speculative.claim(key, run)
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
        self._calls_under_way += cost.model_calls
        self._retrievals_under_way += cost.retrievals
        self._tool_calls_under_way += cost.tool_calls
        report = self._report(role, request)
        started = time.perf_counter()
        reply, recalled, spent, failure = None, None, Usage(), ""
        try:
            recalled = self._recalled(role, request, reply_type)
            reply = await run() if recalled is None else recalled
            spent = spent_on(reply, cost)
        except BaseException as error:
            if isinstance(error, BadOutputError):
                spent = replace(error.usage or Usage(), seconds=0.0)
            failure = str(error) or type(error).__name__
            raise
        finally:
            self.usage += spent
            seconds = time.perf_counter() - started
            self.roles[role] = self.roles.get(role, RoleUsage()) + RoleUsage(1, seconds)
            self._calls_under_way -= cost.model_calls
            self._retrievals_under_way -= cost.retrievals
            self._tool_calls_under_way -= cost.tool_calls
            self._settled.set()
            self._settled = asyncio.Event()
            report(reply, _Ended(seconds, spent, failure, recalled is not None))
        if self.keep or self.journal:
            self._record(role, request, reply, seconds, new=recalled is None)
        return reply

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
        calls = self._calls_under_way
        return not calls or self.usage.model_calls + calls + cost.model_calls <= self.budget.calls

    def _check(self, cost: Usage) -> None:
        """Raises `BudgetExceededError` where this is too much beside what was spent and what is under way."""
        spent, budget = self.usage, self.budget
        tokens = spent.prompt_tokens + spent.completion_tokens + cost.prompt_tokens + cost.completion_tokens
        for wanted, limit, what in (
            (spent.model_calls + self._calls_under_way + cost.model_calls, budget.calls, "model calls"),
            (spent.retrievals + self._retrievals_under_way + cost.retrievals, budget.retrievals, "retrievals"),
            (spent.tool_calls + self._tool_calls_under_way + cost.tool_calls, budget.tool_calls, "tool calls"),
            (tokens, budget.tokens, "tokens"),
        ):
            if limit is not None and wanted > limit:
                raise BudgetExceededError(f"the budget of {limit} {what} for this question is spent: raise it to go on")
        self._check_cost()

    def _check_cost(self) -> None:
        """Refuse a request once the budget is spent. A cost shows only afterwards: the last may go beyond."""
        spent, limit = self.budget.price(self.usage), self.budget.cost
        if limit is not None and spent is not None and spent >= limit:
            raise BudgetExceededError(
                f"the budget of {limit:g} for this question is spent ({spent:.6g}): raise --max-cost to go on"
            )

    def _record(self, role: str, request: dict[str, Any], reply: Any, seconds: float, *, new: bool) -> None:
        body = {"value": msgspec.to_builtins(reply)}
        exchange = Exchange(role, request_key(role, request), request, body, seconds)
        if self.keep:
            self.exchanges.append(exchange)
        if self.journal and new:
            self.journal.keep(exchange)

    def _recalled(self, role: str, request: dict[str, Any], reply_type: type[T]) -> T | None:
        """The reply from the recording or journal; None where the engine must be asked."""
        exchange: Exchange | None = None
        if self.recording:
            exchange = self.recording.reply(role, request_key(role, request), request)
        elif self.journal:
            exchange = self.journal.recall(role, request_key(role, request))
        if exchange is None:
            return None
        try:
            return msgspec.convert(exchange.reply.get("value"), reply_type)
        except msgspec.ValidationError as error:
            raise ReplayError(f"the recorded reply to {role} is not in form: {error}") from error

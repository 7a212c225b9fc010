"""Account of all requests to agents, retriever and tools: budget, usage, recording and replay of a question.

Every request of an episode passes through `Ledger.call`, behind its gate (`pyrag.episode.memo`). This makes sure that
the budget holds, usage adds up and recordings are complete, whatever engine answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, TypeVar

import msgspec

from pyrag.episode.recordings import Journal, Recording, as_failure, failure_of, raise_again, spent_of
from pyrag.episode.requests import CATALOGUE, TOOL, AskingStep, cost_of, lost_on, request_key, spent_on
from pyrag.errors import BudgetExceededError, ReplayError
from pyrag.llm.spending import Spending, spending
from pyrag.retrieval.checked import Passages
from pyrag.trace.events import AgentFinished, AgentStarted, Observer, Searched, ignore
from pyrag.trace.model import Exchange, RoleUsage, Usage

__all__ = ["Journal", "Ledger", "QuestionBudget", "Recording"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QuestionBudget:
    """Limits on what one question may spend: model calls, retrievals, tool calls, tokens, seconds and money.

    Attributes:
        tokens: Maximum of prompt and completion tokens together.
        cost: Maximum cost, in the currency of the prices.
        price_in: Price of a million prompt tokens. Without prices, the cost is not limited.
        patient: Whether a request waits if only unfinished requests leave no room for it, since these may turn out to
            cost nothing (cached replies). Otherwise, it is refused.
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
        """Return the cost of the tokens in `usage`, or None without prices."""
        if self.price_in is None and self.price_out is None:
            return None
        spent = usage.prompt_tokens * (self.price_in or 0.0) + usage.completion_tokens * (self.price_out or 0.0)
        return spent / 1e6


@dataclass(frozen=True, slots=True)
class _Ended:
    """End of a request. `recalled` is True if the reply comes from a recording or an earlier process."""

    seconds: float
    spent: Usage
    failure: str
    recalled: bool


@dataclass(eq=False, slots=True)
class _OpenRequest:
    """Unfinished request, with its minimum cost and the cost of its model calls so far."""

    cost: Usage
    spending: Spending
    exchange: Exchange | None = None  # from a recording or journal
    started: float = field(default_factory=time.perf_counter)

    @property
    def reserved(self) -> Usage:
        """Part of the budget that the request reserves until it is finished."""
        spent = self.spending.usage
        return Usage(
            max(self.cost.model_calls, self.spending.calls),
            self.cost.retrievals,
            spent.prompt_tokens,
            spent.completion_tokens,
            tool_calls=self.cost.tool_calls,
        )


class Ledger:
    """Account of a question's requests against its budget. `exchanges` holds all requests if `keep` is set.

    Requests recalled from a journal count against the budget like any other, including the seconds spent on them.
    """

    def __init__(
        self,
        budget: QuestionBudget,
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
        self.exchanges: list[Exchange] = []
        self._calls = 0
        self._under_way: set[_OpenRequest] = set()
        self._settled = asyncio.Event()  # replaced whenever a request ends

    def elapsed(self) -> float:
        """Return the seconds spent on the question, excluding the time between processes."""
        return time.perf_counter() - self.started

    async def call(
        self,
        role: str,
        request: dict[str, Any],
        run: Callable[[], Awaitable[T]],
        reply_type: type[T],
        step: AskingStep | None = None,
    ) -> T:
        """Make a request, or replay it.

        Args:
            role: The agent's role, or `retrieve`.
            request: The request as plain data; equal data means the same request.
            run: Function that makes the request.
            reply_type: Type of the reply, for reading it from a recording.
            step: Step that makes the request, for its events.

        Raises:
            BudgetExceededError: The request might cost more than the remaining budget; it is not made.
        """
        cost = cost_of(role)
        while self.budget.patient and not self._has_room(cost):
            await self._settled.wait()
        self._check(cost)  # before the request is made, so that parallel requests cannot overspend together
        open_request = _OpenRequest(cost, Spending(self._admit))
        self._under_way.add(open_request)
        report = self._report(role, request, step)
        token = spending.set(open_request.spending)
        reply, spent, failure = None, Usage(), ""
        try:
            reply = await self._replied(role, request, run, reply_type, open_request)
            spent = spent_on(reply, cost, open_request.spending)
        except BaseException as error:
            spent = self._lost(error, open_request)
            failure = str(error) or type(error).__name__
            self._record_failure(role, request, error, spent, open_request)
            raise
        finally:
            spending.reset(token)
            self.usage += spent
            seconds = time.perf_counter() - open_request.started
            self.roles[role] = self.roles.get(role, RoleUsage()) + RoleUsage(1, seconds)
            self._under_way.discard(open_request)
            self._settled.set()
            self._settled = asyncio.Event()
            report(reply, _Ended(seconds, spent, failure, open_request.exchange is not None))
        self._record(role, request, _body_of(reply), open_request)
        return reply

    async def _replied(
        self,
        role: str,
        request: dict[str, Any],
        run: Callable[[], Awaitable[T]],
        reply_type: type[T],
        open_request: _OpenRequest,
    ) -> T:
        """Return the reply from the recording or journal, or make the request."""
        if self.recording:
            open_request.exchange = self.recording.reply(role, request_key(role, request), request)
        elif self.journal:
            open_request.exchange = self.journal.recall(role, request_key(role, request))
        if open_request.exchange is None:
            return await run()
        await raise_again(open_request.exchange, self.recording)
        return _read_again(open_request.exchange, reply_type)

    def _lost(self, error: BaseException, open_request: _OpenRequest) -> Usage:
        """Return the cost of a failed request."""
        if open_request.exchange is not None and failure_of(open_request.exchange):
            return spent_of(open_request.exchange)
        return lost_on(error, open_request.spending)

    def _report(self, role: str, request: dict[str, Any], step: AskingStep | None) -> Callable[[Any, _Ended], None]:
        """Report the start of a request, and return a function that reports its end.

        A tool's step reports its calls, and a step of the catalogue its requests.
        """
        if role.startswith((TOOL, CATALOGUE)):
            return lambda reply, ended: None
        number = self._calls
        self._calls += 1

        def searched(reply: Any, ended: _Ended) -> None:
            count = 0 if reply is None else len(reply)
            query, topk = request["query"], request.get("topk", 0)
            asker = None if step is None else step.id  # the final number if the program has ended meanwhile
            self.observer(Searched(number, query, topk, count, ended.seconds, asker, ended.failure))

        def replied(_: Any, ended: _Ended) -> None:
            cached = ended.recalled or ended.spent.cached_calls > 0
            self.observer(AgentFinished(number, role, ended.seconds, ended.spent, cached, ended.failure))

        if role == "retrieve":
            return searched
        self.observer(AgentStarted(number, role, None if step is None else step.id))
        return replied

    def has_room_for(self, cost: Usage) -> bool:
        """Return True if the budget has room for this cost on top of all finished and unfinished requests."""
        try:
            self._check(cost)
        except BudgetExceededError:
            return False
        return True

    def _has_room(self, cost: Usage) -> bool:
        """Return True if there is room now, or if no unfinished request could still make room."""
        calls = self._reserved().model_calls
        return not calls or self.usage.model_calls + calls + cost.model_calls <= self.budget.calls

    def _reserved(self) -> Usage:
        return reduce(add, (request.reserved for request in self._under_way), Usage())

    def _admit(self, asking: Spending) -> None:
        """Refuse a model call of an unfinished request if the budget has no room for it.

        The first call was checked with its request; later calls are an agent's retries.
        """
        if self.budget.patient:  # other requests' reservations may turn out to cost nothing (cached replies)
            made = sum(request.spending.calls for request in self._under_way)
            reserved = self._reserved()
            self._check(Usage(model_calls=1 + made - reserved.model_calls))
        elif asking.calls:
            self._check(Usage(model_calls=1))

    def _check(self, cost: Usage) -> None:
        """Raise `BudgetExceededError` if this cost, plus all finished and unfinished requests, exceeds a limit."""
        total, budget = self.usage + cost, self.budget
        if self._under_way:
            total += self._reserved()
        for wanted, limit, what in (
            (total.model_calls, budget.calls, "model calls"),
            (total.retrievals, budget.retrievals, "retrievals"),
            (total.tool_calls, budget.tool_calls, "tool calls"),
            (total.prompt_tokens + total.completion_tokens, budget.tokens, "tokens"),
        ):
            if limit is not None and wanted > limit:
                raise BudgetExceededError(
                    f"the budget of {limit} {what} for this question is spent: raise it to continue"
                )
        self._check_cost(total)

    def _check_cost(self, total: Usage) -> None:
        """Raise `BudgetExceededError` once the budget is spent.

        A request's cost is only known afterwards, so the last request may exceed the budget.
        """
        spent, limit = self.budget.price(total), self.budget.cost
        if limit is not None and spent is not None and spent >= limit:
            raise BudgetExceededError(
                f"the budget of {limit:g} for this question is spent ({spent:.6g}): raise --max-cost to continue"
            )

    def _record(self, role: str, request: dict[str, Any], body: dict[str, Any], open_request: _OpenRequest) -> None:
        if not (self.keep or self.journal):
            return
        seconds = time.perf_counter() - open_request.started
        exchange = Exchange(role, request_key(role, request), request, body, seconds)
        if self.keep:
            self.exchanges.append(exchange)
        if self.journal and open_request.exchange is None:
            self.journal.keep(exchange)

    def _record_failure(
        self, role: str, request: dict[str, Any], error: BaseException, spent: Usage, open_request: _OpenRequest
    ) -> None:
        """Record a failure, which a replay raises again.

        A journal omits failures that may come from the end of its process.
        """
        if isinstance(error, ReplayError) or not isinstance(error, Exception | asyncio.CancelledError):
            return
        if isinstance(error, asyncio.CancelledError) and not self.keep:
            return
        limit = self.budget.seconds
        late = limit is not None and self.elapsed() >= limit
        self._record(role, request, as_failure(error, spent, deadline=late), open_request)


def _body_of(reply: Any) -> dict[str, Any]:
    """Return a reply in the form for recordings, which store notes on passages beside the list."""
    notes = getattr(reply, "notes", ())
    return {"value": msgspec.to_builtins(reply), **({"notes": list(notes)} if notes else {})}


def _read_again(exchange: Exchange, reply_type: type[T]) -> T:
    """Return the reply of an exchange. Raises `ReplayError` if the reply is malformed."""
    try:
        reply = msgspec.convert(exchange.reply.get("value"), reply_type)
    except msgspec.ValidationError as error:
        raise ReplayError(f"the recorded reply to {exchange.role} cannot be read ({error}): record it again") from error
    notes = exchange.reply.get("notes")
    return Passages(reply, map(str, notes)) if isinstance(notes, list) and isinstance(reply, list) else reply  # type: ignore[return-value]

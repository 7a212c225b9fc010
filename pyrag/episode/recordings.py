"""Recordings and journals: exchanges of a question, including failures, that are replayed instead of using engines.

A failure is an exchange too, since a method may have handled it: its reply holds `error` and the cost. An interrupted
request has the error `cancelled`. If the deadline interrupted it, a replay also ends at the deadline, after all other
exchanges were answered.
"""

from __future__ import annotations

import asyncio
import builtins
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pyrag.errors import BadOutputError, DataError, PyRAGError, ReplayError, ServiceError
from pyrag.trace.model import Exchange, Usage

CANCELLED = "cancelled"
_POLL = 0.005  # seconds
_Queue = deque[Exchange]


class ReplayedDeadlineError(TimeoutError):
    """Error for a request during which the recorded question reached its deadline."""


class Recording:
    """Exchanges that answer instead of an engine. Equal requests are answered in recorded order."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._replies: dict[tuple[str, str], _Queue] = defaultdict(deque)
        self._unserved: set[int] = set()  # ids of unanswered exchanges, without those cut short
        for exchange in exchanges:
            self._replies[exchange.role, exchange.key].append(exchange)
            if failure_of(exchange).get("type") != CANCELLED:
                self._unserved.add(id(exchange))

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read a file written by `--record`, one exchange per line. Raises `DataError` if it cannot be read."""
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise DataError(f"cannot read the recording {path}: {error.strerror}") from error
        exchanges = []
        for number, line in enumerate(lines, start=1):
            try:
                exchanges.append(msgspec.json.decode(line, type=Exchange))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(f"{path} line {number} is not a recorded exchange ({error}): record again") from error
        return cls(exchanges)

    def holds(self, role: str) -> bool:
        """Return True if any request of this role was recorded."""
        return any(recorded == role for recorded, _ in self._replies)

    @property
    def tools(self) -> dict[str, bool]:
        """Tools that programs could call, by name, mapped to True if the tool has effects."""
        requests = (exchange.request for queue in self._replies.values() for exchange in queue)
        offered = [request["tools"] for request in requests if isinstance(request.get("tools"), dict)]
        return {str(name): bool(effects) for tools in offered for name, effects in tools.items()}

    def reply(self, role: str, key: str, request: dict[str, Any]) -> Exchange:
        """Return the next reply to this request; after the last reply, return it again.

        Args:
            role: The agent's role, or `retrieve`.
            key: Digest of the request.
            request: The request itself, for the error message.

        Raises:
            ReplayError: The recording does not hold the request.
        """
        queue = self._replies.get((role, key))
        if not queue:
            asked = str(request.get("query") or request.get("question") or request)[:80]
            raise ReplayError(f"the recording holds no {role} for {asked!r}: record again with --record")
        exchange = queue.popleft() if len(queue) > 1 else queue[0]
        self._unserved.discard(id(exchange))
        return exchange

    async def until_served(self, seconds: float) -> None:
        """Wait until all exchanges except interrupted ones have been answered.

        Args:
            seconds: Maximum time to wait in seconds, since the recording may hold further questions.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._unserved and loop.time() < end:  # noqa: ASYNC110 (an event belongs to one loop, a recording to none)
            await asyncio.sleep(_POLL)


class Journal(Protocol):
    """Exchanges of one question, stored as they happen so that another process can continue the question."""

    @property
    def spent(self) -> float:
        """Seconds that earlier processes spent on the question."""
        ...

    def recall(self, role: str, key: str) -> Exchange | None:
        """Return the exchange of an earlier process for this request, or None. Each exchange is returned once.

        Args:
            role: The agent's role, or `retrieve`.
            key: Digest of the request.
        """
        ...

    def keep(self, exchange: Exchange) -> None: ...


def failure_of(exchange: Exchange) -> dict[str, Any]:
    """Return the recorded failure of an exchange; empty if the exchange has a reply."""
    failure = exchange.reply.get("error")
    return failure if isinstance(failure, dict) else {}


def as_failure(error: BaseException, spent: Usage, *, deadline: bool) -> dict[str, Any]:
    """Return the reply of a failed exchange, as plain data.

    Args:
        error: Error that the request raised.
        spent: Cost of the request.
        deadline: Whether the question's deadline has passed, if the request was interrupted.
    """
    usage = msgspec.to_builtins(spent)
    if isinstance(error, asyncio.CancelledError):
        return {"error": {"type": CANCELLED, "deadline": deadline}, "usage": usage}
    fields = {name: value for name, value in vars(error).items() if isinstance(value, str | int | float | bool | None)}
    fields.pop("detail", None)  # the start of a server's reply, which only agents read
    kinds = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, Exception)]
    return {"error": {"type": kinds[0], "kinds": kinds, "message": str(error), "fields": fields}, "usage": usage}


async def raise_again(exchange: Exchange, recording: Recording | None) -> None:
    """Raise the recorded failure of an exchange, if it has one.

    Args:
        exchange: The exchange.
        recording: Recording that holds the exchange; None for a journal.

    Raises:
        Exception: The recorded request failed with this exception.
    """
    failure = failure_of(exchange)
    if not failure:
        return
    if failure.get("type") != CANCELLED:
        raise _error_of(failure, spent_of(exchange))
    if not failure.get("deadline"):
        await asyncio.Event().wait()  # another request's failure ends the question
    if recording is not None:
        await recording.until_served(exchange.seconds)
    raise ReplayedDeadlineError


def spent_of(exchange: Exchange) -> Usage:
    """Return the cost of a failed exchange. Raises `ReplayError` if it is malformed."""
    try:
        return msgspec.convert(exchange.reply.get("usage", {}), Usage)
    except msgspec.ValidationError as error:
        raise ReplayError(f"the recorded usage of {exchange.role} cannot be read ({error}): record it again") from error


def _error_of(failure: dict[str, Any], spent: Usage) -> Exception:
    kinds = failure.get("kinds")
    known = {kind.__name__: kind for kind in _kinds(PyRAGError)}
    for name in kinds if isinstance(kinds, list) else ():
        kind = known.get(str(name)) or getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            break
    else:
        kind = ServiceError
    error: Exception = kind.__new__(kind)
    Exception.__init__(error, str(failure.get("message", "")))
    fields = failure.get("fields")
    error.__dict__.update(fields if isinstance(fields, dict) else {})
    if isinstance(error, BadOutputError):
        error.usage = spent
    return error


def _kinds(kind: type[PyRAGError]) -> Iterator[type[PyRAGError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _kinds(subclass)

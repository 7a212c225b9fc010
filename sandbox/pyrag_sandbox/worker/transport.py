"""The scheduler's transport to the host, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from greenlet import greenlet  # type: ignore[import-untyped] # it ships no types


class Transport(Protocol):
    """The way to the host. Everything runs in one thread."""

    def send(
        self,
        call_id: int,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        line: int,
        depends_on: tuple[int, ...],
    ) -> None:
        """Have a call made. It may wait for further ones until `flush` or `receive`.

        Args:
            call_id: number of the call, from 0 in dispatch order.
            name: the primitive.
            args: its positional arguments.
            kwargs: its arguments by name.
            line: line of the program; 0 if unknown.
            depends_on: ids of earlier calls that it may depend on, ascending.

        Raises:
            Exception: it cannot be sent; raised at the call.
        """
        ...

    def flush(self) -> None:
        """Have the calls leave that wait for others."""
        ...

    def receive(self) -> tuple[int, Any]:
        """Block for one reply: the call's id, and its value or the exception to raise there."""
        ...

    def cancel(self, call_id: int) -> None: ...

    def exhausted(self, calls: tuple[int, ...]) -> NoReturn:
        """The program asks for more calls than it may make; those that it made."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """The end of a run. `exception` has its traceback. `provenance` covers the names the program bound."""

    exception: BaseException | None
    provenance: dict[str, tuple[int, ...]]
    calls: tuple[int, ...]
    abandoned: tuple[greenlet, ...] = ()

"""Scheduler's transport to the host, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from greenlet import greenlet  # type: ignore[import-untyped] # it ships no types


class Transport(Protocol):
    """Connection to the host. All methods run in one thread."""

    def send(
        self,
        call_id: int,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        line: int,
        depends_on: tuple[int, ...],
    ) -> None:
        """Request a call. It may be held back until `flush` or `receive`, to be sent with others.

        Args:
            call_id: Number of the call, from 0 in order of dispatch.
            name: Name of the primitive.
            args: Positional arguments.
            kwargs: Keyword arguments.
            line: Line of the program; 0 if unknown.
            depends_on: Ids of earlier calls that it may depend on, ascending.

        Raises:
            Exception: The call cannot be sent. The exception is raised at the call in the program.
        """
        ...

    def flush(self) -> None:
        """Send all waiting calls."""
        ...

    def receive(self) -> tuple[int, Any]:
        """Block until a reply arrives, and return the call's id with its value or with the exception to raise there."""
        ...

    def cancel(self, call_id: int) -> None: ...

    def exhausted(self, calls: tuple[int, ...]) -> NoReturn:
        """End the program because it makes more calls than allowed.

        Args:
            calls: Ids of the calls that it made.
        """
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """Result of running a plan.

    Attributes:
        exception: The exception that ended the program, with its traceback, or None.
        provenance: Ids of calls for each name that the program bound.
        calls: Ids of the calls that count, in program order.
        abandoned: Suspended greenlets of a run that was ended.
        elements: For each name of a list whose items were tracked individually, the ids of the calls behind each item.
    """

    exception: BaseException | None
    provenance: dict[str, tuple[int, ...]]
    calls: tuple[int, ...]
    abandoned: tuple[greenlet, ...] = ()
    elements: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)

"""Objects that a program's calls returned to it, by identity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallResults:
    """Texts and passages that calls returned. The sandbox gives the same objects back in the program's values."""

    _calls: dict[int, tuple[int, Any]] = field(default_factory=dict)  # the objects are kept, so their ids stay theirs

    def keep(self, call: int, values: list[T]) -> list[T]:
        """Return the values, and remember the call that returned them.

        Args:
            call: Id of the call.
            values: Objects that the program receives.
        """
        self._calls.update({id(value): (call, value) for value in values})
        return values

    def call_of(self, value: object) -> int | None:
        """Return the id of the call that returned this object; None for other objects."""
        call, known = self._calls.get(id(value), (None, None))
        return call if known is value else None

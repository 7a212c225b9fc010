"""The part of a trace that belongs to a method: its own typed data, stored as plain data under the method's name.

STATE = Extension("opera", OperaState)

STATE.write(episode, OperaState(goals))     while a question is answered
STATE.read(trace)                           afterwards, also from a saved trace
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pyrag.errors import DataError

T = TypeVar("T")


class Extended(Protocol):
    """Trace, or an episode that will become one."""

    @property
    def extensions(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Extension(Generic[T]):
    """Data of a method, by name and type. The type is a dataclass of JSON types, tuples and other dataclasses."""

    name: str
    type: type[T]

    def read(self, trace: Extended) -> T | None:
        """Return the method's data in a trace, or None if it has none. Raises `DataError` if the data is damaged."""
        if self.name not in trace.extensions:
            return None
        import msgspec

        try:
            return msgspec.convert(trace.extensions[self.name], self.type)
        except msgspec.ValidationError as error:
            raise DataError(f"not a pyrag trace: its extension {self.name} is damaged ({error})") from error

    def plain(self, value: T) -> dict[str, Any]:
        """Return a value in the form of a trace's extensions, as the only extension."""
        import msgspec

        return {self.name: msgspec.json.decode(msgspec.json.encode(value))}

    def write(self, episode: Extended, value: T) -> None:
        """Store a value in the extensions of the episode's future trace, replacing an earlier value.

        Args:
            episode: Episode of the question.
            value: The method's data.
        """
        episode.extensions.update(self.plain(value))

"""Calls with effects that have happened in a question, so that no later program of it repeats them by mistake.

A program that called such a tool and then failed is repaired, and its repair makes the call once more. The same call is
answered from the record. Any other call of a tool whose earlier calls the program has not made yet, or that happened
before, is a repetition: only a tool that is `repeatable` makes it, for any other one the question stops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyrag.errors import RepeatedEffectError

if TYPE_CHECKING:
    from pyrag.tools.calls import ToolReply

_SHOWN = 5  # calls that a message names
_MAX_REPLY = 200  # characters of a reply in a message


@dataclass(slots=True, eq=False)
class EffectCall:
    """One call that was begun. Without a reply it was interrupted, and nobody knows how far it came."""

    name: str
    key: bytes
    shown: str
    reply: ToolReply | None = None

    def __str__(self) -> str:
        call = f"{self.name}({self.shown})"
        if self.reply is None:
            return f"{call} (interrupted: it may have taken effect)"
        if self.reply.error:
            return f"{call} (failed, and may have taken effect: {self.reply.error})"
        result = f"{len(self.reply.passages)} documents" if self.reply.documents else repr(self.reply.value)
        return f"{call} → {result if len(result) <= _MAX_REPLY else f'{result[: _MAX_REPLY - 1]}…'}"


@dataclass(slots=True)
class Effects:
    """Record of a question's calls with effects, in the order in which they were begun."""

    _earlier: list[EffectCall] = field(default_factory=list)  # of programs before this one
    _pending: list[EffectCall] = field(default_factory=list)  # those of them that this one has not made yet
    _now: list[EffectCall] = field(default_factory=list)  # of this program

    def begin_program(self) -> None:
        """Take what has happened so far as done by earlier programs."""
        self._earlier += self._now
        self._pending, self._now = list(self._earlier), []

    def recalled(self, name: str, key: bytes, shown: str, *, repeatable: bool) -> ToolReply | None:
        """Return the reply of the same call of an earlier program; None for a call that is to be made.

        Args:
            name: The tool's name.
            key: The canonical form of the call.
            shown: Its arguments, for messages.
            repeatable: Whether the tool may be called again whatever has happened.

        Raises:
            RepeatedEffectError: The call repeats what has happened, and is neither recorded nor repeatable.
        """
        same = next((call for call in self._pending if call.key == key), None)
        if same is not None:
            self._pending.remove(same)
            if same.reply is not None or not repeatable:
                return self._reply_of(same)
        elif not repeatable:
            self._refuse_repetition(name, key, shown)
        return None

    def begin(self, name: str, key: bytes, shown: str) -> EffectCall:
        """Note a call before it is made; the caller sets its reply.

        Args:
            name: The tool's name.
            key: The canonical form of the call.
            shown: Its arguments, for messages.
        """
        call = EffectCall(name, key, shown)
        self._now.append(call)
        return call

    def undo(self, call: EffectCall) -> None:
        """Drop a call that certainly had no effect."""
        self._now.remove(call)

    def summary(self) -> str:
        """Return the calls that have happened as text; empty if there are none."""
        return _listed([*self._earlier, *self._now])

    def left_out(self) -> str:
        """Return the calls of earlier programs that the last program did not make, as text."""
        return _listed(self._pending)

    def _reply_of(self, call: EffectCall) -> ToolReply:
        if call.reply is None:
            raise RepeatedEffectError(
                f"{call} was called by an earlier program of this question, and its result is not known: see whether "
                "it has taken effect before you ask again"
            )
        return call.reply

    def _refuse_repetition(self, name: str, key: bytes, shown: str) -> None:
        happened = [call for call in self._pending if call.name == name]
        if not happened and not any(call.key == key for call in self._earlier):
            return
        raise RepeatedEffectError(
            f"{name}({shown}) was not called, because an earlier program of this question has called {name} already: "
            f"{_listed([call for call in self._earlier if call.name == name])}. See whether that is what you want "
            "before you ask again, or declare the tool repeatable: @tool(effects=True, repeatable=True)"
        )


def _listed(calls: list[EffectCall]) -> str:
    more = f"; and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
    return "; ".join(map(str, calls[:_SHOWN])) + more

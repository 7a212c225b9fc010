"""Tool calls with effects that a question made, recorded so that a repaired program does not repeat them by mistake.

If a program fails after calling such a tool, the repaired program makes the same call again, which is answered from
this record. Any other call counts as a repetition if an earlier program called the same tool and this program has not
yet repeated that call. Then the tool only runs if it is declared `repeatable`; otherwise, the question stops.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyrag.errors import RepeatedEffectError

if TYPE_CHECKING:
    from pyrag.tools.calls import ToolReply

_SHOWN = 5  # calls named in a message
_MAX_REPLY = 200  # characters of a reply shown in a message


@dataclass(slots=True, eq=False)
class EffectCall:
    """Call of a tool with effects. A call without a reply was interrupted, and may have taken effect."""

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
    """Record of a question's calls with effects, in the order in which they began."""

    _earlier: list[EffectCall] = field(default_factory=list)  # calls of earlier programs
    _pending: list[EffectCall] = field(default_factory=list)  # earlier calls that this program has not repeated
    _now: list[EffectCall] = field(default_factory=list)  # calls of this program

    def begin_program(self) -> None:
        """Treat all calls so far as calls of earlier programs."""
        self._earlier += self._now
        self._pending, self._now = list(self._earlier), []

    def recalled(self, name: str, key: bytes, shown: str, *, repeatable: bool) -> ToolReply | None:
        """Return the reply to the same call in an earlier program, or None if the call must be made.

        Args:
            name: Name of the tool.
            key: Canonical form of the call.
            shown: Arguments of the call, for messages.
            repeatable: Whether the tool may always be called again.

        Raises:
            RepeatedEffectError: The call would repeat an effect: the tool is not repeatable, and either an earlier
                program called it with other arguments or the earlier call's result is unknown.
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
        """Record a call before it is made; the caller sets its reply.

        Args:
            name: Name of the tool.
            key: Canonical form of the call.
            shown: Arguments of the call, for messages.
        """
        call = EffectCall(name, key, shown)
        self._now.append(call)
        return call

    def undo(self, call: EffectCall) -> None:
        """Remove a call that certainly had no effect."""
        self._now.remove(call)

    def summary(self) -> str:
        """Return all calls so far as text; empty if there were none."""
        return _listed([*self._earlier, *self._now])

    def left_out(self) -> str:
        """Return the earlier programs' calls that the last program did not repeat, as text."""
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


def has_effects(source: str, tools: Mapping[str, bool]) -> bool:
    """Return True if a program may call a tool with effects. Its calls then run in order, and none runs early.

    Args:
        source: Source code of the program.
        tools: Names of tools, mapped to True if the tool has effects.
    """
    if not any(tools.values()):
        return False
    names = unicodedata.normalize("NFKC", source)  # as Python reads names
    return any(effects and name in names for name, effects in tools.items())

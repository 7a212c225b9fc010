"""Confirmation, at a terminal, of calls with effects."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from pyrag.cli.views.terminal import one_line
from pyrag.settings import Settings
from pyrag.trace.model import shorten

if TYPE_CHECKING:
    from pyrag.episode.flow.policy import DependentCall

_MAX_PASSAGES = 3
_MAX_TEXT = 200  # characters of a passage


class Pausable(Protocol):
    """Live view that can stop drawing."""

    def paused(self) -> AbstractContextManager[object]: ...


class TerminalConfirm:
    """Callback that shows a call with the passages it depends on, and asks whether to make it.

    Attributes:
        view: Live view to pause while asking; None if nothing is drawn.
    """

    view: Pausable | None = None

    def __call__(self, call: DependentCall) -> bool:
        with nullcontext() if self.view is None else self.view.paused():
            print("A call with effects depends on retrieved text:", file=sys.stderr)
            print(f"  {one_line(str(call))}", file=sys.stderr)
            for passage in call.passages[:_MAX_PASSAGES]:
                print(f"  {one_line(passage.id)}: {one_line(shorten(passage.text, _MAX_TEXT))}", file=sys.stderr)
            print("Make this call? [y/N] ", end="", file=sys.stderr, flush=True)
            return sys.stdin.readline().strip().casefold() in ("y", "yes")


def terminal_confirm(settings: Settings) -> TerminalConfirm | None:
    """Return the callback for a command; None if nobody can be asked, or the policy requires no confirmation."""
    if settings.flow in ("strict", "allow") or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return TerminalConfirm()

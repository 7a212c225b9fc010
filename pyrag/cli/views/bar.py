"""Progress bar on stderr, shown only on a terminal."""

from __future__ import annotations

from typing import Self


class ProgressBar:
    """Progress bar with a label, a short state, and the remaining time.

    Args:
        total: Number of units of work.
        done: Number of units that are already done.
        label: Text before the bar.
        state: Text after the bar.
    """

    def __init__(self, total: int, done: int = 0, label: str = "", state: str = "") -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from pyrag.cli.views.live import SafeConsole

        console = SafeConsole(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"), TimeRemainingColumn(),
            console=console, disable=not console.is_terminal, transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task(label, total=total, completed=done, state=state)

    def show(self, done: int, label: str, state: str) -> None:
        """Show the progress.

        Args:
            done: Number of units that are done.
            label: Text before the bar.
            state: Text after the bar.
        """
        self._bar.update(self._task, completed=done, description=label, state=state)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._bar.disable:  # rich 13 ends a line even so
            self._bar.stop()

"""A method's own view of its traces, as plain data: `pyrag trace show` asks the method's `view(trace)`.

A view is a sequence of lines, programs, steps and errors; the command line draws them. An empty one leaves the trace to
the usual view.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.trace.model import Program, Step


@dataclass(frozen=True, slots=True)
class Line:
    """Text, which may have several lines, in parts of one style each ("", "bold", "dim", "bold cyan")."""

    parts: tuple[tuple[str, str], ...]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step with its outcome and cost."""

    step: Step
    indent: int = 0


@dataclass(frozen=True, slots=True)
class RejectedProgram:
    """The error that a program was given up for."""

    error: str


ViewItem = Line | ShownStep | Program | RejectedProgram


def line(text: str, style: str = "", indent: int = 0) -> Line:
    """Return a line of one style.

    Args:
        text: What it says.
        style: A style of the module rich.
        indent: Columns before each of its lines.
    """
    return Line(((text, style),), indent)

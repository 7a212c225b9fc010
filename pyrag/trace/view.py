"""A method's own view of its traces, as plain data: `pyrag trace show` calls the method's `view(trace)`.

A view is a sequence of lines, programs, steps and errors, which the command line draws. If the view is empty, the usual
view is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.trace.model import Program, Step


@dataclass(frozen=True, slots=True)
class Line:
    """Text of one or several lines, in parts of one style each ("", "bold", "dim", "bold cyan")."""

    parts: tuple[tuple[str, str], ...]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class ShownStep:
    """Step with its outcome and cost."""

    step: Step
    indent: int = 0


@dataclass(frozen=True, slots=True)
class RejectedProgram:
    """Error that led to the rejection of a program."""

    error: str


ViewItem = Line | ShownStep | Program | RejectedProgram


def line(text: str, style: str = "", indent: int = 0) -> Line:
    """Return a line in a single style.

    Args:
        text: Text of the line; may hold line breaks.
        style: Style of the module rich.
        indent: Number of columns before each line.
    """
    return Line(((text, style),), indent)

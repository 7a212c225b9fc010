"""Tracebacks of scheduled units, reduced to the frames of a sequential run."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, TracebackType

_HERE = str(Path(__file__).parents[1])
# Helpers that stand for a comprehension.
GATHERS = {"_list": "<listcomp>", "_set": "<setcomp>", "_dict": "<dictcomp>"}
# Helpers that run statements of the frame that calls them.
BLOCKS = ("_run_block", "each")
# Comprehensions without a frame of their own.
INLINED = ("<listcomp>", "<setcomp>", "<dictcomp>") if sys.version_info >= (3, 12) else ()


def program_frames(traceback: TracebackType | None, filename: str = "<program>") -> list[tuple[int, str]]:
    """Return (line, name) of the program's frames, outermost first, as in a sequential run.

    Args:
        traceback: Traceback of an exception that left the scheduler.
        filename: File name of the program's code.
    """
    frames = _Frames()
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == filename:
            frames.add(traceback.tb_lineno, code.co_name)
        elif code.co_filename.startswith(_HERE):
            frames.pass_helper(traceback.tb_frame)
        traceback = traceback.tb_next
    frames.enter_comprehension()
    return frames.lines


class _Frames:
    """Frames of the program collected from a traceback."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self.continued = False  # the next frame is a block of the previous frame
        self.comprehension = ""  # comprehension whose items are being taken, ...
        self.rewritten = False  # ... from a generator expression of the rewriting

    def pass_helper(self, frame: FrameType) -> None:
        name = frame.f_code.co_name
        self.continued = self.continued or name in BLOCKS
        if frame.f_code.co_qualname == "_Gather.__iter__":
            gather = frame.f_locals["self"]
            self.comprehension, self.rewritten = gather.make.__code__.co_name, gather.unpack
        elif name == "_make":  # an element: its code has the comprehension's name
            self.comprehension = ""

    def add(self, line: int, name: str) -> None:
        if self.comprehension and self.rewritten and name == "<genexpr>":
            name, self.comprehension = self.comprehension, ""
        self.enter_comprehension()
        if self.lines and ((self.continued and self.lines[-1][1] == name) or name in INLINED):
            name = self.lines.pop()[1]
        self.lines.append((line, name))
        self.continued = False

    def enter_comprehension(self) -> None:
        """Add the frame that takes items from a source, which the scheduler does on its behalf."""
        if self.comprehension and self.comprehension not in INLINED and self.lines:
            self.lines.append((self.lines[-1][0], self.comprehension))
        self.comprehension = ""

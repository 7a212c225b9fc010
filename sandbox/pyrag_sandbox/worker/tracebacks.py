"""Tracebacks as a sequential run would show them, from those of scheduled units."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, TracebackType

_HERE = str(Path(__file__).parents[1])
# Helpers that stand for a comprehension.
GATHERS = {"_list": "<listcomp>", "_set": "<setcomp>", "_dict": "<dictcomp>"}
# Helpers that run statements of the very frame that calls them.
BLOCKS = ("_run_block", "each")
# Comprehensions without a frame of their own.
INLINED = ("<listcomp>", "<setcomp>", "<dictcomp>") if sys.version_info >= (3, 12) else ()


def program_frames(traceback: TracebackType | None, filename: str = "<program>") -> list[tuple[int, str]]:
    """Return (line, name) of the program's frames, outermost first, as a sequential run would show them.

    Args:
        traceback: of an exception that left the scheduler.
        filename: file name of the program's code.
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
    return frames.found


class _Frames:
    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self.continued = False  # what follows is a block of the frame before
        self.comprehension = ""  # whose items are being taken, ...
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
        if self.found and ((self.continued and self.found[-1][1] == name) or name in INLINED):
            name = self.found.pop()[1]
        self.found.append((line, name))
        self.continued = False

    def enter_comprehension(self) -> None:
        """The frame that asks a source for its items, which the scheduler does in its stead."""
        if self.comprehension and self.comprehension not in INLINED and self.found:
            self.found.append((self.found[-1][0], self.comprehension))
        self.comprehension = ""

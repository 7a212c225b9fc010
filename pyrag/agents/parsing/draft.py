"""The statements of a program that are finished while its author is still writing.

A `DraftReader` is fed the pieces of a reply as they come. Whenever further statements at the top level are finished,
and one of them calls a primitive (or a function of the program), it hands out the program as far as it goes. What it
hands out is how the whole program begins, unless the reply comes to mean something else (another block, thinking that
ends).
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable

from pyrag.agents.parsing.json_values import MAX_REPLY
from pyrag.agents.parsing.programs import parse_draft

OnDraft = Callable[[str], None]

_PRIMITIVES = frozenset({"retrieve", "answer"})
_READS = 200  # of a long text in the time that it doubles
_SHORT = 20  # characters that any text may grow by less than, and is read at each line
_MAX_LINES = 100  # lines of one statement; what is longer is waited for


def ignore_draft(source: str) -> None:
    """Take a program of which nobody wants to see more."""


class DraftReader:
    """Reads one reply. What it hands out as finished does not depend on how the reply is cut into pieces.

    Args:
        on_draft: Called with the finished statements whenever there are more that work.
        on_text: Called with all lines of the program whenever there are more.
    """

    def __init__(self, on_draft: OnDraft, on_text: OnDraft = ignore_draft) -> None:
        self._on_draft, self._on_text = on_draft, on_text
        self._shown = ""
        self._text = ""
        self._seen = 0  # characters of it when it was read last
        self._begin()

    def _begin(self) -> None:
        self._done = ""  # what is handed out, or would be if it called anything
        self._open: list[str] = []  # lines after that
        self._working = set(_PRIMITIVES)  # names whose calls are work

    def feed(self, piece: str) -> None:
        if len(self._text) > MAX_REPLY:
            return
        self._text += piece
        # All of it is read again: of a long text, not for each line, so that many short lines cost no more than few.
        unread = len(self._text) - self._seen
        if "\n" in piece and unread > len(self._text) // _READS - _SHORT:
            self._seen = len(self._text)
            draft = parse_draft(self._text[: self._text.rfind("\n") + 1])
            if draft.strip() and draft != self._shown:
                self._shown = draft
                self._on_text(draft)
            self._read(draft)

    def _read(self, draft: str) -> None:
        if not draft.startswith(self._done + "".join(self._open)):
            self._begin()
        *lines, _ = draft[len(self._done) + sum(map(len, self._open)) :].split("\n")
        if sum(self._takes(f"{line}\n") for line in lines):
            self._on_draft(self._done)

    def _takes(self, line: str) -> bool:
        """Return True if a statement that this line shows to be finished calls a primitive."""
        self._open.append(line)
        statements = _statements("".join(self._open)) if len(self._open) <= _MAX_LINES else []
        if statements and hasattr(statements[-1], "body"):
            statements.pop()  # it may go on
        if not statements:
            return False
        end = statements[-1].end_lineno or 0
        self._done += "".join(self._open[:end])
        self._open = self._open[end:]
        self._working |= {one.name for one in statements if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
        return any(map(self._works, statements))

    def _works(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        return bool(names & self._working)


def _statements(source: str) -> list[ast.stmt]:
    """Empty where the source is not whole."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []

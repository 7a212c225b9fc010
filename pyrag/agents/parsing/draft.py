"""Finished statements of a program that is still being written.

A `DraftReader` receives the pieces of a reply as they arrive. Whenever more top-level statements are finished and one
of them calls a primitive (or a function of the program), it reports the program up to that point. The reported text is
the beginning of the final program, unless the reply turns out to mean something else (another code block, the end of
thinking).
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable

from pyrag.agents.parsing.programs import parse_draft
from pyrag.agents.parsing.thinking import MAX_REPLY

OnDraft = Callable[[str], None]

_PRIMITIVES = frozenset({"retrieve", "answer"})
_READS = 200  # number of times a long text is parsed while it doubles in length
_SHORT = 20  # characters; a text shorter than `_READS` times this is parsed at each line
_MAX_LINES = 100  # maximum lines of a statement that is parsed before it is complete


def ignore_draft(source: str) -> None:
    """Ignore a program."""


class DraftReader:
    """Reader of one reply. The reported statements do not depend on how the reply is cut into pieces.

    Args:
        on_draft: Called with the finished statements whenever there are more that call primitives.
        on_text: Called with all lines of the program whenever there are more.
    """

    def __init__(self, on_draft: OnDraft, on_text: OnDraft = ignore_draft) -> None:
        self._on_draft, self._on_text = on_draft, on_text
        self._shown = ""
        self._text = ""
        self._seen = 0  # length of the text when it was last parsed
        self._begin()

    def _begin(self) -> None:
        self._done = ""  # finished statements
        self._open: list[str] = []  # lines after the finished statements
        self._working = set(_PRIMITIVES)  # names of primitives and of the program's functions

    def feed(self, piece: str) -> None:
        if len(self._text) > MAX_REPLY:
            return
        self._text += piece
        # The whole text is parsed again. A long text is not parsed at each line, so many short lines stay cheap.
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
        """Return True if this line completes a statement that calls a primitive."""
        self._open.append(line)
        statements = _statements("".join(self._open)) if len(self._open) <= _MAX_LINES else []
        if statements and hasattr(statements[-1], "body"):
            statements.pop()  # it may go on
        if not statements:
            return False
        end = statements[-1].end_lineno or 0
        self._done += "".join(self._open[:end])
        self._open = self._open[end:]
        self._working |= {
            statement.name for statement in statements if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        return any(map(self._works, statements))

    def _works(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        return bool(names & self._working)


def _statements(source: str) -> list[ast.stmt]:
    """Return the statements of a source, or an empty list if it is incomplete."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []

"""`pyrag chat`: a conversation on stdin, one question per line. A question may refer to earlier ones."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from pyrag.api import PyRAG
from pyrag.cli.ask.confirm import terminal_confirm
from pyrag.cli.ask.questions import Form, ask_once
from pyrag.cli.ask.stdin import question_lines
from pyrag.cli.output import Sink, tell
from pyrag.errors import UsageError
from pyrag.settings import Settings

_PROMPT = "> "
_HELP = "ask one question per line; later ones may build on it; /help prints this, and exit, quit or Ctrl-D ends"
_ENDS = frozenset({"exit", "quit", "/exit", "/quit"})
_COMMAND = re.compile(r"/\w+\Z")


def run(settings: Settings, form: Form, *, trace_file: Path | None) -> None:
    """Answer the lines of stdin, one after another.

    A question that fails does not end the conversation; the lines `exit` and `quit` do. `/help` lists the commands.

    Args:
        settings: Engines, method and limits.
        form: Form in which answers are printed.
        trace_file: File for the traces, one JSON line each. None to write no file.
    """
    with Sink(trace_file, None) as sink:
        asyncio.run(_talk(settings, sink, form))


async def _talk(settings: Settings, sink: Sink, form: Form) -> None:
    if sys.stdin.isatty():
        tell(_HELP)
    async with PyRAG.from_settings(settings, confirm=terminal_confirm(settings)) as rag:
        chat = rag.chat()
        _invite()
        async for line in question_lines(sys.stdin):
            if (command := line.text.lower()) in _ENDS:
                return
            if _COMMAND.match(command):
                tell(_HELP if command == "/help" else f"there is no command {line.text}: {_HELP}")
                _invite()
                continue
            try:
                trace = await ask_once(rag, chat.aask, line.text, form, keep=sink.wanted)
            except UsageError as error:  # an empty or unreadable line
                tell(f"line {line.number}: {error}")
            else:
                if trace.said and not form.quiet:
                    tell(f"asked as: {trace.question}")
                sink.write(trace)
            _invite()


def _invite() -> None:
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(_PROMPT, end="", file=sys.stderr, flush=True)

"""`pyrag trace`: prints saved traces, writes them as a page, or runs them again from their recordings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrag.agents.typed.contract import contract_of
from pyrag.cli.output import print_json
from pyrag.cli.views.terminal import one_line
from pyrag.episode.ledger import Recording
from pyrag.errors import DataError, UsageError
from pyrag.runtime.answering import answer_question, exchanges_of
from pyrag.runtime.engines import Engines, open_engines
from pyrag.runtime.role_agents import REPLAY
from pyrag.settings import make_settings
from pyrag.trace.codec import from_json
from pyrag.trace.model import Answer, Step, Trace
from pyrag.trace.words import counted

_ODD_REPLIES = (AttributeError, LookupError, TypeError, ValueError)  # errors that damaged recordings cause


def show(files: Sequence[Path]) -> None:
    """Print the traces in files."""
    from pyrag.cli.views.live import SafeConsole
    from pyrag.cli.views.saved import trace_view

    console = SafeConsole()
    for file in files:
        for trace in load_traces(file):
            console.print(trace_view(trace))


def write_html(files: Sequence[Path], out: Path | None) -> None:
    """Write the traces in files as one self-contained page, and print its path.

    Args:
        files: Files of traces, one JSON line each.
        out: File of the page. None for the first file's name with the suffix .html.

    Raises:
        UsageError: The page would replace a file of traces.
        PyRAGError: A file cannot be read or the page cannot be written.
    """
    from pyrag._io.files import write_atomic
    from pyrag.trace.html import to_html

    target = out or files[0].with_suffix(".html")
    if any(target.resolve() == file.resolve() for file in files):
        raise UsageError(f"{target} holds the traces themselves: name another page with --out")
    page = to_html([trace for file in files for trace in load_traces(file)])
    write_atomic(target, page.encode())
    print(target)


def replay(file: Path, *, as_json: bool) -> None:
    """Print the differences between each trace and its replay; exit with code 1 if there are any.

    Args:
        file: File of traces, one JSON line each.
        as_json: Print one JSON object per trace instead.

    Raises:
        DataError: The file or a recording is damaged.
    """
    differs = False
    for trace in load_traces(file):
        changes = asyncio.run(replay_trace(trace))
        differs = differs or bool(changes)
        if as_json:
            print_json({"question": trace.question, "differences": changes})
        else:
            print(f"{one_line(trace.question)}: " + ("replayed, equal in every step" if not changes else "differs"))
            for difference in changes:
                print(f"  {one_line(difference)}")
    if differs:
        sys.exit(1)


def load_traces(file: Path) -> Iterator[Trace]:
    """Yield the traces in a file.

    Raises:
        DataError: The file cannot be read, is empty, or holds something other than complete traces.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"cannot read the trace {file}: {error.strerror}") from error
    if not lines:
        raise DataError(f"{file} is empty: it should hold what pyrag ask --trace {file} writes")
    for number, line in enumerate(lines, start=1):
        try:
            yield _whole(from_json(line))
        except DataError as error:
            raise DataError(f"{file} line {number}: {error}") from error


def _whole(trace: Trace) -> Trace:
    """Return the trace unchanged.

    Raises:
        DataError: The trace lacks a passage that it cites or read.
    """
    ids = {citation.passage for citation in trace.citations}
    ids |= {passage for step in trace.steps for passage in step.passages}
    if missing := ids - trace.passages.keys():
        raise DataError(f"a damaged trace, which lacks the passage {min(missing)!r}: save it again with ask --trace")
    return trace


async def replay_trace(trace: Trace) -> list[str]:
    """Run a trace again from its recording, without engines, and return the differences."""
    recording = Recording(exchanges_of(trace))
    values = {key: value for key, value in trace.config.items() if key not in _SOURCES}
    settings = make_settings({**values, "llm": REPLAY})
    engines: Engines = open_engines(settings)
    try:
        returns = contract_of(trace.returns, strict=False)
        again = await answer_question(trace.question, engines, settings, recording=recording, returns=returns)
    except _ODD_REPLIES as error:
        what = f"{type(error).__name__}: {error}"
        raise DataError(f"the recording in this trace is damaged ({what}): save the trace again") from error
    finally:
        await engines.aclose()
    return differences(trace, again)


# Settings that a replay does not use; `otel` may name an extra that is not installed here.
_SOURCES = (
    "llm", "plan_llm", "decompose_llm", "answer_llm", "rewrite_llm", "index", "retriever", "sources", "prompts",
    "tools", "otel",
)  # fmt: skip


def differences(old: Trace, new: Trace) -> list[str]:
    """Return the differences between two traces of one question, except for times and costs.

    The answer's confidence is derived from its steps, whose confidences are compared.

    Args:
        old: Saved trace.
        new: Replay of the trace.
    """
    changes = []
    for name in ("answer", "citations", "value", "sub_queries", "extensions", "program", "error"):
        before, after = (_unrated(getattr(trace, name)) for trace in (old, new))
        if before != after:
            changes.append(f"{name}: was {before!r}, is {after!r}")
    if len(old.steps) != len(new.steps):
        changes.append(f"steps: were {len(old.steps)}, are {len(new.steps)}")
    for before, after in zip(old.steps, new.steps, strict=False):
        if timeless(before) != timeless(after):
            changes.append(f"step {before.id + 1}: was {brief(before)}, is {brief(after)}")
    return changes


def _unrated(value: Any) -> Any:
    return replace(value, confidence=None) if isinstance(value, Answer) else value


def timeless(step: Step) -> Step:
    return replace(step, started=0.0, seconds=0.0)


def brief(step: Step) -> str:
    result = step.answer.text if step.answer else counted(len(step.passages), "passage")
    return f"{step.primitive}({step.query!r}) → {result}"

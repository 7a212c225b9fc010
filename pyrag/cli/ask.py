"""`pyrag ask`: one question live on a terminal, or many from stdin, and where their traces go."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from pyrag.api import PyRAG
from pyrag.cli.output import Sink, as_object, print_json
from pyrag.cli.terminal import one_line
from pyrag.config import Settings
from pyrag.errors import UsageError
from pyrag.trace import Trace


def run(
    question: str,
    settings: Settings,
    *,
    as_json: bool,
    quiet: bool,
    trace_file: Path | None,
    record_file: Path | None,
) -> None:
    """Answers and prints. Leaves with the exit code of the (last) failure, if any."""
    with Sink(trace_file, record_file) as sink:
        live = question != "-" and not as_json and not quiet and sys.stdout.isatty()
        if question == "-":
            code = asyncio.run(_many(settings, sink, as_json))
        else:
            code = asyncio.run(_one(question, settings, sink, as_json=as_json, live=live))
    if code:
        sys.exit(code)


async def _one(question: str, settings: Settings, sink: Sink, *, as_json: bool, live: bool) -> int:
    async with PyRAG.from_settings(settings) as rag:
        if live:
            from pyrag.cli.render import LiveView

            with LiveView(rag.engines.agents.name, rag.engines.retriever.name) as view:
                trace = await rag.aask(question, observer=view, keep=sink.wanted)
            view.finish(trace)
        else:
            trace = await rag.aask(question, keep=sink.wanted)
            _print(trace, as_json=as_json)
        sink.write(trace)
    return trace.error.exit_code if trace.error else 0


async def _many(settings: Settings, sink: Sink, as_json: bool) -> int:
    code = 0
    async with PyRAG.from_settings(settings) as rag:
        traces: AsyncIterator[Trace] = rag.aask_many(_questions(), keep=sink.wanted)
        async for trace in traces:
            _print(trace, as_json=as_json)
            sink.write(trace)
            code = trace.error.exit_code if trace.error else code
    return code


def _questions() -> Iterator[str]:
    """Questions from stdin, one a line; blank lines are skipped."""
    if sys.stdin is None or sys.stdin.isatty():
        print("pyrag: reading questions from the terminal, one a line; end with Ctrl-D", file=sys.stderr)
    try:
        for line in sys.stdin:
            if line.strip():
                yield line.strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"the questions on stdin are not UTF-8 text ({error.reason}): convert them first") from error


def _print(trace: Trace, *, as_json: bool) -> None:
    """The answer, or the object, on stdout; what went wrong on stderr."""
    if as_json:
        print_json(as_object(trace))
        return
    print(one_line(trace.answer.text), flush=True)
    if trace.error:
        print(f"pyrag: {one_line(trace.error.message)}", file=sys.stderr)

"""`pyrag explain`: estimated cost of a question or a program, and its actual cost after a run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyrag.api import PyRAG
from pyrag.cli.ask.program import inputs_of, source_of
from pyrag.cli.output import print_json
from pyrag.cli.traces import load_traces
from pyrag.cli.views.terminal import printable
from pyrag.runtime.explain.explanation import Explanation
from pyrag.settings import Settings
from pyrag.trace.model import Trace


def run(
    text: str,
    inputs: Sequence[str],
    inputs_file: Path | None,
    settings: Settings,
    *,
    analyze: bool,
    traces: Sequence[Path],
    as_json: bool,
) -> None:
    """Print an explanation. Exit with the error's code if planning or the run fails.

    Args:
        text: The question, a file with a program, or "-" for a program on stdin.
        inputs: Inputs as NAME=VALUE.
        inputs_file: JSON file with an object of inputs. None reads no file.
        settings: Engines and limits.
        analyze: Whether to run the program too.
        traces: Files of earlier traces.
        as_json: Print JSON instead of text.

    Raises:
        UsageError: The program or the inputs cannot be read, or the question is empty.
        DataError: A file of traces cannot be read.
    """
    program = source_of(text) if text == "-" or _is_file(text) else None
    has_program = bool(inputs or inputs_file or program is not None)
    values = inputs_of(inputs, inputs_file) if has_program else None
    earlier = [trace for file in traces for trace in load_traces(file)]
    source = text if program is None else program
    explanation = asyncio.run(_explained(source, values, settings, earlier, analyze=analyze))
    if as_json:
        print_json(explanation.as_object())
    elif explanation.error:
        file = "<stdin>" if text == "-" else text
        place = f"{file}, " if program is not None and explanation.error.startswith("line ") else ""
        print(printable(f"pyrag: {place}{explanation.error}"), file=sys.stderr, flush=True)
    else:
        print(printable(str(explanation)), flush=True)
    happened = explanation.happened
    if code := explanation.exit_code or (1 if happened and happened.error else 0):
        sys.exit(code)


async def _explained(
    text: str, inputs: Mapping[str, Any] | None, settings: Settings, traces: Sequence[Trace], *, analyze: bool
) -> Explanation:
    async with PyRAG.from_settings(settings) as rag:
        return await rag.aexplain(text, inputs, analyze=analyze, traces=traces)


def _is_file(text: str) -> bool:
    """Return True if a text is the path of a program, not a question: a file with this name exists."""
    try:
        return Path(text).is_file() or (text.endswith(".py") and " " not in text)
    except (OSError, ValueError):
        return False

"""`pyrag ask`: one question, shown live on a terminal, or the questions of stdin, with their traces."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyrag.agents.typed.contract import Contract, contract_of
from pyrag.api import PyRAG
from pyrag.cli.ask.confirm import TerminalConfirm, terminal_confirm
from pyrag.cli.ask.stdin import question_lines
from pyrag.cli.output import Sink, as_object, print_json, tell
from pyrag.cli.views.terminal import one_line
from pyrag.cli.views.words import coverage_lines
from pyrag.errors import UsageError
from pyrag.settings import Settings
from pyrag.trace.model import Trace
from pyrag.trace.verdict import COMMAND_LINE, remark
from pyrag.trace.words import counted


@dataclass(frozen=True, slots=True)
class Form:
    """Form in which answers are printed.

    Attributes:
        returns: Type of the value: its name, or a file with a JSON schema; None for a text.
    """

    as_json: bool = False
    quiet: bool = False
    returns: str | None = None

    def contract(self) -> Contract | None:
        """Return the type of the value. Raises `UsageError` if the schema cannot be read or checked."""
        if self.returns is None or not (self.returns.endswith(".json") or Path(self.returns).is_file()):
            return contract_of(self.returns)
        try:
            schema = json.loads(Path(self.returns).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"cannot read the schema {self.returns}: {error}") from None
        if not isinstance(schema, dict):
            raise UsageError(f'the schema {self.returns} must be a JSON object, such as {{"type": "number"}}')
        return contract_of(schema)


def run(
    question: str,
    settings: Settings,
    form: Form,
    *,
    trace_file: Path | None,
    record_file: Path | None,
    resume_file: Path | None = None,
) -> None:
    """Answer and print the answers; exit with the code of the last failure, if any.

    Args:
        question: The question, or "-" for the lines of stdin.
        settings: Engines, method and limits.
        form: Form in which answers are printed.
        trace_file: File for the traces, one JSON line each. None to write no file.
        record_file: File to append the recorded exchanges to. None to record nothing.
        resume_file: File from which a question continues after it was killed or reached a limit. None to keep no such
            file.

    Raises:
        UsageError: The questions of stdin cannot be resumed.
    """
    if question == "-" and resume_file is not None:
        raise UsageError("--resume is for one question, not for the lines of stdin: name the question")
    contract = form.contract()
    with Sink(trace_file, record_file) as sink:
        if question == "-":
            work = _many(settings, sink, form, contract)
        else:
            work = _answer_single(question, settings, sink, form, contract, resume_file)
        code = asyncio.run(work)
    if code:
        sys.exit(code)


async def _answer_single(
    question: str, settings: Settings, sink: Sink, form: Form, contract: Contract | None, resume_file: Path | None
) -> int:
    async with PyRAG.from_settings(settings, confirm=terminal_confirm(settings)) as rag:
        ask = partial(rag.aask, resume=resume_file, returns=contract)
        trace = await ask_once(rag, ask, question, form, keep=sink.wanted)
        sink.write(trace)
    return trace.error.exit_code if trace.error else 0


async def ask_once(rag: PyRAG, ask: Callable[..., Awaitable[Trace]], question: str, form: Form, *, keep: bool) -> Trace:
    """Answer a question and print it, live on a terminal.

    Args:
        rag: Owner of the engines, whose names are shown.
        ask: `aask` of `rag` or of one of its conversations.
        question: The question.
        form: Form in which the answer is printed.
        keep: Whether to keep requests and replies in the trace.

    Raises:
        UsageError: The question is empty, too long or not valid text.
    """
    if sys.stdout.isatty() and not (form.as_json or form.quiet):
        from pyrag.cli.views.live import LiveView

        with LiveView(rag.engines.agents.name, rag.engines.retriever.name) as view:
            if isinstance(rag.engines.confirm, TerminalConfirm):
                rag.engines.confirm.view = view
            trace = await ask(question, observer=view, keep=keep)
        view.finish(trace)
    else:
        trace = await ask(question, keep=keep)
        _print(trace, form)
    return trace


@dataclass(slots=True)
class _StdinBatch:
    """Progress through the questions of stdin: line numbers of the open questions, counts and the exit code."""

    lines: deque[int] = field(default_factory=deque)
    answered: int = 0
    failed: list[int] = field(default_factory=list)
    code: int = 0

    async def questions(self) -> AsyncIterator[str]:
        async for line in question_lines(sys.stdin):
            self.lines.append(line.number)
            yield line.text

    def add(self, trace: Trace) -> int:
        """Count a trace and return the line number of its question. Traces come in the order of the questions."""
        number = self.lines.popleft()
        self.answered += 1
        if trace.error:
            self.failed.append(number)
            self.code = trace.error.exit_code
        return number


async def _many(settings: Settings, sink: Sink, form: Form, contract: Contract | None) -> int:
    if sys.stdin.isatty():
        tell("reading questions from the terminal, one per line; end with Ctrl-D")
    batch = _StdinBatch()
    async with (
        PyRAG.from_settings(settings) as rag,
        # The reader of stdout may close early.
        aclosing(rag.aask_many(batch.questions(), keep=sink.wanted, returns=contract)) as traces,
    ):
        async for trace in traces:
            _print(trace, form, batch.add(trace))
            sink.write(trace)
    if not batch.answered:
        tell("stdin holds no question: write one on each line")
    elif batch.failed and (form.as_json or batch.answered > 1):
        total = counted(batch.answered, "question")
        tell(f"{len(batch.failed)} of {total} failed, the first of them in line {batch.failed[0]}")
    return batch.code


def _print(trace: Trace, form: Form, line: int | None = None) -> None:
    """Print the answer or the JSON object on stdout, and errors and remarks on stderr.

    A known answer that is not weak leaves stderr empty, unless there is coverage to print or one of the warnings of
    `_shown_warnings`. In a batch, a failed question prints an empty line, so that each answer's line matches its
    question's line.
    """
    if form.as_json:
        print_json(as_object(trace) if line is None else {"line": line, **as_object(trace)})
        return
    has_failed = trace.error is not None and not trace.answer.known
    if not has_failed or line is not None:
        print("" if has_failed else one_line(_text_of(trace)), flush=True)
    messages = [trace.error.message] if trace.error else []
    if not form.quiet:
        messages += [*coverage_lines(trace), *_shown_warnings(trace), *filter(None, [remark(trace, COMMAND_LINE)])]
    for message in messages:
        tell(message if line is None else f"line {line}: {message}")


def _text_of(trace: Trace) -> str:
    """Return the answer, or the value of a requested type as JSON; a text is printed without quotation marks."""
    if trace.returns is None or trace.value is None:
        return trace.answer.text
    return trace.value if isinstance(trace.value, str) else json.dumps(trace.value, ensure_ascii=False)


def _shown_warnings(trace: Trace) -> list[str]:
    """Return the warnings about the question's language, its filter, unused tools, and documents that were not read."""
    from pyrag.agents.engine import OTHER_LANGUAGE
    from pyrag.episode.corpus.exhaustive import FAULT
    from pyrag.retrieval.filters.verdict import ABOUT_FILTER
    from pyrag.retrieval.fusion.origin import LEFT_OUT
    from pyrag.runtime.answering import CALLS_NO_TOOLS

    return [
        warning
        for warning in trace.warnings
        if any(part in warning for part in (OTHER_LANGUAGE, LEFT_OUT, FAULT, CALLS_NO_TOOLS))
        or warning.startswith(ABOUT_FILTER)
    ]

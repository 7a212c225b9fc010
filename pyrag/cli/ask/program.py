"""`pyrag run`: a program written by the user, from a file or stdin."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyrag.agents.typed.contract import Contract
from pyrag.api import PyRAG
from pyrag.cli.ask.confirm import TerminalConfirm, terminal_confirm
from pyrag.cli.ask.questions import Form
from pyrag.cli.output import Sink, as_object, print_json, tell
from pyrag.cli.views.terminal import printable
from pyrag.cli.views.words import coverage_lines
from pyrag.errors import UsageError
from pyrag.settings import Settings
from pyrag.trace.model import Trace
from pyrag.trace.verdict import COMMAND_LINE, remark


def run(
    file: str,
    inputs: Sequence[str],
    inputs_file: Path | None,
    settings: Settings,
    form: Form,
    *,
    trace_file: Path | None,
    record_file: Path | None,
    resume_file: Path | None = None,
) -> None:
    """Run a program and print its value; exit with the error's code if it failed.

    Args:
        file: File with the program, or "-" for stdin.
        inputs: Inputs as NAME=VALUE.
        inputs_file: JSON file with an object of inputs. None reads no file.
        settings: Engines and limits.
        form: Form of the printed value.
        trace_file: File for the trace, as one JSON line. None to write no file.
        record_file: File to append the recorded exchanges to. None to record nothing.
        resume_file: File from which a run continues after it was killed or reached a limit. None to keep no such file.

    Raises:
        UsageError: The program, the inputs or the schema cannot be read, or an input is malformed or repeated.
    """
    source, values = source_of(file), inputs_of(inputs, inputs_file)
    confirm = None if file == "-" else terminal_confirm(settings)
    contract = form.contract()
    with Sink(trace_file, record_file) as sink:
        trace = asyncio.run(_run(source, values, settings, confirm, contract, sink.wanted, resume_file))
        sink.write(trace)
        _print(trace, form, "<stdin>" if file == "-" else file)
    if trace.error:
        sys.exit(trace.error.exit_code)


async def _run(
    source: str,
    inputs: Mapping[str, Any],
    settings: Settings,
    confirm: TerminalConfirm | None,
    contract: Contract | None,
    keep: bool,
    resume_file: Path | None,
) -> Trace:
    async with PyRAG.from_settings(settings, confirm=confirm) as rag:
        return await rag.arun(source, inputs, keep=keep, resume=resume_file, returns=contract)


def source_of(file: str) -> str:
    """Return the program in a file, or on stdin for "-". Raises `UsageError` if it cannot be read."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"the program {file} is not UTF-8 text: save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"cannot read the program {file}: {error.strerror}") from None


def inputs_of(inputs: Sequence[str], file: Path | None) -> dict[str, Any]:
    """Return the inputs of a program.

    Args:
        inputs: Inputs as NAME=VALUE, which override the file's.
        file: JSON file with an object of inputs. None reads no file.

    Raises:
        UsageError: The file cannot be read, or an input is malformed or repeated.
    """
    return {**_from_file(file), **_from_options(inputs)}


def _from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the inputs {path}: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f'the inputs {path} must be a JSON object, such as {{"company": "Acme"}}')
    return values


def _from_options(inputs: Sequence[str]) -> dict[str, Any]:
    """Parse the inputs of the command line. A value that is not JSON is text, except malformed lists and objects."""
    values: dict[str, Any] = {}
    for item in inputs:
        name, equals, text = item.partition("=")
        if not equals:
            raise UsageError(f"--input {item!r} has no value: write NAME=VALUE, as in --input company=Acme")
        if name in values:
            raise UsageError(f"--input {name} was given twice: write a list as {name}='[…, …]'")
        try:
            values[name] = json.loads(text)
        except ValueError as error:
            if text.lstrip().startswith(("[", "{")):
                cure = f"correct it, or write a text in double quotes as --input '{name}=\"…\"'"
                raise UsageError(f"--input {name} is not valid JSON ({error}): {cure}") from None
            values[name] = text
    return values


def _print(trace: Trace, form: Form, file: str) -> None:
    """Print the program's output and value on stdout, errors and remarks on stderr."""
    if form.as_json:
        print_json(as_object(trace))
        return
    if trace.programs and trace.programs[-1].output and not form.quiet:
        print(printable(trace.programs[-1].output.rstrip("\n")), flush=True)
    if trace.error:
        place = f"{file}, " if trace.error.line else ""
        print(printable(f"pyrag: {place}{trace.error.message}"), file=sys.stderr, flush=True)
    else:
        unknown = trace.returns is not None and not trace.answer.known
        value = trace.answer.text if unknown else trace.value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        print(printable(text), flush=True)
    if not form.quiet:
        covered = coverage_lines(trace, only_complete=True)  # the others are warnings
        for sentence in filter(None, (*covered, *trace.warnings, remark(trace, COMMAND_LINE))):
            tell(sentence)

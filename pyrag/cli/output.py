"""Output other than the terminal view: JSON objects, trace files, recordings."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Self

from pyrag._io.files import open_private
from pyrag.cli.views.terminal import json_line, one_line
from pyrag.trace.codec import citations_of, to_json
from pyrag.trace.confidence import confidence
from pyrag.trace.model import Trace
from pyrag.trace.plain import encoded
from pyrag.trace.verdict import COMMAND_LINE, is_weak, remark


def as_object(trace: Trace) -> dict[str, Any]:
    """Return the object that `--json` prints: the trace with its cited passages, without its recording."""
    return {
        "question": trace.question,
        "said": trace.said,
        "answer": trace.answer.text,
        "known": trace.answer.known,
        "confidence": confidence(trace),
        "weak": is_weak(trace),
        "remark": remark(trace, COMMAND_LINE),
        "citations": citations_of(trace),
        "sub_queries": trace.sub_queries,
        "program": trace.program,
        "programs": trace.programs,
        "steps": trace.steps,
        "repairs": trace.repairs,
        "usage": trace.usage,
        "warnings": trace.warnings,
        "error": trace.error,
        "method": trace.method,
        "engine": trace.engine,
        "retriever": trace.retriever,
        "index": trace.index,
        "started_at": trace.started_at,
        "pyrag_version": trace.pyrag_version,
    } | _optional_fields(trace)


def _optional_fields(trace: Trace) -> dict[str, Any]:
    """Return the fields that only some traces have: for a type, a user's program, or a question over all documents."""
    typed = {} if trace.returns is None else {"value": trace.value, "item_citations": trace.item_citations}
    if trace.method != "program" and (trace.returns is not None or trace.value is None) and not trace.coverage:
        return typed
    output = trace.programs[-1].output if trace.programs else ""
    return {
        "value": trace.value,
        "item_citations": trace.item_citations,
        "coverage": trace.coverage,
        "complete": trace.complete,
        "output": output,
    }


def print_json(value: Any) -> None:
    """Print a value as one JSON line."""
    print(json_line(encoded(value).decode()), flush=True)


def tell(message: str) -> None:
    """Print a message on stderr."""
    print(f"pyrag: {one_line(message)}", file=sys.stderr, flush=True)


class Sink:
    """Files of traces and recordings, opened before the first question, so that a wrong path fails before any cost.

    The files are readable only by the user, since questions and passages are private. The first trace replaces the
    content of an existing trace file; a run that fails earlier leaves it unchanged.
    """

    def __init__(self, trace_file: Path | None, record_file: Path | None) -> None:
        self._trace_file, self._record_file = trace_file, record_file
        self._traces: IO[bytes] | None = None
        self._records: IO[bytes] | None = None
        self._emptied = False

    @property
    def wanted(self) -> bool:
        return self._trace_file is not None or self._record_file is not None

    def __enter__(self) -> Self:
        self._traces = open_private(self._trace_file) if self._trace_file else None
        self._records = open_private(self._record_file) if self._record_file else None
        return self

    def write(self, trace: Trace) -> None:
        if self._traces and self._trace_file:
            if not self._emptied and self._trace_file.is_file():
                self._traces.truncate(0)
            self._emptied = True
            _add(self._traces, [to_json(trace)])
        if self._records:
            _add(self._records, map(encoded, trace.exchanges))

    def __exit__(self, *exc: object) -> None:
        for file in (self._traces, self._records):
            if file:
                with contextlib.suppress(OSError):  # each line was flushed, so failures were reported before
                    file.close()


def _add(file: IO[bytes], lines: Iterable[bytes]) -> None:
    try:
        file.writelines(line + b"\n" for line in lines)
        file.flush()
    except OSError as error:
        # Unlike errors of opening, errors of writing do not name the file.
        raise OSError(error.errno, error.strerror, file.name) from error

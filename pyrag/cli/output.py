"""What commands write besides the terminal view: JSON objects, trace files, recordings."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any, Self

from pyrag.trace import Trace, to_json


def as_object(trace: Trace) -> dict[str, Any]:
    """The object that `--json` prints: a trace without recording, with citations spelled out."""
    return {
        "question": trace.question,
        "answer": trace.answer.text,
        "known": trace.answer.known,
        "confidence": trace.answer.confidence,
        "citations": [
            {
                "number": citation.number,
                "id": citation.passage,
                "title": trace.passages[citation.passage].title,
                "text": trace.passages[citation.passage].text,
                "source": trace.passages[citation.passage].source,
                "start": trace.passages[citation.passage].start,
                "end": trace.passages[citation.passage].end,
                "step": citation.step,
            }
            for citation in trace.citations
        ],
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
    }


class Sink:
    """Files that a run adds to, opened before the first question so that a bad path costs nothing."""

    def __init__(self, trace_file: Path | None, record_file: Path | None) -> None:
        self._trace_file, self._record_file = trace_file, record_file
        self._traces: IO[bytes] | None = None
        self._records: IO[bytes] | None = None

    @property
    def wanted(self) -> bool:
        return self._trace_file is not None or self._record_file is not None

    def __enter__(self) -> Self:
        self._traces = self._trace_file.open("wb") if self._trace_file else None
        self._records = self._record_file.open("ab") if self._record_file else None
        return self

    def write(self, trace: Trace) -> None:
        if self._traces:
            self._traces.write(to_json(trace) + b"\n")
            self._traces.flush()
        if self._records:
            import msgspec

            self._records.writelines(msgspec.json.encode(exchange) + b"\n" for exchange in trace.exchanges)
            self._records.flush()

    def __exit__(self, *exc: object) -> None:
        for file in (self._traces, self._records):
            if file:
                file.close()

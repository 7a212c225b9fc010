"""Exports of runs: a table with one row per question, and TREC run files for tools such as `trec_eval`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyrag._io.files import write_atomic
from pyrag.evaluation.retrieval_recall import recall_at, retrievals
from pyrag.evaluation.runs.folder import Run
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.model import Trace

_SPACES = re.compile(r"\s")
_FORMULA = re.compile(r"[\s\x00-\x1f]*[=+\-@＝＋－＠]|[\t\r]")  # beginnings that spreadsheets compute
_NUMBER = re.compile(r"[+-]?\d[\d.,]*%?\Z")
_PLAIN = (
    "set", "method", "id", "question", "answer", "known", "em", "f1", "accuracy", "chance_em", "type", "hops", "calls",
    "retrievals", "prompt_tokens", "completion_tokens", "steps", "repairs", "revisions", "unknowns", "recovered",
    "tool_calls", "fallbacks", "seconds", "critical_path",
)  # fmt: skip
COLUMNS = (*_PLAIN, "gold", "gold_passages", "gold_found", "recall", "failure", "error")


def write_csv(rows: Iterable[ResultRow], path: Path) -> None:
    """Write one row per question, set and method, with a header. Gold answers are separated by " | ".

    A text that a spreadsheet would take for a formula is prefixed with an apostrophe, since questions and answers
    are untrusted.

    Args:
        rows: The results.
        path: File to write, which is replaced.
    """
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    table.writeheader()
    table.writerows(_cells(row) for row in sorted(rows, key=lambda row: row.key))
    write_atomic(path, text.getvalue().encode())


def _cells(row: ResultRow) -> dict[str, Any]:
    recall = recall_at(row.support)
    cells = {name: getattr(row, name) for name in _PLAIN} | {
        "gold": " | ".join(row.gold),
        "gold_passages": len(row.support),
        "gold_found": sum(hop.is_found for hop in row.support),
        "recall": "" if recall is None else recall,
        "failure": row.failure.kind if row.failure else "",
        "error": row.error.kind if row.error else "",
    }
    return {name: _plain_cell(value) for name, value in cells.items()}


def _plain_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet evaluates; numbers are kept."""
    is_formula = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.match(value)
    return f"'{value}" if is_formula else value


def write_trec(run: Run, rows: Sequence[ResultRow], path: Path) -> list[Path]:
    """Write `qid Q0 docid rank score tag` for each retrieved passage, and return the files' paths.

    The tag is the method. If there are several methods, each has its own file, named after it. If there are several
    sets, a question's id is preceded by the set's name.

    Args:
        run: Run with the traces.
        rows: Results to write.
        path: File to write, which is replaced.
    """
    methods = sorted({row.method for row in rows})
    several = len({row.set for row in rows}) > 1
    paths = []
    for method in methods:
        chosen = sorted((row for row in rows if row.method == method), key=lambda row: row.key)
        named = path if len(methods) == 1 else path.with_name(f"{path.stem}.{_word(method)}{path.suffix}")
        lines = (line for row in chosen for line in _lines(row, run.trace(row), several=several))
        write_atomic(named, "".join(lines).encode())
        paths.append(named)
    return paths


def _lines(row: ResultRow, trace: Trace, *, several: bool) -> Iterator[str]:
    question = _word(f"{row.set}:{row.id}" if several else row.id)
    for rank, passage in enumerate(ranked(trace), start=1):
        yield f"{question} Q0 {_word(passage)} {rank} {1 / rank:.6f} {_word(row.method)}\n"


def ranked(trace: Trace) -> list[str]:
    """Return the ids of all retrieved passages by their best rank in any retrieval. Ties keep their order."""
    best: dict[str, int] = {}
    for retrieval in retrievals(trace):
        for rank, passage in enumerate(retrieval.passages):
            best[passage] = min(rank, best.get(passage, rank))
    return sorted(best, key=lambda passage: best[passage])


def _word(text: str) -> str:
    """Return a text as a field of TREC's format, which separates fields by white space."""
    return _SPACES.sub(lambda space: f"%{ord(space[0]):02X}", text) or "-"

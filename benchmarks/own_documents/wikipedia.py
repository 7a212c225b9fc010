"""Questions of public Wikipedia sets, asked of the embedded engine over each set's own corpus."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.own_documents.asking import Judged, source_of, traces_over
from pyrag.evaluation.metrics import exact_match

SETS = ("popqa", "hotpotqa", "2wikimultihopqa", "musique")


async def ask_set(folder: Path, limit: int) -> list[Judged]:
    """Return the judged answers to the first questions of a set.

    Args:
        folder: Folder of the set, with `questions.jsonl.gz` and `corpus.jsonl.gz`.
        limit: Maximum number of questions.
    """
    rows = _rows(folder / "questions.jsonl.gz")[:limit]
    corpus = gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()).decode("utf-8")
    traces = await traces_over({"corpus.jsonl": corpus}, [row["question"] for row in rows])
    return [
        Judged(folder.name, row["type"], "wikipedia", row["question"], trace.answer.text, trace.answer.known,
               trace.weak, trace.answer.confidence, bool(exact_match(trace.answer.text, row["answers"])),
               source_of(trace))
        for row, trace in zip(rows, traces, strict=True)
    ]  # fmt: skip


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]

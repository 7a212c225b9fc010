"""Questions asked of the whole embedded engine over passages in memory, with answers told weak or not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyrag import PyRAG
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage, Trace

FOLDER = Path(__file__).parent


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / path).read_text(encoding="utf-8").splitlines()]


async def ask_all(folder: str, questions: Iterable[str]) -> list[Trace]:
    """Return the traces of questions over the corpus of a folder."""
    passages = [Passage(**row) for row in lines(f"{folder}/corpus.jsonl")]
    async with PyRAG(retriever=InMemoryRetriever(passages)) as rag:
        return [trace async for trace in rag.aask_many(questions, concurrency=4)]


def is_sure(trace: Trace) -> bool:
    """Return whether an answer is known and not marked as weak."""
    return trace.answer.known and not trace.weak


def tally(traces: Iterable[Trace], golds: Iterable[set[str]]) -> Counter[str]:
    """Count the sure answers that are right and wrong, and the others."""
    counts: Counter[str] = Counter()
    for trace, gold in zip(traces, golds, strict=True):
        right = trace.answer.text.lower().removeprefix("the ") in gold if gold else not trace.answer.known
        counts[("right" if right else "wrong") if is_sure(trace) else "weak or unknown"] += 1
    return counts

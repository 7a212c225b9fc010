"""Questions asked of the embedded engine, with their answers judged."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.own_documents.documents import Document, Labelled
from pyrag import PyRAG
from pyrag.trace.confidence import steps_behind
from pyrag.trace.model import Answer, Trace

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_SPARE = 3  # words of a right answer beyond the gold answer


@dataclass(frozen=True, slots=True)
class Judged:
    """Answer to a labelled question.

    Attributes:
        weak: Whether the answer is marked as weak.
        confidence: Confidence of the answer; None if it was computed over a table.
        source: Part of the engine that gave the answer.
    """

    set: str
    kind: str
    form: str
    question: str
    answer: str
    known: bool
    weak: bool
    confidence: float | None
    right: bool
    source: str


async def ask_own(documents: Iterable[Document], questions: Sequence[Labelled], half: str) -> list[Judged]:
    """Return the judged answers to the questions of a half, over an index of its documents."""
    wanted = [question for question in questions if question.half == half]
    files = {document.name: document.text for document in documents if document.half == half}
    traces = await traces_over(files, [item.question for item in wanted])
    return [
        Judged(half, item.kind, item.form, item.question, trace.answer.text, trace.answer.known,
               trace.weak, trace.answer.confidence, is_right(item, trace.answer), source_of(trace))
        for item, trace in zip(wanted, traces, strict=True)
    ]  # fmt: skip


async def traces_over(files: dict[str, str], questions: Sequence[str]) -> list[Trace]:
    """Return the traces of questions over an index of the given files (text by name)."""
    with tempfile.TemporaryDirectory() as folder:
        async with PyRAG(retriever=_indexed(files, Path(folder))) as rag:
            return [trace async for trace in rag.aask_many(questions, concurrency=2)]


def _indexed(files: dict[str, str], folder: Path) -> str:
    """Write files, and return the path of an index of them."""
    place = folder / "documents"
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pyrag", "index", str(place), "--out", str(folder / "index")]
    subprocess.run(command, check=True, capture_output=True)
    return str(folder / "index")


def is_right(item: Labelled, answer: Answer) -> bool:
    """Return whether an answer is one of the right answers to a question."""
    if not item.golds or not answer.known:
        return not item.golds and not answer.known
    text = _plain(answer.text)
    if any(re.search(rf"\b{re.escape(_plain(other))}\b", text) for other in item.others):
        return False
    return any(_is(text, _plain(gold)) for gold in item.golds)


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text).casefold().strip(" .")


def _is(text: str, gold: str) -> bool:
    """Return whether a text gives the gold answer: as its only number, or as all names of it plus a few words."""
    if re.search(r"\d", gold):
        figures, wanted = _NUMBER.findall(text), _NUMBER.findall(gold)
        unit = gold[len(wanted[0]) :].strip()
        return [float(f) for f in figures] == [float(f) for f in wanted] and (not unit or text.endswith(unit))
    parts = gold.split(", ")
    missing = [part for part in parts if not re.search(rf"\b{re.escape(part)}\b", text)]
    return not missing and len(text.split()) <= len(gold.split()) + _SPARE + len(parts)


def source_of(trace: Trace) -> str:
    """Return the part of the engine that gave the answer, judged by its rationale and the program's steps."""
    steps = steps_behind(trace)
    if len(steps) != 1:
        return "several steps" if steps else "computed"
    why = steps[0].rationale
    for cue, name in ((" reads like the answer", "network"), (" matches “", "pattern"), ("row “", "table")):
        if cue in why:
            return name
    return "comparison"

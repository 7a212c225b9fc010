"""Questions of a curriculum's gates: drawn from a set's training questions, and held out of all training sets.

The draw depends only on a question's words, so that it is the same on every machine. `pyrag bench --split gate` asks
the questions, `pyrag train data` excludes them, and `pyrag_rl.curriculum` measures on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyrag._io.files import write_atomic
from pyrag.errors import UsageError
from pyrag.evaluation.datasets.layout import Question, find_file, read_questions
from pyrag.evaluation.datasets.suite import open_set
from pyrag_rl.data.held_out import draw, held_out, words_mark

GATE = "gate"
"""Name of the split."""


def write_gate(data: Path, name: str, count: int) -> Path:
    """Write the gate of a set next to its training questions, and return its path.

    Args:
        data: Folder with a subfolder per set.
        name: Name of the set.
        count: Number of questions.

    Raises:
        UsageError: The set has too few training questions, or already has a gate of other questions.
    """
    import msgspec

    folder, measured = data / name, find_file(data / name, "questions")
    reported = held_out([measured] if measured else [])
    drawn: dict[bytes, Question] = {}
    for question in sorted(open_set(name, data, split="train").questions, key=lambda question: draw(question.question)):
        if question.answers and reported.holding(name, question.id, question.question) is None:
            drawn.setdefault(words_mark(question.question), question)
        if len(drawn) == count:
            break
    if len(drawn) < count:
        raise UsageError(f"{folder} has {len(drawn)} training questions for a gate of {count}: pass a smaller --limit")
    path = folder / f"{GATE}_questions.jsonl"
    lines = [msgspec.json.encode(question) for question in drawn.values()]
    _check_same(path, [question.id for question in drawn.values()])
    write_atomic(path, b"\n".join(lines) + b"\n")
    return path


def _check_same(path: Path, ids: Sequence[str]) -> None:
    if path.is_file() and [question.id for question in read_questions(path)] != list(ids):
        raise UsageError(
            f"{path} holds other questions, which training sets were built without: keep it, or remove it and build "
            "the training sets again"
        )

"""Location of each question's journal in a run, from which the question is resumed after a kill."""

from __future__ import annotations

import hashlib
from pathlib import Path


def journal_path(run: Path, set_name: str, method: str, question: str) -> Path:
    """Return the journal of a question, named by a digest, since ids are free text.

    Args:
        run: Folder of the run.
        set_name: Name of the set.
        method: Name of the method.
        question: Id of the question.
    """
    digest = hashlib.sha256(f"{set_name}\n{method}\n{question}".encode()).hexdigest()[:24]
    return run / "journal" / f"{digest}.jsonl"

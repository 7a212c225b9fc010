"""Prepared examples on disk: a compressed numpy archive, small enough to load in every worker."""

# numpy is needed for training only, so type checks run without it:
# mypy: disable-error-code="import-not-found,unused-ignore"

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pyrag._io.files import AtomicFile
from pyrag_rl.embedded.reader.windows import Example


def save_examples(examples: Sequence[Example], path: Path) -> None:
    """Write examples to a file, in one step.

    Args:
        examples: At least one; token ids below 65,536.
        path: Replaced if it is there.
    """
    ids = np.concatenate([np.asarray(each.ids, dtype=np.uint16) for each in examples])
    labels = np.asarray([(len(e.ids), e.split, e.start, e.end) for e in examples], dtype=np.int32)
    with AtomicFile(path) as file:
        np.savez_compressed(file, ids=ids, labels=labels)


def load_examples(path: Path) -> list[Example]:
    with np.load(path) as stored:
        ids, labels = stored["ids"], stored["labels"]
    ends = labels[:, 0].cumsum()
    return [
        Example(ids[end - length : end].tolist(), split, start, last)
        for end, (length, split, start, last) in zip(ends.tolist(), labels.tolist(), strict=True)
    ]

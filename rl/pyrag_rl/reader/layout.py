"""Reading the data sets: folders with `*_questions.jsonl.gz` and `*_corpus.jsonl.gz` in the common layout."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """A passage of a corpus."""

    id: str
    title: str
    text: str


def missing(folder: Path, names: Sequence[str]) -> str:
    """One sentence about a set that the folder lacks; empty if it has them all."""
    lacks = next((name for name in names if not (folder / name).is_dir()), None)
    return f"{folder} has no set {lacks}: name the folder with {', '.join(names)}" if lacks else ""


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a gzipped JSON-lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def corpus(path: Path) -> dict[str, Text]:
    return {row["id"]: Text(row["id"], row["title"], row["text"]) for row in rows(path)}

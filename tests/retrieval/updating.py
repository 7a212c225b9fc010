"""What tests of updates share: corpora, comparisons, a part that records what it is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyrag.retrieval.index import open_index, read_info, update_index
from pyrag.retrieval.indexing import bm25_part
from pyrag.retrieval.indexing.verify import verify_index
from pyrag.trace.model import Passage

WORDS = ("zebra", "lion", "tiger", "otter")


def content(index: Path) -> list[Passage]:
    return sorted(open_index(index), key=lambda passage: passage.id)


def results(index: Path) -> list[list[Passage]]:
    opened = open_index(index)
    return [opened.search(query, 7) for query in (*WORDS, "word5 lion", "title zebra otter")]


def assert_like_fresh(index: Path, paths: Sequence[Path], fresh: Path) -> None:
    """Scores of a large index that was updated may differ a little, see `bm25_part`."""
    shutil.rmtree(fresh, ignore_errors=True)
    update_index(paths, fresh)
    assert content(index) == content(fresh)
    if sum(bm25_part.count_ghosts(index / read_info(index).generation / "bm25")) <= bm25_part.SMALL:
        assert results(index) == results(fresh)
    assert verify_index(index).problems == ()


def records(folder: Path, files: int = 6, each: int = 50) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        lines = [
            {"id": f"{number}-{n}", "title": f"Title {n}", "text": f"{WORDS[n % 4]} word{n} {WORDS[number % 4]}"}
            for n in range(each)
        ]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@dataclass
class Recording:
    """A part that only keeps ids, in one file that it writes again."""

    calls: list[tuple[str, list[str]]] = field(default_factory=list)
    kind = "ids"
    keeps_places = False
    settings = {"version": 1}  # noqa: RUF012

    def writer(self, folder: Path) -> Recording:
        folder.mkdir(exist_ok=True)
        self.file = folder / "ids.json"
        self.held = set(json.loads(self.file.read_text())) if self.file.exists() else set()
        return self

    def add(self, passages: Sequence[Passage]) -> None:
        self.calls.append(("add", [one.id for one in passages]))
        assert not self.held & {one.id for one in passages}
        self.held |= {one.id for one in passages}

    def delete(self, ids: Sequence[str]) -> None:
        self.calls.append(("delete", list(ids)))
        assert self.held >= set(ids)
        self.held -= set(ids)

    def commit(self) -> None:
        new = self.file.with_name("new")
        new.write_text(json.dumps(sorted(self.held)))
        new.replace(self.file)

    def close(self) -> None: ...

    def is_as_wanted(self, folder: Path) -> bool:
        return True

    def finish(self, folder: Path, *, from_scratch: bool, keep: Any) -> None: ...

    def ids(self, folder: Path) -> Any:
        return iter(json.loads((folder / "ids.json").read_text()))

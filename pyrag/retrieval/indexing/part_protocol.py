"""Protocols of the parts of an index. Each part searches passages in its own way, and has its own folder.

    DIR/gen-.../bm25/         a folder per part, named by its `kind`
    DIR/gen-.../records.db    passages by file

Generations and checkpoints share files by hard links. Therefore, after `commit`, a part never changes a file in place:
it writes a new file and renames it. This does not apply to files whose names end with `.lock`, since they are not
shared. Every index has a BM25 part, which is used to look up passages by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pyrag.trace.model import Passage

Settings = Mapping[str, str | int | float | bool | None]


class PartWriter(Protocol):
    """Writer of a part, used by one thread. All methods raise `OSError` or `ValueError` if writing fails."""

    def add(self, passages: Sequence[Passage]) -> None:
        """Add passages that are not in the part, or that were deleted from it."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Delete passages that were added before, committed or not; unknown ids are ignored."""
        ...

    def commit(self) -> None:
        """Write everything to the disk and end all background work. The writer can still be used after that."""
        ...

    def close(self) -> None:
        """Release the folder. Changes that were not committed may be lost."""
        ...


class Part(Protocol):
    """Part of an index."""

    @property
    def kind(self) -> str: ...

    @property
    def settings(self) -> Settings:
        """Settings of the part. An index whose settings differ is built from scratch instead of updated."""
        ...

    @property
    def keeps_places(self) -> bool:
        """True if the part stores source, start, end and metadata. If only these change, the passage is replaced."""
        ...

    def writer(self, folder: Path) -> PartWriter:
        """Return a writer of the folder, which may be empty."""
        ...

    def is_as_wanted(self, folder: Path) -> bool:
        """Return whether a folder that has not changed needs no `finish`."""
        ...

    def finish(self, folder: Path, *, from_scratch: bool, keep: Callable[[], object]) -> None:
        """Complete the part, for example by compaction, between closing its writer and publishing the generation.

        Args:
            folder: Folder of the part.
            from_scratch: True if the part was built from scratch.
            keep: Function that makes a checkpoint during long work. The folder must be consistent when it is called.
        """
        ...

    def ids(self, folder: Path) -> Iterator[str]:
        """Return the ids of all passages in the part, in any order."""
        ...

"""Parts of an index: each finds passages in its own way, in a folder of its own.

    DIR/gen-.../bm25/         one folder a part, named by its `kind`
    DIR/gen-.../records.db    which file has which passages

A generation is made from the one before by hard links, and so is every checkpoint of a build. Hence the one rule: after
`commit`, a part never changes a file in place, it writes another and renames (files whose names end with `.lock`
excepted, which are not taken along). The bm25 part is always there, and is where passages are looked up by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pyrag.trace.model import Passage

Settings = Mapping[str, str | int | float | bool | None]


class PartWriter(Protocol):
    """Writer of a part, used by one thread. Raises `OSError` or `ValueError` if it cannot write."""

    def add(self, passages: Sequence[Passage]) -> None:
        """Add passages that are not in the part, or were deleted before."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Delete passages that were added before, committed or not; unknown ids are ignored."""
        ...

    def commit(self) -> None:
        """Write everything to the disk and end all background work. Writing may go on afterwards."""
        ...

    def close(self) -> None:
        """Release the folder; what was not committed may be lost."""
        ...


class Part(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def settings(self) -> Settings:
        """Settings that must be equal for an index to be updated instead of built anew; kept in `pyrag-index.json`."""
        ...

    @property
    def keeps_places(self) -> bool:
        """True if it stores source, start, end and metadata; changes of these alone come as delete and add."""
        ...

    def writer(self, folder: Path) -> PartWriter:
        """Return a writer of the folder, which may be empty."""
        ...

    def is_as_wanted(self, folder: Path) -> bool:
        """Return True if an unchanged folder may stay as it is, without `finish`."""
        ...

    def finish(self, folder: Path, *, anew: bool, keep: Callable[[], object]) -> None:
        """Complete the part after its writer is closed, before the generation is published: to compact, if that is due.

        Args:
            folder: Folder of the part.
            anew: True if the part was built from nothing.
            keep: Makes a checkpoint during long work; the folder must be whole then.
        """
        ...

    def ids(self, folder: Path) -> Iterator[str]:
        """Return all ids that can be found, in any order."""
        ...

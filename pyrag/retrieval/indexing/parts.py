"""What an index is made of: parts that each find passages in their own way, in a folder of their own.

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
    """A part that is being written; used by one thread. Raises `OSError` or `ValueError` where it cannot write."""

    def add(self, passages: Sequence[Passage]) -> None:
        """Passages that are not in the part, or were deleted before."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Of passages that were added before, committed or not. Ids that are not there are passed over."""
        ...

    def commit(self) -> None:
        """Brings all to the disk, and leaves nothing that works on in the background. Writing may go on after it."""
        ...

    def close(self) -> None:
        """Lets go of the folder. What was not committed may be lost."""
        ...


class Part(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def settings(self) -> Settings:
        """What must be the same for an index to be updated and not built anew; kept in `pyrag-index.json`."""
        ...

    @property
    def keeps_places(self) -> bool:
        """Whether it stores source, start and end: it is then told of passages that have moved, as delete and add."""
        ...

    def writer(self, folder: Path) -> PartWriter:
        """Of the folder, which may be empty."""
        ...

    def is_as_wanted(self, folder: Path) -> bool:
        """Whether a folder that did not change may stay as it is, or has to be finished again."""
        ...

    def finish(self, folder: Path, *, anew: bool, keep: Callable[[], object]) -> None:
        """Called once the writer is closed, before the generation is published: to compact, if that is due.

        `anew` says that the part was built from nothing, whatever it took. `keep` makes a checkpoint, for what takes
        long; the folder must be whole then.
        """
        ...

    def ids(self, folder: Path) -> Iterator[str]:
        """All ids that can be found, in any order."""
        ...

"""Assignment of ids to passages: a user's ids may not be unique, and several files may contain the same text.

Equal passages with the same id are merged, and belong to the file whose name sorts first. If different passages have
the same id, the first one keeps it, and the others get the id with their hash (`with_distinct_id`). The table `also` of
the records names the other files as heirs of the id: they are read again if its holder loses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyrag.retrieval.documents.model import Placed, with_distinct_id
from pyrag.retrieval.filters.metadata import encoded
from pyrag.retrieval.indexing.record_database import File, Known, Records, hash64
from pyrag.trace.model import Passage


@dataclass(slots=True)
class PassageBatch:
    """Changes to an index that a batch of passages requires."""

    new: list[Passage] = field(default_factory=list)
    other: list[Passage] = field(default_factory=list)  # another text under the id
    moved: list[Passage] = field(default_factory=list)  # place or metadata changed, but not the text
    put: list[Known] = field(default_factory=list)
    also: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class _SharedIds:
    """Numbers of a file's passages whose ids are shared with other passages."""

    equal: int = 0
    distinct: int = 0
    example: str = ""

    def remarks(self) -> list[str]:
        sentences = []
        if self.equal:
            sentences.append(
                f"{self.equal} passages are there already, under the same id with the same text: indexed once"
            )
        if self.distinct:
            sentences.append(f"{self.distinct} ids that another text has were made distinct, such as {self.example!r}")
        return sentences


class Claims:
    """Assignment of ids to passages, based on the records of an index."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._shared = _SharedIds()

    def begin(self) -> None:
        """Begin a file."""
        self._shared = _SharedIds()

    def remarks(self) -> list[str]:
        """Return remarks on the file's passages that have the same id as another passage."""
        return self._shared.remarks()

    def sorted(self, file: File, passages: Sequence[Placed]) -> PassageBatch:
        """Return the changes to the index that a file's passages require.

        Args:
            file: Record of the file.
            passages: Passages of the file, in order.
        """
        known = self._records.known([item.passage.id for item in passages])
        batch = PassageBatch()
        for item in passages:
            self._sort(file, item, known, batch)
        return batch

    def _sort(self, file: File, item: Placed, known: dict[str, Known], batch: PassageBatch) -> None:
        """Add a passage to the batch, as determined by the records of its id."""
        passage = item.passage
        content = hash64(passage.title, passage.text)
        facts = hash64(encoded(passage.metadata)) if passage.metadata else 0
        while (old := known.get(passage.id)) is not None and self._is_current(old, file):
            equal = (old.content, old.facts) == (content, facts)
            if self._comes_first(old, file, batch):
                if equal:
                    self._shared.equal += item.own_id
                    return
                passage = self._distinct(passage, known)
                continue
            if not equal:
                self._records.invalidate(old.file)  # its passage needs another id now
            break
        if old is not None and old.file != file.file and not self._is_current(old, file):
            self._ask_holders(passage.id, file)
        if passage is not item.passage:
            self._shared.distinct += 1
            self._shared.example = self._shared.example or passage.id
        place = hash64(passage.source, passage.start, passage.end)
        new = known[passage.id] = Known(passage.id, file.file, file.version, content, place, facts)
        batch.put.append(new)
        if old is None:
            batch.new.append(passage)
        elif old.content != content:
            batch.other.append(passage)
        elif (old.place, old.facts) != (place, facts):
            batch.moved.append(passage)

    def _comes_first(self, old: Known, file: File, batch: PassageBatch) -> bool:
        """Return whether an id's holder keeps it, and record the other file as heir."""
        if old.file == file.file:
            return True
        first = self._records.file_by_number(old.file).name < file.name
        batch.also.append((old.id, file.file if first else old.file))
        return first

    def _distinct(self, passage: Passage, known: dict[str, Known]) -> Passage:
        """Return a passage with a distinct id, and add the record of this id to `known`."""
        passage = with_distinct_id(passage)
        if passage.id not in known:
            known.update(self._records.known([passage.id]))
        return passage

    def _ask_holders(self, key: str, file: File) -> None:
        """Have heirs of an id read again if they sort before this file, since one of them may own the passage."""
        for holder in self._records.holders(key):
            if self._records.file_by_number(holder).name < file.name:
                self._records.invalidate(holder)

    def _is_current(self, known: Known, file: File) -> bool:
        owner = file if known.file == file.file else self._records.file_by_number(known.file)
        return known.version == owner.version

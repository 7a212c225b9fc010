"""One run over the files: what did not change is passed over, the rest is read and put in place of what was there.

The outcome depends on the files alone, not on the order in which they came and went, nor on where an earlier run was
killed. A file that cannot be read is left out as a whole and named, if it was found in a folder; one that the user
named ends the run with a `DataError`, and so does an id that two files claim. Publishing is up to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pyrag.errors import DataError
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.model import Document, Placed, Stamp
from pyrag.retrieval.documents.reading import Columns, no_documents, nothing_found, read_opened, used_twice
from pyrag.retrieval.documents.unpack import Opened, digest_of, opened
from pyrag.retrieval.filters.metadata import encoded
from pyrag.retrieval.indexing.parts import Part, PartWriter
from pyrag.retrieval.indexing.records import ALL, CHANGED, UNFINISHED, File, Known, Records, hash64
from pyrag.trace.model import Passage

RACY = 2_000_000_000
"""A file that changed less than this many nanoseconds ago may change again without a change of its time."""

_BATCH = 1000  # passages
_MAX_REMARKS = 1000
_BATCH_SIZE = 8 << 20  # characters


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """`done` of `total` bytes of the files that have to be looked at, after `seconds`."""

    passages: int
    done: int
    total: int
    seconds: float
    file: str


@dataclass(slots=True)
class Changes:
    """Numbers of passages added, changed (their place included) and removed, and of files read."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files_read: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(slots=True)
class _PassageBatch:
    """Changes of one batch of passages."""

    new: list[Passage] = field(default_factory=list)
    other: list[Passage] = field(default_factory=list)  # another text under the id
    moved: list[Passage] = field(default_factory=list)  # also those whose metadata changed alone
    put: list[Known] = field(default_factory=list)
    also: list[tuple[str, int]] = field(default_factory=list)


class ClaimedTwiceError(DataError):
    """An id that two passages claim: not the fault of one file."""


class IndexUpdate:
    """One run; `tick` is called between batches, when everything so far is in the writers and records."""

    def __init__(
        self,
        records: Records,
        parts: Sequence[Part],
        writers: Mapping[str, PartWriter],
        *,
        columns: Columns,
        check_contents: bool,
        follow_links: bool = False,
        tick: Callable[[IndexProgress], None],
    ) -> None:
        self._records = records
        self._writers = [(writers[part.kind], part.keeps_places) for part in parts]
        self._columns = columns
        self._check_contents = check_contents
        self._follow_links = follow_links
        self._tick = tick
        self._started = time.monotonic()
        self._passages = self._done = self._total = 0
        self._source: Opened | None = None
        self._digest = ""
        self.changes = Changes()
        self.remarks: list[tuple[str, str]] = []  # names and remarks of files that were read otherwise than usual

    def run(self, paths: Sequence[Path]) -> None:
        """Read the files and update parts and records. Raises `DataError` for bad files, and what the parts raise."""
        self._walk(paths)
        which = ALL if self._check_contents else CHANGED
        self._total = self._records.bytes(which)
        self._records.retire_gone()
        self._visit_all(which)
        self._remove_gone()
        self._remove_outdated()
        while self._visit_all(UNFINISHED):  # files that hold what another one lost
            self._remove_outdated()
        if not self._records.count("passages"):
            raise self._nothing(paths)

    def _walk(self, paths: Sequence[Path]) -> None:
        problems: list[tuple[str, str]] = []
        self._records.begin_walk()
        documents = find_documents(
            paths, lambda name, error: problems.append((name, str(error))), follow_links=self._follow_links
        )
        found = False
        while some := list(islice(documents, _BATCH)):
            found = True
            self._records.saw(some)
        self._records.set_problems(problems)
        if not found:
            raise self._nothing(paths) if problems else no_documents(paths)

    def _nothing(self, paths: Sequence[Path]) -> DataError:
        problems = self._records.problems(1)
        if not problems:
            return nothing_found(paths)
        return DataError(f"none of the files could be read, the first for this reason: {problems[0][1]}")

    def _visit_all(self, which: str) -> bool:
        after, visited = "", False
        while page := self._records.seen(which, after):
            for document in page:
                visited = True
                self._visit(document)
                self._done += document.stamp.size
            after = page[-1].name
        return visited

    def _visit(self, document: Document) -> None:
        file = self._records.file(document.name)
        wanted = document.given and file and file.problem  # it may be left out no longer
        if file and file.done and not wanted and self._is_unchanged(document, file):
            return
        self.changes.files_read += 1
        if file and not file.done and file.is_like(document):
            self._read(document, file)
        else:
            self._read(document, self._records.begin_reading(document, _mtime(document)))

    def _is_unchanged(self, document: Document, file: File) -> bool:
        """Compare by content: the times do not say, or are not reliable."""
        mtime = _mtime(document)
        try:
            same = bool(file.digest) and file.key == document.key and file.digest == digest_of(document)
        except DataError:
            return False
        if same:
            self._records.trust(file.file, mtime)
        return same

    def _read(self, document: Document, file: File) -> None:
        """Read a file from where an earlier run stopped; see `File.taken`."""
        taken = file.taken
        batches = self._batches(document, taken)
        while True:
            try:
                batch = next(batches, None)
            except DataError as error:
                if document.given:
                    raise
                self._leave_out(document, file, error)
                return
            if batch is None:
                break
            self._index(document, file, batch)
            taken += len(batch)
            self._records.took(file.file, taken)
            self._tick(self._progress(document))
        self._records.done_reading(file.file, self._digest, _mtime_after(document, file))

    def _batches(self, document: Document, skip: int) -> Iterator[list[Placed]]:
        """Yield batches of passages; apart from indexing, so that write errors are not taken for read errors."""
        with opened(document, self._columns.encoding) as self._source:
            batch: list[Placed] = []
            size = 0
            for placed in islice(read_opened(self._source, self._columns), skip, None):
                batch.append(placed)
                size += len(placed.passage.text)
                if len(batch) == _BATCH or size > _BATCH_SIZE:
                    yield batch
                    batch, size = [], 0
            if batch:
                yield batch
            self._digest = self._source.digest()
            self._remark(self._source)

    def _remark(self, file: Opened) -> None:
        """Keep remarks on a file, up to a maximum in all."""
        said = [*file.remarks, *([f"read as {file.encoding}"] if file.encoding else [])]
        if len(self.remarks) < _MAX_REMARKS:
            self.remarks += [(file.document.name, remark) for remark in said]

    def _leave_out(self, document: Document, file: File, error: DataError) -> None:
        """Leave a file out; a problem of its content stays until the content changes, any other is tried again."""
        try:
            digest = digest_of(document)
        except DataError:
            digest = ""
        again = not digest or "not installed" in str(error)
        mtime = 0 if again else _mtime_after(document, file)
        self._records.leave_out(file.file, "" if again else digest, mtime, str(error))

    def _index(self, document: Document, file: File, placed: Iterable[Placed]) -> None:
        placed = list(placed)
        known = self._records.known([one.passage.id for one in placed])
        batch = _PassageBatch()
        for one in placed:
            self._sort(document, file, one, known, batch)
        self._apply(batch)
        self._passages += len(placed)

    def _sort(
        self, document: Document, file: File, placed: Placed, known: dict[str, Known], batch: _PassageBatch
    ) -> None:
        """Decide what to do with one passage, by what is known of its id."""
        passage = placed.passage
        old = known.get(passage.id)
        if old is not None and self._is_current(old, file):
            if placed.own_id:
                raise self._claimed(placed, old)
            if old.file == file.file:
                return
            if self._records.file_by_number(old.file).name < file.name:
                batch.also.append((passage.id, file.file))
                return
            batch.also.append((passage.id, old.file))
        elif old is not None and old.file != file.file:
            self._ask_holders(passage.id, file)
        content = hash64(passage.title, passage.text)
        place = hash64(passage.source, passage.start, passage.end, encoded(passage.metadata))
        new = known[passage.id] = Known(passage.id, file.file, file.version, content, place)
        batch.put.append(new)
        if old is None:
            batch.new.append(passage)
        elif old.content != content:
            batch.other.append(passage)
        elif old.place != place:
            batch.moved.append(passage)

    def _ask_holders(self, key: str, file: File) -> None:
        """Have earlier holders of a passage read again: one of them may be its owner, before this file."""
        for holder in self._records.holders(key):
            if self._records.file_by_number(holder).name < file.name:
                self._records.invalidate(holder)

    def _is_current(self, known: Known, file: File) -> bool:
        owner = file if known.file == file.file else self._records.file_by_number(known.file)
        return known.version == owner.version

    def _claimed(self, placed: Placed, known: Known) -> ClaimedTwiceError:
        """Return the error for an id claimed twice; its first place is found by reading again, to save memory in the
        good case."""
        name = self._records.file_by_number(known.file).name
        first = name
        document = self._records.document(name)
        if document is not None:
            with opened(document, self._columns.encoding) as file:
                found = (one for one in read_opened(file, self._columns) if one.passage.id == placed.passage.id)
                first = next((one.place for one in found), name)
        return ClaimedTwiceError(str(used_twice(placed.passage.id, first, placed.place)))

    def _apply(self, batch: _PassageBatch) -> None:
        for writer, keeps_places in self._writers:
            again = [*batch.other, *batch.moved] if keeps_places else batch.other
            if again:
                writer.delete([passage.id for passage in again])
            if batch.new or again:
                writer.add([*batch.new, *again])
        self._records.put(batch.put)
        self._records.put_also(batch.also)
        self.changes.added += len(batch.new)
        self.changes.changed += len(batch.other) + len(batch.moved)

    def _remove_gone(self) -> None:
        while gone := self._records.gone():
            for number in gone:
                self._drop(number)
                self._records.forget(number)

    def _remove_outdated(self) -> None:
        """Remove outdated passages after all files were read: a lost passage may have moved to another file."""
        while files := self._records.unsorted():
            for file in files:
                self._drop(file.file, file.version)
                self._records.sorted(file.file)

    def _drop(self, number: int, version: int = -1) -> None:
        """Delete the passages that a file no longer has; another file that has them is read again."""
        while ids := self._records.outdated(number, version):
            for writer, _ in self._writers:
                writer.delete(ids)
            for heir in self._records.remove(ids) - {number}:
                self._records.invalidate(heir)
            self.changes.removed += len(ids)

    def _progress(self, document: Document) -> IndexProgress:
        position = self._source.position if self._source else 0
        done = min(self._done + position, self._total)
        return IndexProgress(self._passages, done, self._total, time.monotonic() - self._started, document.name)


def _mtime(document: Document) -> int:
    """Return a document's time, or 0 if it is too recent to be reliable."""
    mtime = document.stamp.mtime
    return mtime if document.member or time.time_ns() - mtime > RACY else 0


def _mtime_after(document: Document, file: File) -> int:
    """Return a document's time when reading began, or 0 if it has changed since."""
    if document.member:
        return file.mtime
    try:
        status = document.path.stat()
    except OSError:
        return 0
    return file.mtime if Stamp(status.st_size, status.st_mtime_ns) == document.stamp else 0

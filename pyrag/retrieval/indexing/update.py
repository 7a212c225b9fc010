"""Update of an index: unchanged files are skipped, and passages of changed files replace the earlier ones.

The result depends only on the files, not on the order of changes or on interruptions of earlier updates. A record that
cannot be read is skipped and reported. The same applies to a file in a folder if it has no readable record; if the user
named the file itself, a `DataError` is raised. The caller publishes the result.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pyrag.errors import DataError
from pyrag.retrieval.documents.find import LEADS_OUT, find_documents
from pyrag.retrieval.documents.model import Document, Placed, Stamp, ending
from pyrag.retrieval.documents.opened_document import BadRecords, Opened, digest_of, opened
from pyrag.retrieval.documents.readers import readers_version
from pyrag.retrieval.documents.reading import Columns, no_documents, nothing_found, read_opened
from pyrag.retrieval.indexing.claims import Claims, PassageBatch
from pyrag.retrieval.indexing.part_protocol import Part, PartWriter
from pyrag.retrieval.indexing.record_database import File, Records
from pyrag.retrieval.indexing.sources import IndexSource, WantedSources, located, locator, split_member
from pyrag.retrieval.indexing.walk import ALL, CHANGED, UNFINISHED

RACY = 2_000_000_000
"""Nanoseconds after a change in which a file may change again without a new time."""

REMOVED = "left out, since pyrag index remove took it away: name it to index it again"
_BATCH = 1000  # passages
_MAX_REMARKS = 1000
_BATCH_SIZE = 8 << 20  # characters


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Progress of an update: `done` of `total` bytes of the files to read, after `seconds`."""

    passages: int
    done: int
    total: int
    seconds: float
    file: str


@dataclass(slots=True)
class Changes:
    """Numbers of passages that were added, changed (in content or place) and removed, and of files that were read."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files_read: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class IndexUpdate:
    """Update of an index. `tick` is called between batches, when writers and records are in a consistent state."""

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
        self._claims = Claims(records)
        self._digest = ""
        self._bad = BadRecords()
        self.changes = Changes()
        self.remarks: list[tuple[str, str]] = []  # names and remarks of files that were read otherwise than usual
        self.removed_files: list[tuple[str, int]] = []  # files that are gone, with their passages

    def run(self, wanted: WantedSources) -> None:
        """Read the files and update parts and records. Errors of the parts are raised unchanged.

        Raises:
            DataError: A named file cannot be read, or there is nothing to index.
        """
        self._walk(wanted)
        self._records.begin_retries(readers_version())
        which = ALL if self._check_contents else CHANGED
        self._total = self._records.walk.bytes(which)
        self._settle(which)
        only_problems = self._records.count_problems() and not self.removed_files
        if not self._records.count("passages") and (only_problems or not wanted.may_be_empty):
            raise self._nothing(wanted.paths)

    def remove(self, is_removed: Callable[[str], bool], located: Callable[[str], tuple[Path, str]]) -> None:
        """Remove files from the index, and change nothing else.

        Args:
            is_removed: Function that returns whether to remove the file with a name.
            located: Function that returns the path of a file by its name, and its name in an archive.

        Raises:
            DataError: A file that shares passages with a removed one cannot be read.
        """
        self._records.walk.begin()
        stay = (file for file in self._records.files() if not is_removed(file.name))
        while some := [_recorded(file, *located(file.name)) for file in islice(stay, _BATCH)]:
            self._records.walk.saw(some)
        self._settle(UNFINISHED)

    def run_only(self, files: Mapping[str, Path], sources: Sequence[IndexSource]) -> None:
        """Read some files and update parts and records. All other files stay as they are, and are not looked at.

        Args:
            files: Paths of the files by their names in the index. A file that does not exist is removed.
            sources: Sources of the index.
        """
        self._records.walk.begin()
        names = {path: name for name, path in files.items() if path.exists()}
        documents = [replace(document, is_named=False) for document in find_documents(names, names=names)]
        self._records.walk.saw(documents)
        locate = locator(sources)
        others = (file for file in list(self._records.files()) if file.name not in files)
        self._records.walk.saw(_recorded(file, *split_member(locate(file.name) or file.name)) for file in others)
        self._settle(CHANGED, files.keys())

    def _settle(self, which: str, names: Set[str] | None = None) -> None:
        """Read documents, then remove passages that no longer exist, until no file needs to be read.

        Args:
            which: Condition of the documents to read; see `Walk.seen`.
            names: Names of the documents to read; None for all.
        """
        self._records.walk.retire_gone()
        self._visit_all(which, names)
        self._remove_gone()
        self._remove_outdated()
        while self._visit_all(UNFINISHED):  # files that hold passages which another file lost
            self._remove_outdated()

    def _walk(self, wanted: WantedSources) -> None:
        problems: list[tuple[str, str]] = []
        unread: Counter[str] = Counter()
        self._records.walk.begin()
        documents = find_documents(
            wanted.paths,
            lambda name, error: problems.append((name, str(error))),
            follow_links=self._follow_links,
            names=wanted.names,
            on_unread=lambda name: unread.update([ending(name)]),
        )
        has_documents = False
        documents = (document for document in documents if not self._is_excluded(document, wanted))
        while some := list(islice(documents, _BATCH)):
            has_documents = True
            self._records.walk.saw(some)
        self._records.set_problems(problems)
        self._records.notes.put("unread", ((kind, str(count)) for kind, count in unread.items()))
        self._keep_unread(problems, unread, wanted)
        if not has_documents and not wanted.may_be_empty:
            raise self._nothing(wanted.paths) if problems else no_documents(wanted.paths, unread)

    def _keep_unread(
        self, problems: Sequence[tuple[str, str]], unread: Mapping[str, int], wanted: WantedSources
    ) -> None:
        """Keep the records of folders and archives that cannot be opened now, and of kinds without a reader."""
        closed_names = {name for name, reason in problems if LEADS_OUT not in reason}
        below = tuple(f"{name}{mark}" for name in closed_names for mark in ("/", "!/"))
        for file in list(self._records.files()) if closed_names or unread else ():
            document = replace(_recorded(file, *located(file.name, wanted.sources)), is_named=False)
            lacks_reader = document.kind in unread and document.path.exists()
            if file.name in closed_names or file.name.startswith(below) or lacks_reader:
                self._records.walk.saw([document])

    def _is_excluded(self, document: Document, wanted: WantedSources) -> bool:
        if not wanted.excludes(document.path, document.member):
            return False
        if len(self.remarks) < _MAX_REMARKS:
            self.remarks.append((document.name, REMOVED))
        return True

    def _nothing(self, paths: Sequence[Path]) -> DataError:
        problems = self._records.problems(1)
        if not problems:
            return nothing_found(paths)
        return DataError(f"none of the files could be read, the first for this reason: {problems[0][1]}")

    def _visit_all(self, which: str, names: Set[str] | None = None) -> bool:
        after, any_visited = "", False
        while page := self._records.walk.seen(which, after):
            for document in page if names is None else [item for item in page if item.name in names]:
                any_visited = True
                self._visit(document)
                self._done += document.stamp.size
            after = page[-1].name
        return any_visited

    def _visit(self, document: Document) -> None:
        file = self._records.file(document.name)
        retry = (document.is_named or self._check_contents) and file and file.problem  # a named file is not left out
        if file and file.done and not retry and self._is_unchanged(document, file):
            return
        self.changes.files_read += 1
        if file and not file.done and file.is_like(document):
            self._read(document, file)
        else:
            self._read(document, self._records.begin_reading(document, _mtime(document)))

    def _is_unchanged(self, document: Document, file: File) -> bool:
        """Return whether the content is unchanged. Times are missing, different or unreliable here."""
        mtime = _mtime(document)
        try:
            same = bool(file.digest) and file.key == document.key and file.digest == digest_of(document)
        except DataError:
            return False
        if same:
            self._records.trust(file.file, mtime)
        return same

    def _read(self, document: Document, file: File) -> None:
        """Read a file from the point where an earlier update stopped; see `File.indexed`."""
        count = file.indexed
        self._claims.begin()
        batches = self._batches(document, count)
        while True:
            try:
                batch = next(batches, None)
            except DataError as error:
                if document.is_named:
                    raise
                self._leave_out(document, file, error)
                return
            if batch is None:
                break
            self._index(file, batch)
            count += len(batch)
            self._records.took(file.file, count)
            self._tick(self._progress(document))
        self._records.done_reading(file.file, self._digest, _mtime_after(document, file))
        self._records.notes.put_bad_records(file.file, self._bad.count, self._bad.reasons)
        self._remark(document.name, self._claims.remarks())
        assert self._source is not None
        if self._source.lacks_reader:
            self._records.note_retry(file.file, readers_version())
        self._records.notes.put("remark", ((document.name, note) for note in self._source.remarks), document.name)

    def _batches(self, document: Document, skip: int) -> Iterator[list[Placed]]:
        """Yield batches of passages. Indexing is separate, so that its errors are not mistaken for reading errors."""
        self._bad = BadRecords()
        with opened(document, self._columns.encoding) as self._source:
            self._source.bad_records = self._bad
            batch: list[Placed] = []
            size = read = 0
            try:
                for read, item in enumerate(read_opened(self._source, self._columns), 1):
                    if read <= skip:
                        continue
                    batch.append(item)
                    size += len(item.passage.text)
                    if len(batch) == _BATCH or size > _BATCH_SIZE:
                        yield batch
                        batch, size = [], 0
            except RecursionError:
                raise DataError(f"{document.name}: nested too deeply: flatten it") from None
            if self._bad.count and not read:
                raise DataError(self._bad.reasons[0])
            if batch:
                yield batch
            if not read:
                self._source.remarks.append("without any text")
            self._digest = self._source.digest()
            read_as = [f"read as {self._source.encoding}"] if self._source.encoding else []
            self._remark(document.name, [*self._source.remarks, *read_as])

    def _remark(self, name: str, remarks: Sequence[str]) -> None:
        """Store remarks on a file, up to a total maximum."""
        if len(self.remarks) < _MAX_REMARKS:
            self.remarks += [(name, remark) for remark in remarks]

    def _leave_out(self, document: Document, file: File, error: DataError) -> None:
        """Skip a file. It is read again when its content or the readers change; if it cannot be opened, next time."""
        try:
            digest = digest_of(document)
        except DataError:
            digest = ""
        reason = str(error)
        if self._records.is_held(file.file):
            reason += f"; its passages of before stay ({self._records.count_of_file(file.file)})"
        self._records.leave_out(file.file, digest, _mtime_after(document, file) if digest else 0, reason)
        self._records.note_retry(file.file, readers_version())

    def _index(self, file: File, passages: Sequence[Placed]) -> None:
        batch = self._claims.sorted(file, passages)
        self._apply(batch)
        self._passages += len(passages)

    def _apply(self, batch: PassageBatch) -> None:
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
        while gone := self._records.walk.gone():
            for number in gone:
                if len(self.removed_files) < _MAX_REMARKS:
                    name = self._records.file_by_number(number).name
                    self.removed_files.append((name, self._records.count_of_file(number)))
                self._drop(number)
                self._records.forget(number)

    def _remove_outdated(self) -> None:
        """Remove outdated passages. This is done after all files were read, since a passage may move between files."""
        while files := self._records.unsorted():
            for file in files:
                self._drop(file.file, file.version)
                self._records.sorted(file.file)

    def _drop(self, number: int, version: int = -1) -> None:
        """Delete the passages that a file no longer has, and have other files that contain them read again."""
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


def _recorded(file: File, path: Path, member: str) -> Document:
    """Return the document for a recorded file."""
    return Document(path, file.key, Stamp(file.size, file.mtime), member, shown=_outer(file.name, member))


def _outer(name: str, member: str) -> str:
    return name.removesuffix(f"!/{member}") if member else name


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
